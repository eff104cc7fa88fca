"""Cuts a text into spans that can be quoted: headings, list items and sentences.

Every span is an exact piece, `text[start:end]`; spans are in order, never overlap, are never empty
and neither begin nor end with a blank. Code, comments, tables, rules and lines without a word give
none. One pass over lines, so the cost grows with the text and not faster.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

SPAN_CHARS_MAX: Final = 600
"""Longer runs without a sentence end are cut at a pause."""

_FENCE: Final = re.compile(r"^ {0,3}(```|~~~)")
_HEADING: Final = re.compile(r"^ {0,3}#{1,6}[ \t]+(?P<text>.*?)[ \t]*#*$")
_ITEM: Final = re.compile(r"^[ \t]*(?:[-*+•‣◦▪]|\d{1,3}[.)])[ \t]+")
_UNDERLINE: Final = re.compile(r"^ {0,3}(=+|-+)$")
_STAMP: Final = re.compile(
    r"^[ \t]*[\[(]?\d{1,2}:\d{2}(?::\d{2})?(?:[.,]\d{1,3})?[\])]?[ \t]*(?:[-\u2013][ \t]*)?"
)
_ARROW: Final = re.compile(r"\d[ \t]*-->[ \t]*\d")
_QUOTE_MARK: Final = re.compile(r"^[ \t]*(?:>[ \t]?)+")
_CODE_INDENT: Final = re.compile(r"^(?: {4}|\t)")
# Enders that need a blank behind them, and enders of scripts that write without one.
_END: Final = re.compile(
    r"[.!?…؟۔։።᙮]+[\"'”’»)\]*_`]*(?=\s)|[。！？｡।॥။។]+[」』”’）》]*"  # noqa: RUF001 - real enders
)
_SHORT_WORDS: Final = (
    "mr mrs ms dr prof st vs cf eg ie e.g i.e etc al approx ca inc ltd co corp dept est ed eds u.s"
    " u.k z.b d.h bzw vgl usw resp"
)
_BEFORE_FIGURE_WORDS: Final = (
    "no nos fig figs sec eq vol pp op nr abs art jan feb mar apr jun jul aug sep sept oct nov dec"
)
_SHORT: Final = frozenset(_SHORT_WORDS.split())
_BEFORE_FIGURE: Final = frozenset(_BEFORE_FIGURE_WORDS.split())
"""Abbreviations only where a figure follows: "No. 5", but "He said no."."""
_LABEL: Final = re.compile(
    r"^(?:- |>> )?(?P<who>[^\W\d_a-z][\w.'-]{0,30}(?: [^\W\d_a-z][\w.'-]{0,30}){0,3}):[ \t]+(?=\S)",
    re.MULTILINE,
)
_NO_SPEAKERS: Final = frozenset(
    {"note", "warning", "example", "else", "changed", "tip", "important", "caution", "hint", "see"}
)
SPEAKER_TURNS_MIN: Final = 3

_PAUSE: Final = re.compile(r"[;:,、，；：]\s*|\s+")  # noqa: RUF001 - pauses of real scripts

Kind = Literal["heading", "item", "sentence"]


@dataclass(frozen=True, slots=True)
class Span:
    """`text[start:end]`, what it is, and which span of kind heading stands above it."""

    start: int
    end: int
    kind: Kind
    heading: int | None = None


@dataclass(frozen=True, slots=True)
class _Block:
    """Lines that belong together."""

    start: int
    end: int
    kind: Kind


def spans(text: str) -> tuple[Span, ...]:
    """Every quotable span of a text, in order. Pure."""
    found: list[Span] = []
    heading: int | None = None
    speakers = _speakers(text)
    for block in _blocks(text):
        if block.kind == "heading":
            start, end = _trimmed(text, block.start, block.end)
            if _speaks(text, start, end):
                heading = len(found)
                found.append(Span(start, end, "heading"))
            continue
        label = _LABEL.match(text, block.start, block.end)
        said = label.end() if label and label["who"] in speakers else block.start
        for start, end in _sentences(text, said, block.end):
            found.append(Span(start, end, block.kind, heading))
    return tuple(found)


def _speakers(text: str) -> frozenset[str]:
    """Names that stand before a colon at the beginning of several lines, as in a transcript."""
    counts = Counter(found["who"] for found in _LABEL.finditer(text))
    return frozenset(
        who
        for who, count in counts.items()
        if count >= SPEAKER_TURNS_MIN and who.casefold() not in _NO_SPEAKERS
    )


# --- lines to blocks ----------------------------------------


def _lines(text: str) -> Iterator[tuple[int, int]]:
    start = 0
    while start < len(text):
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        yield start, end
        start = end + 1


def _visible_lines(text: str) -> Iterator[tuple[int, int]]:
    """Lines outside fenced code and comments; what is hidden reads as a blank line."""
    fence: str | None = None
    comment = False
    for start, end in _lines(text):
        line = text[start:end]
        mark = _FENCE.match(line)
        if fence is not None:
            if mark and mark[1] == fence:
                fence = None
            yield end, end
        elif comment:
            comment = "-->" not in line
            yield end, end
        elif mark:
            fence = mark[1]
            yield end, end
        elif line.lstrip().startswith("<!--"):
            comment = "-->" not in line
            yield end, end
        else:
            yield start, end


def _blocks(text: str) -> Iterator[_Block]:
    """Headings, list items and paragraphs; a line that continues joins the block above it."""
    current: _Block | None = None
    for start, end in _visible_lines(text):
        line = text[start:end]
        if current and current.kind == "sentence" and _UNDERLINE.match(line):
            yield _Block(current.start, current.end, "heading")
            current = None
            continue
        opened = _opened(line, start, end, after_blank=current is None)
        if opened == "continues" and current:
            current = _Block(current.start, end, current.kind)
            continue
        if current:
            yield current
        current = None
        if isinstance(opened, _Block):
            if opened.kind == "heading":
                yield opened
            else:
                current = opened
    if current:
        yield current


def _opened(
    line: str, start: int, end: int, *, after_blank: bool
) -> _Block | Literal["continues"] | None:
    """What a line opens: a block, the next line of the block above, or nothing quotable."""
    if not line.strip() or _ARROW.search(line) or _is_table(line):
        return None
    heading = _HEADING.match(line)
    if heading:
        return _Block(start + heading.start("text"), start + heading.end("text"), "heading")
    item = _ITEM.match(line)
    if item:
        return _Block(start + item.end(), end, "item")
    if after_blank and _CODE_INDENT.match(line):
        return None
    stamp = _STAMP.match(line) or _QUOTE_MARK.match(line)
    if stamp or after_blank:
        return _Block(start + (stamp.end() if stamp else 0), end, "sentence")
    return "continues"


def _is_table(line: str) -> bool:
    return line.count("|") > 1 or line.lstrip().startswith("|")


# --- blocks to sentences ----------------------------------------


def _sentences(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    at = start
    for found in _END.finditer(text, start, end):
        if found.end() < end and not _ends(text, at, found):
            continue
        yield from _cut(text, at, found.end())
        at = found.end()
    yield from _cut(text, at, end)


def _ends(text: str, start: int, found: re.Match[str]) -> bool:
    """Whether an ender really ends a sentence: not an abbreviation, initial or list number."""
    following = text[found.end() : found.end() + 2].strip()
    if following and following[0].islower():
        return False
    if not found[0].startswith(".") or found[0].startswith(".."):
        return True
    word = text[max(start, found.start() - 12) : found.start()].split()
    last = word[-1].lstrip("([\"'“").casefold() if word else ""
    if last in _SHORT or (len(last) == 1 and last.isalpha()):
        return False
    if last in _BEFORE_FIGURE and following[:1].isdigit():
        return False
    return not (last.isdigit() and found.start() - start <= len(last) + 1)


def _cut(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """The piece without outer blanks, cut at pauses while it is too long."""
    start, end = _trimmed(text, start, end)
    while end - start > SPAN_CHARS_MAX:
        middle = start + SPAN_CHARS_MAX // 2
        pauses = [found.end() for found in _PAUSE.finditer(text, middle, start + SPAN_CHARS_MAX)]
        at = pauses[-1] if pauses else start + SPAN_CHARS_MAX
        while at < end and unicodedata.combining(text[at]):
            at += 1
        piece = _trimmed(text, start, at)
        if _speaks(text, *piece):
            yield piece
        start, end = _trimmed(text, at, end)
    if _speaks(text, start, end):
        yield start, end


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    return start, end


def _speaks(text: str, start: int, end: int) -> bool:
    """Whether a piece holds a letter at all."""
    return any(character.isalpha() for character in text[start:end])
