"""Intake: an update becomes an event with its operation before anything else happens.

Keeps INV-2 (source `telegram`, source ID `{bot}:{update}`: a redelivery converges, also when its
chat was bound or moved in between), INV-16's first half (`take` returns after the commit) and
INV-18 (whose event it is follows from the chat's binding, read in the transaction that accepts; of
an unbound chat only metadata is stored, in the directory).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import structlog
from pydantic import ValidationError

from bot.telegram import address
from bot.telegram.commandline import command_in
from bot.telegram.updates import Json, Sender, body_of, mapping, message_of, number, sender, text
from runtime.domain.event import Envelope
from runtime.domain.people import Binding, code_digest, tenant_of
from runtime.domain.values import DIRECTORY, Directory, Tenant, Trust, sha256
from runtime.engine.inbox import Receipted, Task, accept
from runtime.engine.kit import Kit
from runtime.errors import Contention, RecordUnreadable, StoreUnavailable
from runtime.ports import Ask, Body, Commit, Key, Page, Reads, Store
from runtime.stores.collections import BINDINGS, EVENTS
from runtime.stores.scoped import Scoped

SOURCE: Final = "telegram"
INTAKE: Final = "telegram.intake"
PRESS: Final = "telegram.press"
INTAKE_ATTEMPTS: Final = 3
REBINDS_MAX: Final = 5

log = structlog.get_logger()

T = TypeVar("T")
R = TypeVar("R", bound=Any)


class _PlaceChanged(Exception):
    """Between choosing the scope and committing, the chat's binding changed."""


class _InPlace:
    """A store whose every commit also holds that `scope` is still where the event belongs."""

    def __init__(self, store: Store, chat: int | None, scope: Tenant | Directory, id_: str) -> None:
        self._scope = scope
        self._store = Scoped(store, (DIRECTORY, scope))
        self._chat = chat
        self._event = id_

    async def get(self, key: Key[R]) -> R | None:
        return await self._store.get(key)

    async def find(self, ask: Ask[R]) -> Page[R]:
        return await self._store.find(ask)

    async def close(self) -> None:
        await self._store.close()

    async def transact(self, body: Body[T]) -> T:
        async def held(reads: Reads) -> Commit[T]:
            if await place(reads, self._chat, self._event) != self._scope:
                raise _PlaceChanged
            return await body(reads)

        return await self._store.transact(held)


async def place(reads: Reads | Store, chat: int | None, event: str) -> Tenant | Directory:
    """Where an event belongs: where an earlier delivery of it stands, else its chat's tenant."""
    binding = await bound(reads, chat)
    tenant = tenant_of(binding)
    if tenant is None:
        return DIRECTORY
    earlier = await reads.get(EVENTS.key(DIRECTORY, event))
    return DIRECTORY if earlier is not None else tenant


async def bound(reads: Reads | Store, chat: int | None) -> Binding | None:
    """The binding of a chat."""
    if chat is None:
        return None
    return await reads.get(BINDINGS.key(DIRECTORY, address.chat_id(chat)))


async def take(kit: Kit, bot_id: int, update: Json, bot_username: str = "") -> Receipted:
    """Accept one update. When this returns, it is stored and the transport may be told so.

    Raises:
        StoreError: nothing is stored; the transport must bring the update again.
    """
    who = sender(update)
    for _ in range(REBINDS_MAX):
        taken = _envelope(bot_id, update, update)
        scope = await place(kit.store, who.chat, taken.envelope.event_id)
        if isinstance(scope, Directory):
            taken = _envelope(bot_id, update, metadata(update, bot_username))
        store = _InPlace(kit.store, who.chat, scope, taken.envelope.event_id)
        try:
            return await accept(
                kit, scope, taken.envelope, taken.task, reason=taken.reason, store=store
            )
        except _PlaceChanged:
            continue
    raise Contention(attempts=REBINDS_MAX, seconds=0)


async def take_undecodable(kit: Kit, bot_id: int, body: bytes) -> Receipted:
    """Keep that something undecodable came, so that the transport can move on."""
    taken = _rejected(bot_id, f"odd-{sha256(body)}", body.decode("latin-1"), "not an update")
    return await accept(kit, DIRECTORY, taken.envelope, None, reason=taken.reason)


async def take_anyhow(
    kit: Kit, bot_id: int, update: Json, raw: bytes, bot_username: str = ""
) -> None:
    """Accept an update; one that breaks the accepting is kept as rejected, never in the way.

    Raises:
        StoreUnavailable: nothing is stored; the transport must bring the update again.
        Contention: likewise.
    """
    try:
        await take(kit, bot_id, update, bot_username)
    except (StoreUnavailable, Contention):
        raise
    except RecordUnreadable as error:
        path = str(error.fields.get("key"))
        log.error("intake_unreadable", key=path)  # noqa: TRY400 - the record may quote a text (INV-20)
        # If it is its own event, that is there already, and reported.
        if f"/{EVENTS.name}/" not in f"/{path}":
            await take_undecodable(kit, bot_id, raw)
    except Exception as error:  # noqa: BLE001 - one odd update must not stop the rest; it is kept as rejected
        log.error("update_broke_intake", error=type(error).__name__)  # noqa: TRY400 - a traceback may quote the update (INV-20)
        await take_undecodable(kit, bot_id, raw)


@dataclass(frozen=True, slots=True)
class _Taken:
    envelope: Envelope
    task: Task | None
    reason: str = ""


def _envelope(bot_id: int, update: Json, kept: Json) -> _Taken:
    """The envelope and its task; an update that cannot be an event is kept as rejected."""
    update_id = number(update.get("update_id"))
    payload = _written(kept)
    who = sender(update)
    if update_id is None or update_id < 0:
        return _rejected(bot_id, f"odd-{sha256(payload.encode())}", payload, "no update_id")
    try:
        envelope = _made(bot_id, str(update_id), who.kind, payload)
    except ValidationError:
        return _rejected(bot_id, str(update_id), payload, "the update is too large to store")
    kind = PRESS if who.kind == "press" else INTAKE
    lane = None if kind == PRESS else f"chat:{who.chat or 0}"
    task = Task(
        kind=kind,
        acceptance=("the update is answered from stored state",),
        lane=lane,
        lane_order=update_id,
        attempts_max=INTAKE_ATTEMPTS,
    )
    return _Taken(envelope, task)


def _rejected(bot_id: int, id_: str, payload: str, reason: str) -> _Taken:
    reduced = _written({"bytes": len(payload), "sha256": sha256(payload.encode())})
    return _Taken(_made(bot_id, id_, "undecodable", reduced), None, reason)


def _made(bot_id: int, id_: str, kind: str, payload: str) -> Envelope:
    source_id = f"{bot_id}:{id_}"
    return Envelope(
        source=SOURCE,
        source_id=source_id,
        type=f"telegram.{kind}",
        trust=Trust.EXTERNAL,
        payload=payload,
        correlation=f"{SOURCE}:{source_id}",
    )


def _written(value: Json) -> str:
    """One spelling for equal updates: sorted keys, ASCII (lone surrogates survive as escapes)."""
    return json.dumps(value, ensure_ascii=True, sort_keys=True, separators=(",", ":"))


def metadata(update: Json, bot_username: str) -> dict[str, Any]:
    """What is kept of an update from a chat that works for nobody: no text and no name."""
    who: Sender = sender(update)
    kind, body = body_of(update)
    message = message_of(update)
    said = command_in(message, bot_username) if kind == "message" else None
    kept: dict[str, Any] = {
        "update_id": number(update.get("update_id")),
        "kind": kind,
        "chat": who.chat,
        "chat_type": who.chat_type,
        "thread": who.thread,
        "person": who.person,
        "message": who.message,
        "command": said.name if said is not None and said.to == "us" else None,
        "code": None,
    }
    if said is not None and (said.name, said.to) == ("start", "us") and said.rest:
        kept["code"] = code_digest(said.rest)
    if kind == "press":
        kept["query"] = text(body.get("id"))
    if kind == "membership":
        kept["status"] = text(mapping(body.get("new_chat_member")).get("status"))
    for field in ("migrate_to_chat_id", "migrate_from_chat_id"):
        if number(message.get(field)) is not None:
            kept[field] = message[field]
    return kept
