"""Telegram HTML: escaping, names, lengths in UTF-16 units, and splitting on safe borders.

Keeps: every inserted value is escaped; a name cannot change the direction of the text around it;
each piece of a split text is accepted alone (tags closed and reopened, no broken character), and
the pieces in order are the text.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

TEXT_UNITS_MAX: Final = 4096
"""The Bot API's limit for a message, in UTF-16 units of the visible text."""
CAPTION_UNITS_MAX: Final = 1024
NAME_CHARS_MAX: Final = 64
CLUSTER_CHARS_MAX: Final = 16
"""A longer run of marks on one character is decoration and may be cut."""

FSI: Final = "\u2068"
PDI: Final = "\u2069"
_DIRECTION: Final = frozenset(
    "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
)
_UNSEEN: Final = frozenset("\u180e\u200b\u2060\u2061\u2062\u2063\u2064\ufeff")
"""Characters of no width: a word may hide them, or be cut by them from a list of blocked terms."""
_TAGS: Final = ("\U000e0000", "\U000e007f")
"""A second, invisible alphabet: whole sentences can be written in it."""
_BLANK_LETTERS: Final = frozenset("\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
_JOINER: Final = "\u200d"

_TOKEN: Final = re.compile(r"<[^<>]*>|&(?:#\d{1,7}|#x[0-9a-fA-F]{1,6}|[a-zA-Z]{2,8});|.", re.DOTALL)
_TAG_NAME: Final = re.compile(r"</?\s*([a-zA-Z][a-zA-Z0-9-]*)")


def units(text: str) -> int:
    """Length in UTF-16 units, as Telegram counts."""
    return len(text) + sum(1 for char in text if char > "\uffff")


def whole(text: str) -> str:
    """The text with lone surrogates replaced, so that it has UTF-8 bytes."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def escape(text: str) -> str:
    """Text as Telegram HTML shows it. What has no shape or turns the direction is named.

    Names that `name` made stay isolated; isolation that does not close is named like the rest.
    """
    sound = whole(text)
    safe = frozenset((FSI, PDI)) if _isolates_close(sound) else frozenset()
    shown = "".join(char if char in safe else _shown(char) for char in sound)
    for char, entity in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ('"', "&quot;")):
        shown = shown.replace(char, entity)
    return shown


def _isolates_close(text: str) -> bool:
    depth = 0
    for char in text:
        depth += (char == FSI) - (char == PDI)
        if depth not in {0, 1}:
            return False
    return depth == 0


def _shown(char: str) -> str:
    if char in "\n\t":
        return char
    hidden = char in _DIRECTION or char in _UNSEEN or _TAGS[0] <= char <= _TAGS[1]
    if hidden or unicodedata.category(char) == "Cc":
        return f"⟨U+{ord(char):04X}⟩"
    return char


def hidden_characters(text: str) -> int:
    """How many characters `escape` has to name because a reader would not see them."""
    return sum(1 for char in whole(text) if _shown(char) != char)


def one_line(text: str, chars: int) -> str:
    """The text on one line, at most `chars` long, cut at a whole character."""
    flat = " ".join(whole(text).split())
    return flat if len(flat) <= chars else flat[: chars - 1].rstrip() + "…"


def name(first: str, last: str, id_: int) -> str:
    """A person's name for display: one line, no controls, isolated in direction.

    A name without a letter or digit gets the numeric ID; one without anything visible is only that.
    """
    kept = "".join(
        char
        for char in whole(f"{first} {last}")
        if char.isspace() or unicodedata.category(char) not in {"Cc", "Cf", "Cs", "Co", "Cn"}
    )
    flat = one_line(kept, NAME_CHARS_MAX)
    if not any(_visible(char) for char in flat):
        return str(id_)
    if not any(char.isalnum() and _visible(char) for char in flat):
        flat = f"{flat} ({id_})"
    return f"{FSI}{flat}{PDI}"


def _visible(char: str) -> bool:
    return char not in _BLANK_LETTERS and unicodedata.category(char)[0] not in "ZCM"


def plain(html: str) -> str:
    """The visible text of Telegram HTML: the fallback when a parse is refused."""
    named = {"lt": "<", "gt": ">", "amp": "&", "quot": '"'}

    def value(match: re.Match[str]) -> str:
        token = match[0]
        if token.startswith("<") and len(token) > 1:
            return ""
        if token.startswith("&") and len(token) > 1:
            body = token[1:-1]
            if body.startswith("#"):
                digits, base = (body[2:], 16) if body[1:2] in "xX" else (body[1:], 10)
                return chr(min(int(digits, base), 0x10FFFF))
            return named.get(body, token)
        return token

    return _TOKEN.sub(value, html)


# --- splitting -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Token:
    raw: str
    units: int
    tag: str = ""
    closes: bool = False


def split_html(html: str, limit: int = TEXT_UNITS_MAX) -> list[str]:
    """Pieces of at most `limit` visible units, each accepted alone; blank ones are left out.

    Borders: a line end in the second half of a piece, else a space there, else between two
    characters as a reader sees them.
    """
    tokens = list(_tokens(html))
    pieces: list[str] = []
    stack: list[_Token] = []
    start = 0
    while start < len(tokens):
        end = _border(tokens, start, limit)
        part = tokens[start:end]
        opened = list(stack)
        stack = _after(stack, part)
        body = "".join(token.raw for token in part)
        if any(not token.tag and token.raw.strip() for token in part):
            head = "".join(token.raw for token in opened)
            tail = "".join(f"</{token.tag}>" for token in reversed(stack))
            pieces.append(head + body + tail)
        start = end
    return pieces


def _tokens(html: str) -> Iterator[_Token]:
    cluster = ""
    for match in _TOKEN.finditer(whole(html)):
        raw = match[0]
        if len(raw) == 1:
            if cluster and not _continues(cluster, raw):
                yield _Token(cluster, units(cluster))
                cluster = ""
            cluster += raw
            continue
        if cluster:
            yield _Token(cluster, units(cluster))
            cluster = ""
        if raw.startswith("&"):
            yield _Token(raw, units(plain(raw)))
        elif named := _TAG_NAME.match(raw):
            yield _Token(raw, 0, named[1].lower(), raw.startswith("</"))
    if cluster:
        yield _Token(cluster, units(cluster))


def _continues(cluster: str, char: str) -> bool:
    """Whether a reader sees `char` as part of the character before it."""
    if len(cluster) >= CLUSTER_CHARS_MAX or cluster in "\n\t ":
        return False
    if cluster[-1] == _JOINER or char == _JOINER:
        return True
    if unicodedata.combining(char) or unicodedata.category(char) in {"Mn", "Me"}:
        return True
    if "\U0001f3fb" <= char <= "\U0001f3ff" or "\U000e0020" <= char <= "\U000e007f":
        return True
    flags = "\U0001f1e6", "\U0001f1ff"
    return len(cluster) == 1 and flags[0] <= char <= flags[1] and flags[0] <= cluster <= flags[1]


def _border(tokens: list[_Token], start: int, limit: int) -> int:
    """Where the piece that begins at `start` ends."""
    size = 0
    line = space = 0
    for index in range(start, len(tokens)):
        token = tokens[index]
        size += token.units
        if size > limit:
            best = line or space or index
            return max(best, start + 1)
        if size * 2 >= limit and not token.tag:
            if token.raw == "\n":
                line = index + 1
            elif token.raw == " ":
                space = index + 1
    return len(tokens)


def _after(stack: list[_Token], part: list[_Token]) -> list[_Token]:
    """The tags that are open behind `part`."""
    opened = list(stack)
    for token in part:
        if token.tag and not token.closes:
            opened.append(token)
        elif token.tag:
            for index in range(len(opened) - 1, -1, -1):
                if opened[index].tag == token.tag:
                    del opened[index]
                    break
    return opened
