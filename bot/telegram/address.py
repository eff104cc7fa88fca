"""Destinations, people and chats as text: `telegram:<chat>` and `telegram:<chat>:<topic>`.

Keeps: numeric IDs are identity, and the runtime sees a destination as an opaque name.
"""

from __future__ import annotations

import re
from typing import Final

from runtime.errors import BadInput

PREFIX: Final = "telegram"
_SHAPE: Final = re.compile(r"^telegram:(-?[0-9]{1,18})(?::([0-9]{1,18}))?$")


def chat_id(chat: int) -> str:
    """The ID of a chat's binding, or of a person (a private chat has its person's number)."""
    return f"{PREFIX}:{chat}"


def destination(chat: int, thread: int | None = None) -> str:
    """Where a message goes: a chat, or a topic of it."""
    return chat_id(chat) if thread is None else f"{PREFIX}:{chat}:{thread}"


def parse(text: str) -> tuple[int, int | None]:
    """Chat and topic of a destination. Raises BadInput."""
    match = _SHAPE.match(text)
    if match is None:
        raise BadInput(destination=text, cause="not telegram:<chat> or telegram:<chat>:<topic>")
    return int(match[1]), int(match[2]) if match[2] else None


def chat_of(text: str) -> str:
    """The chat of a destination, as its binding's ID."""
    return chat_id(parse(text)[0])


def number_of(person: str) -> int:
    """The numeric ID of a person or a chat."""
    return parse(person)[0]


def redirect(text: str, chat: str) -> str:
    """The same topic, or place, in another chat."""
    return destination(number_of(chat), parse(text)[1])
