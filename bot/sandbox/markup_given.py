"""Entities that a caller gives itself, instead of marks in the text.

Keeps: kinds that the server finds on its own are ignored when given; an entity that begins or ends
outside the text, or inside one symbol, is refused with the server's words.
"""

from __future__ import annotations

from typing import Any

from bot.sandbox.errors import ApiRefusal, bad_request
from bot.sandbox.markup_text import BLOCKS, STYLES, Raw, checked_link, units

Json = dict[str, Any]
_PLAIN = frozenset({*STYLES, *BLOCKS, "code", "pre"})
OFFSET_MAX = 1_000_000


def read_given(text: str, value: object) -> list[Raw]:
    """The entities of a JSON array; anything else is none."""
    if not isinstance(value, list):
        return []
    marks = [raw for item in value if (raw := _entity(item)) is not None]
    begins = _symbol_borders(text)
    for raw in marks:
        _check_place(raw, begins, units(text))
    return marks


def _refuse(why: str) -> ApiRefusal:
    return bad_request(f"Can't parse MessageEntity: {why}")


def _entity(item: object) -> Raw | None:
    if not isinstance(item, dict):
        raise _refuse(why="expected an Object")
    for field in ("offset", "length"):
        if field not in item:
            raise _refuse(why=f'Can\'t find field "{field}"')
        if type(item[field]) is not int:
            raise _refuse(why=f'Field "{field}" must be of type Number')
    if not isinstance(item.get("type"), str):
        raise _refuse(why='Can\'t find field "type"')
    data = _data(item)
    if data is None or item["length"] == 0:
        return None
    for field in ("offset", "length"):
        if not 0 <= item[field] <= OFFSET_MAX:
            raise bad_request(detail=f"Receive an entity with incorrect {field} {item[field]}")
    return Raw(item["offset"], item["length"], data)


def _data(item: Json) -> Json | None:
    """What the entity says besides its place; None for kinds that are found, not given."""
    kind = item["type"]
    if kind == "pre" and isinstance(item.get("language"), str) and item["language"]:
        return {"type": kind, "language": item["language"]}
    if kind in _PLAIN:
        return {"type": kind}
    if kind == "text_link" and isinstance(item.get("url"), str):
        link = checked_link(item["url"])
        return {"type": kind, "url": link} if link else None
    if kind == "text_mention" and isinstance(item.get("user"), dict):
        number = item["user"].get("id")
        return {"type": kind, "user_id": number} if type(number) is int else None
    if kind == "custom_emoji" and isinstance(item.get("custom_emoji_id"), str):
        return {"type": kind, "custom_emoji_id": item["custom_emoji_id"]}
    return None


def _symbol_borders(text: str) -> dict[int, int]:
    """Unit offset of each symbol, and of the end -> its byte offset."""
    borders, place, byte = {}, 0, 0
    for character in text:
        borders[place] = byte
        place += units(character)
        byte += len(character.encode())
    borders[place] = byte
    return borders


def _check_place(raw: Raw, borders: dict[int, int], length: int) -> None:
    if raw.offset >= length:
        raise bad_request(
            detail=f"Entity begins after the end of the text at UTF-16 offset {raw.offset}"
        )
    if raw.end > length:
        raise bad_request(
            detail=f"Entity beginning at UTF-16 offset {raw.offset} ends after the end of the text "
            f"at UTF-16 offset {raw.end}"
        )
    if raw.offset not in borders:
        byte = borders[raw.offset + 1]
        raise bad_request(
            detail=f"Entity begins in a middle of a UTF-16 symbol at byte offset {byte}"
        )
    if raw.end not in borders:
        raise bad_request(
            detail=f"Entity beginning at UTF-16 offset {raw.offset} ends in a middle of a UTF-16 "
            f"symbol at byte offset {borders[raw.end + 1]}"
        )
