"""Bot commands as they are written: `/name` or `/name@bot` at the very beginning of a message.

The documented forms, and nothing else: the command entity stands at offset 0, the name is in lower
case as in the menu (`/pause`; `/PAUSE` is not a command), and an addressed bot's name is compared
without regard to letter case, as Telegram does. Another bot's command is nobody's business here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal

from bot.telegram.updates import Json, mapping, number, text

_SHAPE: Final = re.compile(r"^/([a-z0-9_]{1,32})(?:@([A-Za-z0-9_]{1,64}))?$")


@dataclass(frozen=True, slots=True)
class Said:
    """A command and what follows it. `to` says whose it is; an undocumented form is nobody's."""

    name: str
    rest: str
    to: Literal["us", "other", "nobody"]


def utf16_slice(value: str, offset: int, length: int) -> str:
    """The part of a text that an entity names, in UTF-16 units."""
    data = value.encode("utf-16-le")
    return data[2 * offset : 2 * (offset + length)].decode("utf-16-le", "replace")


def words_of(message: Json) -> tuple[str, list[Json]]:
    """The text (or caption) of a message and its entities."""
    if isinstance(message.get("text"), str):
        said, entities = text(message.get("text")), message.get("entities")
    else:
        said, entities = text(message.get("caption")), message.get("caption_entities")
    marks = entities if isinstance(entities, list) else []
    return said, [mapping(mark) for mark in marks]


def command_in(message: Json, bot_username: str) -> Said | None:
    """The command that a message is, or None."""
    said, entities = words_of(message)
    for mark in entities:
        if mark.get("type") != "bot_command" or number(mark.get("offset")) != 0:
            continue
        length = number(mark.get("length")) or 0
        written = utf16_slice(said, 0, length)
        rest = utf16_slice(said, length, len(said.encode("utf-16-le")) // 2).strip()
        match = _SHAPE.match(written)
        if match is None:
            return Said(written.removeprefix("/"), rest, "nobody")
        ours = match[2] is None or match[2].casefold() == bot_username.casefold()
        return Said(match[1], rest, "us" if ours else "other")
    return None
