"""Reading a raw update: whose chat, which person, what kind. Pure, and it trusts no shape.

Keeps: an update is read as plain JSON, so that fields this code does not know survive in the
event; a missing or odd field is a None, never an exception.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from bot.telegram import html

ALLOWED_UPDATES: Final = (
    "message",
    "edited_message",
    "channel_post",
    "callback_query",
    "my_chat_member",
)
"""Set explicitly at start: an earlier setup's list would otherwise stay in force."""

Kind = Literal["message", "edited", "channel_post", "press", "membership", "other"]
_KINDS: Final[dict[str, Kind]] = {
    "message": "message",
    "edited_message": "edited",
    "channel_post": "channel_post",
    "edited_channel_post": "edited",
    "callback_query": "press",
    "my_chat_member": "membership",
}

NUMBER_MAX: Final = 2**53 - 1

Json = Mapping[str, Any]
EMPTY: Final[Json] = {}


def mapping(value: object) -> Json:
    """The value, if it is an object; else an empty one."""
    return value if isinstance(value, dict) else EMPTY


def number(value: object) -> int | None:
    """The value, if it is an integer that a record can keep; Telegram's have at most 52 bits."""
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    return value if -NUMBER_MAX <= value <= NUMBER_MAX else None


def text(value: object) -> str:
    """The value as text that can be stored; anything else is empty."""
    return html.whole(value) if isinstance(value, str) else ""


@dataclass(frozen=True, slots=True)
class Sender:
    """Where an update came from. `person` is None for channels and anonymous admins."""

    kind: Kind
    chat: int | None
    chat_type: str
    thread: int | None
    person: int | None
    display: str
    message: int | None

    @property
    def private(self) -> bool:
        """Whether it is the person's own chat with the bot."""
        return self.chat_type == "private"


def body_of(update: Json) -> tuple[Kind, Json]:
    """The kind of an update and the object it carries."""
    for field, kind in _KINDS.items():
        if isinstance(update.get(field), dict):
            return kind, update[field]
    return "other", EMPTY


def message_of(update: Json) -> Json:
    """The message of an update; for a press the one with the button, perhaps a stub."""
    kind, body = body_of(update)
    return mapping(body.get("message")) if kind == "press" else body


def sender(update: Json) -> Sender:
    """Who sent an update, and from where."""
    kind, body = body_of(update)
    message = message_of(update)
    chat = mapping(message.get("chat"))
    person = mapping(body.get("from"))
    id_ = number(person.get("id"))
    anonymous = kind != "press" and isinstance(body.get("sender_chat"), dict)
    in_topic = message.get("is_topic_message") is True
    thread = number(message.get("message_thread_id")) if in_topic else None
    return Sender(
        kind=kind,
        chat=number(chat.get("id")),
        chat_type=text(chat.get("type")),
        thread=thread if thread is not None and thread > 0 else None,
        person=None if anonymous or kind == "channel_post" else id_,
        display=display(person),
        message=number(message.get("message_id")),
    )


def display(person: Json) -> str:
    """A person's name for display; the numeric ID where there is nothing to read."""
    id_ = number(person.get("id")) or 0
    return html.name(text(person.get("first_name")), text(person.get("last_name")), id_)
