"""Reads orders to misbehave: faults over calls, and changes of the scene.

Keeps: an order is understood whole or refused with the field named; what it changes is what
Telegram could do.
"""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from bot.sandbox.acting import Acting
from bot.sandbox.errors import ControlRefusal
from bot.sandbox.faults import Fault, Faults
from bot.sandbox.model import Chat, ChatType, MemberStatus, Person
from bot.sandbox.params import Params
from bot.sandbox.staging import Staging

Json = dict[str, Any]
T = TypeVar("T")
CHAT_TYPES: TypeAdapter[ChatType] = TypeAdapter(ChatType)
STATUSES: TypeAdapter[MemberStatus] = TypeAdapter(MemberStatus)
_TYPES: dict[str, type] = {
    "times": int,
    "code": int,
    "retry_after": int,
    "seconds": float,
    "chat_id": int,
}


def one_of(known: TypeAdapter[T], value: str, field: str) -> T:
    """The value, if it is one of the known words."""
    try:
        return known.validate_python(value)
    except ValidationError as cause:
        expected = cause.errors()[0]["msg"]
        raise ControlRefusal(field=field, value=value, cause=expected) from cause


class Misbehaviour:
    """Orders from a test or the page."""

    def __init__(self, faults: Faults, staging: Staging, acting: Acting) -> None:
        self.faults = faults
        self.staging = staging
        self.acting = acting

    def shown(self) -> list[Json]:
        """The faults in force."""
        return [asdict(rule) for rule in self.faults.rules]

    def lay(self, order: Json) -> None:
        """Add a fault."""
        known = {field.name for field in fields(Fault)}
        unknown = order.keys() - known
        if unknown or "kind" not in order:
            raise ControlRefusal(unknown=", ".join(sorted(unknown)), needed="kind")
        values: dict[str, Any] = {}
        for name, value in order.items():
            try:
                values[name] = None if value is None else _TYPES.get(name, str)(value)
            except (TypeError, ValueError) as cause:
                raise ControlRefusal(field=name, cause=str(cause)) from cause
        self.faults.add(Fault(**values))

    def _chat(self, params: Params) -> Chat:
        chat = self.acting.world.get(Chat, params.number("chat"))
        if chat is not None:
            return chat
        titled = [row for row in self.acting.world.all(Chat) if row.title == params.text("chat")]
        if not params.text("chat") or not titled:
            raise ControlRefusal(chat=params.text("chat"), cause="no such chat")
        return titled[-1]

    def stage(self, params: Params) -> Json:
        """Carry out one change of the scene, named by `do`."""
        orders = {
            "create_chat": self._create_chat,
            "create_topic": self._create_topic,
            "delete_topic": self._delete_topic,
            "migrate": self._migrate,
            "block": self._block,
            "freeze": self._freeze,
            "standing": self._standing,
            "privacy": self._privacy,
            "redeliver": self._redeliver,
            "add_person": self._add_person,
        }
        order = orders.get(params.text("do"))
        if order is None:
            raise ControlRefusal(do=params.text("do"), known=", ".join(orders))
        return order(params)

    def _create_chat(self, params: Params) -> Json:
        kind = one_of(CHAT_TYPES, params.text("type") or "group", "type")
        names = params.json("members", "members") or []
        members = [self.acting.person(name) for name in names]
        creator = self.acting.person(params.text("person"))
        title = params.text("title")
        chat = self.staging.create_chat(creator, title, kind, members)
        return {"chat_id": chat.id}

    def _create_topic(self, params: Params) -> Json:
        creator = self.acting.person(params.text("person"))
        made = self.staging.create_topic(self._chat(params), params.text("name"), creator)
        return {"thread_id": made}

    def _delete_topic(self, params: Params) -> Json:
        self.staging.delete_topic(self._chat(params), params.number("thread_id"))
        return {"deleted": True}

    def _migrate(self, params: Params) -> Json:
        return {"chat_id": self.staging.migrate(self._chat(params)).id}

    def _block(self, params: Params) -> Json:
        blocked = not params.has("blocked") or params.flag("blocked")
        self.acting.block(self.acting.person(params.text("person")), blocked=blocked)
        return {"blocked": blocked}

    def _freeze(self, params: Params) -> Json:
        frozen = not params.has("frozen") or params.flag("frozen")
        self.staging.freeze(self._chat(params), params.number("message_id"), frozen=frozen)
        return {"frozen": frozen}

    def _standing(self, params: Params) -> Json:
        status = one_of(STATUSES, params.text("status"), "status")
        who = params.text("who")
        world = self.acting.world
        number = world.bot.id if who == "bot" else self.acting.person(who).id
        actor = self.acting.person(params.text("person"))
        self.staging.set_standing(self._chat(params), number, status, actor)
        return {"status": status}

    def _privacy(self, params: Params) -> Json:
        reads_all = params.flag("reads_all")
        self.staging.set_privacy(reads_all=reads_all)
        return {"reads_all": reads_all}

    def _redeliver(self, params: Params) -> Json:
        number = params.number("update_id") or None
        times = params.number("times", 1)
        return {"update_id": self.staging.redeliver(number, times)}

    def _add_person(self, params: Params) -> Json:
        row = Person(
            id=params.number("id"),
            key=params.text("key"),
            first_name=params.text("first_name"),
            last_name=params.text("last_name"),
            username=params.text("username"),
            language_code=params.text("language_code"),
            note=params.text("note"),
        )
        return {"person": self.staging.add_person(row).key}
