r"""One normalised text, to which every later position refers.

Same bytes, same text, on every machine: the rules below are fixed, in this order, and applying
them twice changes nothing.

1. Line breaks: CR LF, CR, VT, FF, FS, GS, RS, NEL, LS and PS become ``\n``, the only line break.
2. Removed: other control characters except the tab, noncharacters, and characters nobody sees but
   a model reads (tags, bidirectional overrides and isolates, zero-width space, joiner and soft
   hyphen kinds). A note counts each group that could mislead a reader. ZWJ, ZWNJ, the two plain
   direction marks and emoji selectors stay, since real writing needs them. A lone surrogate
   becomes U+FFFD.
3. NFC, so that what a person types and what a quote finds are the same characters. It comes after
   the removals, because they can bring a letter and its accent together.
4. Blanks at the ends of lines and blank lines at both ends of the text go.

Untrusted text stays text: nothing here interprets headings or instructions in it.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Literal

from pydantic import BaseModel, ConfigDict

from connectors.errors import EmptySource, SourceTooLarge
from connectors.sources.limits import MARKS_MAX, TEXT_CHARS_MAX

Format = Literal["text", "markdown", "html", "vtt", "srt", "pdf", "docx"]

LINE_BREAKS = "\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"
BIDI_CONTROLS = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"

_BREAK = re.compile(f"\r\n|[{LINE_BREAKS}]")
_CONTROL = re.compile("[\x00-\x08\x0e-\x1b\x1f\x7f-\x84\x86-\x9f]")
_BIDI = re.compile(f"[{BIDI_CONTROLS}]")
_HIDDEN = re.compile(
    "[\u00ad\u180e\u200b\u2060-\u2065\u206a-\u206f\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e0fff\ufdd0-\ufdef"
    + "".join(
        f"{chr(plane + 0xFFFE)}{chr(plane + 0xFFFF)}" for plane in range(0, 0x110000, 0x10000)
    )
    + "]"
)
_SURROGATE = re.compile("[\ud800-\udfff]")
STACKED_MAX = 64
"""Real writing stacks a few marks on a letter; NFC sorts a run of them in quadratic time."""


class Mark(BaseModel):
    """A labelled position: where a page or a moment of speech begins in the text."""

    model_config = ConfigDict(frozen=True)

    start: int
    label: str


class SourceText(BaseModel):
    """What a source says. `notes` are for the operator: what was left out or changed, and why."""

    model_config = ConfigDict(frozen=True)

    text: str
    format: Format
    title: str | None = None
    notes: tuple[str, ...] = ()
    pages: int | None = None
    marks: tuple[Mark, ...] = ()


class Section(BaseModel):
    """A piece of a source as its reader found it, before normalisation."""

    model_config = ConfigDict(frozen=True)

    text: str
    label: str | None = None


class Extract(BaseModel):
    """What a reader took out of the bytes."""

    model_config = ConfigDict(frozen=True)

    sections: tuple[Section, ...]
    title: str | None = None
    notes: tuple[str, ...] = ()
    pages: int | None = None


def normalised(raw: str) -> tuple[str, dict[str, int]]:
    """The text by the rules above, and how many characters of each misleading group went."""
    text = _BREAK.sub("\n", raw)
    text, broken = _SURROGATE.subn("\ufffd", text)
    text, controls = _CONTROL.subn("", text)
    text, bidi = _BIDI.subn("", text)
    text, hidden = _HIDDEN.subn("", text)
    composed = unicodedata.normalize("NFC", text)
    # Line by line: a pattern for blanks before a line break is quadratic where none follows.
    text = "\n".join([line.rstrip(" \t") for line in composed.split("\n")]).strip("\n")
    removed = {"control": controls, "bidi": bidi, "hidden": hidden, "broken": broken}
    return text, {group: count for group, count in removed.items() if count}


def stacked(text: str) -> bool:
    """Whether combining marks stand in a run so long that composing it would take long."""
    if text.isascii():
        return False
    run = 0
    for char in text:
        run = run + 1 if unicodedata.combining(char) else 0
        if run > STACKED_MAX:
            return True
    return False


_NOTES = {
    "control": "Control characters removed: {count}.",
    "bidi": "Characters that reverse or isolate the reading direction removed: {count}.",
    "hidden": "Invisible characters removed: {count}.",
    "broken": "Broken characters replaced by \ufffd: {count}.",
}


def source_text(extract: Extract, form: Format, name: str) -> SourceText:
    """Join a reader's sections into the one text; raises EmptySource or SourceTooLarge."""
    pieces: list[str] = []
    marks: list[Mark] = []
    removed: dict[str, int] = {}
    length = 0
    for section in extract.sections:
        text, counts = normalised(section.text)
        for group, count in counts.items():
            removed[group] = removed.get(group, 0) + count
        if not text.strip():
            continue
        length += 2 if pieces else 0
        if section.label is not None:
            marks.append(Mark(start=length, label=section.label))
        pieces.append(text)
        length += len(text)
        if length > TEXT_CHARS_MAX:
            raise SourceTooLarge(name=name, found=length, limit=TEXT_CHARS_MAX, unit="characters")
    if not pieces:
        raise EmptySource(name=name)
    notes = [*extract.notes, *(_NOTES[g].format(count=removed[g]) for g in _NOTES if g in removed)]
    if len(marks) > MARKS_MAX:
        notes.append(f"Only the first {MARKS_MAX} of {len(marks)} page or time marks were kept.")
    return SourceText(
        text="\n\n".join(pieces),
        format=form,
        title=_title(extract.title),
        notes=tuple(notes),
        pages=extract.pages,
        marks=tuple(marks[:MARKS_MAX]),
    )


TITLE_CHARS_MAX = 200


def _title(raw: str | None) -> str | None:
    """A declared title as one bounded line."""
    if raw is None:
        return None
    line = " ".join(normalised(raw)[0].split())
    return line[:TITLE_CHARS_MAX].rstrip() or None
