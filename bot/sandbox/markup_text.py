"""What a text and its entities become before a message holds them.

Keeps: entities are sorted (earlier first, longer first), never empty, never overlapping except by
nesting; code and pre hold no other entity; adjacent pieces of the same style are one; the text is
trimmed and free of control characters, and offsets follow.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

Json = dict[str, Any]
TEXT_UNITS_MAX = 4096
ONE_UNIT_MAX = 0xFFFF  # characters above take two UTF-16 units
CAPTION_UNITS_MAX = 1024
STYLES = ("bold", "italic", "underline", "strikethrough", "spoiler")
BLOCKS = ("blockquote", "expandable_blockquote")
_PRIORITY = {
    "blockquote": 0,
    "expandable_blockquote": 0,
    "pre": 11,
    "code": 20,
    "text_link": 49,
    "text_mention": 49,
    "bold": 90,
    "italic": 91,
    "underline": 92,
    "strikethrough": 93,
    "spoiler": 94,
    "custom_emoji": 99,
}
_FOUND = 50  # the priority of everything that is found rather than marked
# Control characters become spaces, the carriage return goes, and so do the marks that could turn
# the writing direction of what follows (the server drops exactly U+2028..U+202E).
_DROPPED = re.compile("[\r\u2028-\u202e]")
_CONTROL = re.compile("[\x00-\x09\x0b-\x1f]")
_LINK = re.compile(r"^(?:(?:https?|ftp|tg|ton|tonsite)://)?[^\s/?#]+", re.IGNORECASE)
_HOST = re.compile(r"^(?:[^@/?#]*@)?([^/?#:]+)(?::\d+)?")
_FINDERS = (
    ("bot_command", re.compile(r"(?<![\w/<>])/\w{1,64}(?:@\w{3,32})?(?![\w/<>])", re.ASCII)),
    ("mention", re.compile(r"(?<![\w@.])@[A-Za-z]\w{2,31}(?!\w)", re.ASCII)),
    ("url", re.compile(r"(?<![\w@])(?:https?://|ftp://|tg://)[^\s<>\"«»“”]+", re.IGNORECASE)),
    (
        "url",
        re.compile(
            r"(?<![\w@./-])(?:[a-z0-9-]+\.)+(?:com|org|net|io|dev|me|app|eu|de|uk|info)"
            r"(?:/[^\s<>\"]*)?(?![\w@.-])",
            re.IGNORECASE,
        ),
    ),
    ("email", re.compile(r"(?<![\w.+-])[\w.+-]+@(?:[\w-]+\.)+[A-Za-z]{2,}(?![\w@])", re.ASCII)),
    ("hashtag", re.compile(r"(?<![\w#])#(?=\w*[^\W\d])\w{1,256}(?!#)")),
    ("cashtag", re.compile(r"(?<![\w$])\$[A-Z]{1,8}(?![\w$])")),
)


@dataclass(frozen=True)
class Raw:
    """An entity on its way: where it is, and the rest of its object."""

    offset: int
    length: int
    data: Json = field(default_factory=dict)

    @property
    def end(self) -> int:
        """The first unit after it."""
        return self.offset + self.length

    @property
    def kind(self) -> str:
        """Its type."""
        return str(self.data["type"])

    @property
    def order(self) -> tuple[int, int, int]:
        """Sorting key: earlier, longer, outer."""
        return (self.offset, -self.length, _PRIORITY.get(self.kind, _FOUND))


def units(text: str) -> int:
    """The length in UTF-16 units."""
    return len(text) + sum(1 for character in text if ord(character) > ONE_UNIT_MAX)


def checked_link(url: str) -> str:
    """The link as the server stores it, or "" where it is none."""
    url = url.strip()
    if not _LINK.match(url) or " " in url:
        return ""
    scheme, found, rest = url.partition("://")
    if not found:
        scheme, rest = "http", url
    scheme = scheme.lower()
    if scheme in {"tg", "ton"}:
        return f"{scheme}://{rest}"
    if scheme not in {"http", "https", "ftp", "tonsite"}:
        return ""
    host = _HOST.match(rest)
    if host is None or "." not in host[1]:
        return ""
    # The server writes a bare host with its closing slash.
    bare = rest == host[0]
    return f"{scheme}://{rest}" + ("/" if bare else "")


def mentioned_user(url: str) -> int | None:
    """The user of a tg://user?id=... link."""
    found = re.fullmatch(r"(?:tg|ton):(?://)?user\?id=(\d{1,15})", url.strip())
    return int(found[1]) if found else None


def find(text: str) -> list[Raw]:
    """Commands, mentions, links, addresses and tags that nobody marked."""
    found: list[Raw] = []
    for kind, pattern in _FINDERS:
        for match in pattern.finditer(text):
            shown = match[0].rstrip(".,:;!?'\")]}") if kind == "url" else match[0]
            raw = Raw(units(text[: match.start()]), units(shown), {"type": kind})
            if not any(raw.offset < other.end and other.offset < raw.end for other in found):
                found.append(raw)
    return found


def settle(text: str, marked: list[Raw], *, search: bool = True) -> tuple[str, list[Json]]:
    """Clean and trim the text, bring the entities into their final form."""
    text, entities = _clean(text, [raw for raw in marked if raw.length > 0])
    if search:
        taken = [raw for raw in entities if raw.kind not in STYLES + BLOCKS]
        entities += [
            raw
            for raw in find(text)
            if not any(raw.offset < other.end and other.offset < raw.end for other in taken)
        ]
    return text, [_public(raw) for raw in arrange(entities)]


def _clean(text: str, entities: list[Raw]) -> tuple[str, list[Raw]]:
    """Drop and replace characters; trim both ends; move the entities along."""
    new_place = [0]  # old unit offset -> new unit offset
    kept: list[str] = []
    place = 0
    for character in text:
        width = 2 if ord(character) > ONE_UNIT_MAX else 1
        if not _DROPPED.match(character):
            kept.append(_CONTROL.sub(" ", character))
            new_place += [place + step for step in range(1, width + 1)]
            place += width
        else:
            new_place += [place] * width
    cleaned = "".join(kept)
    right = cleaned.rstrip(" \n\u00a0")
    moved = [
        (
            new_place[min(raw.offset, len(new_place) - 1)],
            new_place[min(raw.end, len(new_place) - 1)],
            raw.data,
        )
        for raw in entities
    ]
    first_entity = min((start for start, _, _ in moved), default=len(right))
    lead = min(len(right) - len(right.lstrip(" \n")), first_entity)
    end = units(right)
    fixed = [
        Raw(start - lead, min(stop, end) - start, data)
        for start, stop, data in moved
        if min(stop, end) > start
    ]
    return right[lead:], fixed


def arrange(entities: list[Raw]) -> list[Raw]:
    """Nest, split and merge as the server does."""
    solid = _without_overlap([raw for raw in entities if raw.kind not in STYLES + BLOCKS])
    blocks = _without_overlap([raw for raw in entities if raw.kind in BLOCKS])
    opaque = [raw for raw in solid if raw.kind in {"code", "pre"}]
    borders = sorted({edge for raw in solid + blocks for edge in (raw.offset, raw.end)})
    styled: list[Raw] = []
    for style in STYLES:
        spans = _merge([(raw.offset, raw.end) for raw in entities if raw.kind == style])
        for hole in opaque:
            spans = [piece for span in spans for piece in _cut(span, (hole.offset, hole.end))]
        for span in spans:
            styled += [
                Raw(start, stop - start, {"type": style})
                for start, stop in _split(span, borders, solid + blocks)
            ]
    return sorted(solid + blocks + _nest(styled), key=lambda raw: raw.order)


def _nest(styled: list[Raw]) -> list[Raw]:
    """Split styles that cross each other: the later one is cut where the earlier one ends."""
    nested: list[Raw] = []
    waiting = sorted(styled, key=lambda raw: raw.order)
    while waiting:
        raw = waiting.pop(0)
        crossed = next(
            (other for other in nested if other.offset <= raw.offset < other.end < raw.end), None
        )
        if crossed is not None:
            rest = Raw(crossed.end, raw.end - crossed.end, raw.data)
            raw = Raw(raw.offset, crossed.end - raw.offset, raw.data)
            waiting = sorted([*waiting, rest], key=lambda item: item.order)
        nested.append(raw)
    return nested


def _without_overlap(entities: list[Raw]) -> list[Raw]:
    kept: list[Raw] = []
    for raw in sorted(entities, key=lambda raw: raw.order):
        if not kept or raw.offset >= kept[-1].end:
            kept.append(raw)
    return kept


def _merge(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for start, stop in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(stop, merged[-1][1]))
        else:
            merged.append((start, stop))
    return merged


def _cut(span: tuple[int, int], hole: tuple[int, int]) -> list[tuple[int, int]]:
    pieces = [(span[0], min(span[1], hole[0])), (max(span[0], hole[1]), span[1])]
    return [(start, stop) for start, stop in pieces if start < stop]


def _split(span: tuple[int, int], borders: list[int], others: list[Raw]) -> list[tuple[int, int]]:
    """Cut a style where it would overlap another entity without nesting."""
    crossing = [
        raw
        for raw in others
        if raw.offset < span[0] < raw.end < span[1] or span[0] < raw.offset < span[1] < raw.end
    ]
    edges = {edge for raw in crossing for edge in (raw.offset, raw.end)}
    cuts = [border for border in borders if border in edges and span[0] < border < span[1]]
    points = [span[0], *cuts, span[1]]
    return list(pairwise(points))


def _public(raw: Raw) -> Json:
    data = {name: value for name, value in raw.data.items() if name != "maybe_language"}
    return {"offset": raw.offset, "length": raw.length, **data}
