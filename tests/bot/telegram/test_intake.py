"""Intake: an update is stored before anything else, once, in the scope of its chat."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from bot.telegram.intake import INTAKE, PRESS, take, take_anyhow, take_undecodable
from runtime.domain.people import Binding, code_digest
from runtime.domain.values import DIRECTORY, identity, sha256
from runtime.engine.kit import Kit
from runtime.ports import Ask, Body, Commit, Create, Delete, Key, Page, Put, Reads, Store
from runtime.stores.collections import BINDINGS, EVENTS, OPERATIONS
from tests.world import ACME, OTHER, ReplyLosing, make_kit

BOT = 7
ANA = {"id": 1001, "is_bot": False, "first_name": "Ana", "last_name": "Lima"}
CHAT = {"id": 1001, "type": "private"}


def update(number: int = 1, text: str = "a secret plan", **more: Any) -> dict[str, Any]:  # noqa: ANN401 - any JSON value
    message = {"message_id": 5, "chat": CHAT, "from": ANA, "text": text, **more}
    if text.startswith("/"):
        length = len(text.split(maxsplit=1)[0])
        message["entities"] = [{"type": "bot_command", "offset": 0, "length": length}]
    return {"update_id": number, "message": message}


def press(number: int = 2) -> dict[str, Any]:
    message = {"message_id": 4, "chat": CHAT}
    return {
        "update_id": number,
        "callback_query": {"id": "q", "from": ANA, "data": "t", "message": message},
    }


@pytest.fixture
async def kit(tmp_path: Path) -> AsyncIterator[Kit]:
    made = await make_kit(tmp_path)
    yield made
    await made.store.close()


async def bind(kit: Kit, chat: str = "telegram:1001") -> None:
    binding = Binding(id=chat, tenant=ACME, by=chat, since=kit.clock.now())

    async def body(reads: Reads) -> Commit[None]:
        del reads
        return Commit(None, (Put(BINDINGS.key(DIRECTORY, chat), binding),))

    await kit.commit(body)


async def test_an_update_of_a_bound_chat_is_its_tenants_event_whole(kit: Kit) -> None:
    await bind(kit)
    taken = await take(kit, BOT, update(future_field={"kept": True}))
    event = await kit.store.get(EVENTS.key(ACME, taken.event.id))
    assert event is not None
    assert json.loads(event.payload)["message"]["future_field"] == {"kept": True}
    assert (event.source, event.source_id, event.trust.value) == (
        "telegram",
        "7:1",
        "external_untrusted",
    )
    operation = await kit.store.get(OPERATIONS.key(ACME, event.operation or ""))
    assert operation is not None
    assert (operation.kind, operation.lane, operation.lane_order) == (INTAKE, "chat:1001", 1)
    assert operation.attempts_max == 3


async def test_a_press_has_no_lane_to_wait_in(kit: Kit) -> None:
    await bind(kit)
    taken = await take(kit, BOT, press())
    operation = await kit.store.get(OPERATIONS.key(ACME, taken.event.operation or ""))
    assert operation is not None
    assert (operation.kind, operation.lane, operation.in_lane) == (PRESS, None, None)


async def test_of_an_unbound_chat_only_metadata_is_stored(kit: Kit) -> None:
    taken = await take(kit, BOT, update())
    event = await kit.store.get(EVENTS.key(DIRECTORY, taken.event.id))
    assert event is not None
    assert "secret plan" not in event.payload
    assert "Ana" not in event.payload
    assert await kit.store.get(EVENTS.key(ACME, taken.event.id)) is None


async def test_a_pairing_code_is_stored_as_its_digest(kit: Kit) -> None:
    taken = await take(kit, BOT, update(text="/start open-sesame"))
    assert "open-sesame" not in taken.event.payload
    assert json.loads(taken.event.payload)["code"] == code_digest("open-sesame")


async def test_a_redelivery_converges_whatever_the_order_of_its_keys(kit: Kit) -> None:
    await bind(kit)
    first = update()
    again = json.loads(json.dumps(dict(reversed(first.items()))))
    again["message"] = dict(reversed(again["message"].items()))
    assert (await take(kit, BOT, first)).verdict == "fresh"
    taken = await take(kit, BOT, again)
    assert (taken.verdict, taken.event.deliveries) == ("redelivery", 2)


async def test_another_payload_under_the_same_number_is_a_conflict(kit: Kit) -> None:
    await bind(kit)
    await take(kit, BOT, update())
    taken = await take(kit, BOT, update(text="another plan"))
    assert taken.verdict == "conflict"
    event = await kit.store.get(EVENTS.key(ACME, taken.event.id))
    assert event is not None
    assert (event.conflicts, json.loads(event.payload)["message"]["text"]) == (1, "a secret plan")


async def test_two_bots_have_separate_numbers(kit: Kit) -> None:
    await bind(kit)
    assert (await take(kit, 7, update())).verdict == "fresh"
    assert (await take(kit, 8, update())).verdict == "fresh"


async def test_a_redelivery_after_the_chat_was_bound_stays_where_it_was(kit: Kit) -> None:
    """`/start CODE` binds its own chat; its redelivery must not run again as the tenant's."""
    assert (await take(kit, BOT, update(text="/start abc"))).verdict == "fresh"
    await bind(kit)
    taken = await take(kit, BOT, update(text="/start abc"))
    assert taken.verdict == "redelivery"
    assert await kit.store.get(EVENTS.key(ACME, taken.event.id)) is None


async def test_a_chat_that_moved_speaks_for_nobody(kit: Kit) -> None:
    await bind(kit)
    key = BINDINGS.key(DIRECTORY, "telegram:1001")
    binding = await kit.store.get(key)
    assert binding is not None
    gone = binding.model_copy(update={"moved_to": "telegram:-1005"})

    async def body(reads: Reads) -> Commit[None]:
        del reads
        return Commit(None, (Put(key, gone),))

    await kit.commit(body)
    taken = await take(kit, BOT, update())
    assert await kit.store.get(EVENTS.key(ACME, taken.event.id)) is None


class _BindsInBetween:
    """A store in which the chat is bound between choosing the scope and committing."""

    def __init__(self, inner: Store, bound: Binding) -> None:
        self._inner = inner
        self._bound: Binding | None = bound

    async def get(self, key: Key[Any]) -> Any:  # noqa: ANN401 - as the port
        return await self._inner.get(key)

    async def find(self, ask: Ask[Any]) -> Page[Any]:
        return await self._inner.find(ask)

    async def close(self) -> None:
        await self._inner.close()

    async def transact(self, body: Body[Any]) -> Any:  # noqa: ANN401 - as the port
        if self._bound is not None:
            bound, self._bound = self._bound, None

            async def bind_first(reads: Reads) -> Commit[None]:
                del reads
                return Commit(None, (Create(BINDINGS.key(DIRECTORY, bound.id), bound),))

            await self._inner.transact(bind_first)
        return await self._inner.transact(body)


async def test_a_binding_made_in_between_is_seen_by_the_accepting_commit(tmp_path: Path) -> None:
    plain = await make_kit(tmp_path)
    binding = Binding(id="telegram:1001", tenant=ACME, by="x", since=plain.clock.now())

    def wrap(store: Store) -> Store:
        return _BindsInBetween(store, binding)

    kit = await make_kit(tmp_path, seed=1, wrap=wrap)
    taken = await take(kit, BOT, update())
    assert await plain.store.get(EVENTS.key(ACME, taken.event.id)) is not None
    assert await plain.store.get(EVENTS.key(DIRECTORY, taken.event.id)) is None
    await kit.store.close()
    await plain.store.close()


async def test_nothing_reaches_another_tenant(kit: Kit) -> None:
    await bind(kit)
    taken = await take(kit, BOT, update())
    assert await kit.store.get(EVENTS.key(OTHER, taken.event.id)) is None


@pytest.mark.parametrize(
    "odd",
    [
        {},
        {"update_id": "1"},
        {"update_id": True},
        {"update_id": -1},
        {"update_id": 3, "message": {"text": "x" * 250_000}},
        {"update_id": 4, "message": {"text": "\ud83d", "chat": CHAT, "from": ANA}},
        {"update_id": 5, "message": []},
        {"update_id": 6, "message": {"chat": {"id": "1"}, "from": 3}},
        {"update_id": 7, "poll": {"question": "?"}},
    ],
)
async def test_odd_updates_are_stored_never_raised(kit: Kit, odd: dict[str, Any]) -> None:
    await bind(kit)
    taken = await take(kit, BOT, odd)
    assert taken.verdict in {"fresh", "rejected"}
    assert (await take(kit, BOT, odd)).verdict == "redelivery"


async def test_a_too_large_update_of_a_bound_chat_is_kept_as_rejected(kit: Kit) -> None:
    await bind(kit)
    taken = await take(kit, BOT, update(text="x" * 250_000))
    assert taken.verdict == "rejected"
    assert len(taken.event.payload) < 300
    assert taken.event.operation is None


async def test_bytes_that_are_no_update_are_kept_as_rejected(kit: Kit) -> None:
    taken = await take_undecodable(kit, BOT, b"\xff{not json")
    assert taken.verdict == "rejected"
    assert (await take_undecodable(kit, BOT, b"\xff{not json")).verdict == "redelivery"


async def test_an_update_whose_chat_cannot_be_read_is_kept_as_rejected(
    kit: Kit, tmp_path: Path
) -> None:
    await bind(kit)
    with sqlite3.connect(tmp_path / "truth.sqlite") as file:
        file.execute("UPDATE r_bindings SET body = replace(body, 'since', 'hence'), version = 9")
    await take_anyhow(kit, BOT, update(), b"as it came")
    event = identity("telegram", f"{BOT}:odd-{sha256(b'as it came')}")
    stored = await kit.store.get(EVENTS.key(DIRECTORY, event))
    assert stored is not None
    assert stored.state.name == "rejected"


async def test_an_update_whose_own_event_cannot_be_read_is_not_in_the_way(
    kit: Kit, tmp_path: Path
) -> None:
    await bind(kit)
    await take(kit, BOT, update())
    with sqlite3.connect(tmp_path / "truth.sqlite") as file:
        file.execute("UPDATE r_events SET body = replace(body, 'source', 'sauce'), version = 9")
    await take_anyhow(kit, BOT, update(), b"as it came")
    (count,) = file.execute("SELECT count(*) FROM r_events").fetchone()
    assert count == 1


async def test_five_deliveries_at_once_are_one_event(kit: Kit) -> None:
    await bind(kit)
    taken = await asyncio.gather(*(take(kit, BOT, update()) for _ in range(5)))
    assert sorted(receipted.verdict for receipted in taken) == ["fresh"] + ["redelivery"] * 4
    event = await kit.store.get(EVENTS.key(ACME, taken[0].event.id))
    assert event is not None
    assert event.deliveries == 5


async def test_a_delivery_whose_commit_reply_was_lost_is_counted_once(tmp_path: Path) -> None:
    plain = await make_kit(tmp_path)
    await bind(plain)
    kit = await make_kit(tmp_path, seed=1, wrap=ReplyLosing)
    assert (await take(kit, BOT, update())).verdict == "fresh"
    taken = await take(kit, BOT, update())
    event = await plain.store.get(EVENTS.key(ACME, taken.event.id))
    assert event is not None
    assert event.deliveries == 2
    await kit.store.close()
    await plain.store.close()


async def test_an_unbound_chat_that_is_freed_again_is_metadata_again(kit: Kit) -> None:
    await bind(kit)
    await take(kit, BOT, update(1))

    async def body(reads: Reads) -> Commit[None]:
        del reads
        return Commit(None, (Delete(BINDINGS.key(DIRECTORY, "telegram:1001")),))

    await kit.commit(body)
    taken = await take(kit, BOT, update(2))
    assert "secret plan" not in taken.event.payload
