"""WebVTT and SRT: what was said, as paragraphs with speakers and times.

Cues are fragments of a few words; they are joined until the speaker changes, the speech pauses or
a paragraph is long. Each paragraph becomes a section labelled with its start time. Live captions
repeat the previous line in each cue ("rolling"); what a cue repeats of the one before is dropped,
and a note counts it. Styles, regions and comments are not speech. Damaged cues are skipped and
counted; a file in which no cue is readable is refused. One pass, no backtracking.
"""

from __future__ import annotations

import html
import re
from typing import NamedTuple

from connectors.errors import NoTextInSource
from connectors.sources.text import Extract, Section, normalised

_TIMING = re.compile(
    r"^\s*(?:(\d{1,4}):)?(\d{1,2}):(\d{1,2})[.,](\d{1,3})\s+-->\s+"
    r"(?:(\d{1,4}):)?(\d{1,2}):(\d{1,2})[.,](\d{1,3})(?:\s|$)"
)
_VOICE = re.compile(r"<v(?:\.[^ \t>]{0,80})?[ \t]+([^>]{1,120})>")
_TAG = re.compile(r"</?[A-Za-z0-9:.][^<>]{0,200}>|</>|<[bicu]>|\{\\an?\d{1,2}\}")
_SAID_BY = re.compile(r"^(?:-\s*|>>\s*)?([A-ZÀ-Þ][\w .'-]{0,40}):\s+(?=\S)")

PAUSE_MS = 3_000
"""A pause this long between cues ends a paragraph."""
PARAGRAPH_CHARS = 800
"""A paragraph ends at the next sentence end after this many characters."""
PARAGRAPH_CHARS_MAX = 2_000
"""Speech without any punctuation is cut here."""


class Cue(NamedTuple):
    """One caption as the file has it, in milliseconds."""

    start: int
    end: int
    speaker: str | None
    lines: tuple[str, ...]


class _Said(NamedTuple):
    start: int
    end: int
    speaker: str | None
    text: str


def read_cues(text: str, name: str) -> Extract:
    """Paragraphs of speech; raises NoTextInSource if no cue says anything."""
    cues, damaged = _cues(normalised(text)[0])
    said, repeated = _unrolled(cues)
    if not said:
        raise NoTextInSource(name=name, format="a transcript", pages=0)
    sections = tuple(_paragraphs(said))
    notes = [f"Transcript from {_clock(said[0].start)} to {_clock(max(s.end for s in said))}."]
    if repeated:
        notes.append(f"Lines that captions repeat while they roll, left out: {repeated}.")
    if damaged:
        notes.append(f"Captions that could not be read, left out: {damaged}.")
    return Extract(sections=sections, notes=tuple(notes))


def _cues(text: str) -> tuple[list[Cue], int]:
    """The cues in file order and how many blocks were neither cue nor known matter."""
    cues: list[Cue] = []
    damaged = 0
    for index, block in enumerate(re.split(r"\n[ \t]*(?:\n[ \t]*)+", text)):
        lines = block.split("\n")
        first = lines[0].strip()
        at = next((i for i, line in enumerate(lines[:2]) if "-->" in line), None)
        if at is None:
            known = (index == 0 and first.startswith("WEBVTT")) or first.split(" ")[0] in {
                "NOTE",
                "STYLE",
                "REGION",
            }
            if not known and first:
                damaged += not _continued(cues, lines)
            continue
        timing = _TIMING.match(lines[at])
        if timing is None:
            damaged += 1
            continue
        speaker, spoken = _spoken(lines[at + 1 :])
        cues.append(Cue(_ms(timing.groups()[:4]), _ms(timing.groups()[4:]), speaker, spoken))
    return cues, damaged


def _continued(cues: list[Cue], lines: list[str]) -> bool:
    """SRT files have blank lines inside captions: such a block belongs to the cue before."""
    if not cues or "-->" in "\n".join(lines) or all(line.strip().isdigit() for line in lines):
        return False
    speaker, spoken = _spoken(lines)
    last = cues[-1]
    cues[-1] = last._replace(lines=last.lines + spoken, speaker=last.speaker or speaker)
    return True


def _spoken(lines: list[str]) -> tuple[str | None, tuple[str, ...]]:
    """The speaker, if the caption names one, and its lines without markup."""
    speaker: str | None = None
    kept: list[str] = []
    for line in lines:
        voice = _VOICE.search(line)
        plain = html.unescape(_TAG.sub("", _VOICE.sub("", line)))
        plain = " ".join(plain.split())
        named = _SAID_BY.match(plain)
        if voice is not None:
            speaker = speaker or " ".join(html.unescape(voice.group(1)).split())
        elif named is not None and not kept and speaker is None:
            speaker, plain = named.group(1), plain[named.end() :]
        if plain:
            kept.append(plain)
    return speaker, tuple(kept)


def _unrolled(cues: list[Cue]) -> tuple[list[_Said], int]:
    """Each line once, where a cue only repeats the end of the cue before it."""
    said: list[_Said] = []
    repeated = 0
    before: tuple[str, ...] = ()
    until = 0
    for cue in cues:
        lines = cue.lines
        touching = cue.start - until <= PAUSE_MS
        drop = _overlap(before, lines) if touching else 0
        repeated += drop
        fresh = lines[drop:]
        if not lines:
            continue
        before, until = lines, cue.end
        if fresh:
            said.append(_Said(cue.start, cue.end, cue.speaker, " ".join(fresh)))
    return said, repeated


def _overlap(before: tuple[str, ...], lines: tuple[str, ...]) -> int:
    """How many first lines of a cue are the last lines of the one before."""
    for count in range(min(len(before), len(lines), 4), 0, -1):
        if before[-count:] == lines[:count]:
            return count
    return 0


def _paragraphs(said: list[_Said]) -> list[Section]:
    sections: list[Section] = []
    words: list[str] = []
    length = 0
    start = said[0]
    last = said[0]
    for piece in said:
        new_speaker = piece.speaker is not None and piece.speaker != start.speaker
        full = (length >= PARAGRAPH_CHARS and last.text.endswith((".", "!", "?", "…", "。"))) or (
            length >= PARAGRAPH_CHARS_MAX
        )
        if words and (new_speaker or full or piece.start - last.end > PAUSE_MS):
            sections.append(_section(start, words))
            words, length = [], 0
        if not words:
            # Captions often name a speaker once; until another is named it is the same one.
            known = piece.speaker or start.speaker
            start = piece._replace(speaker=known)
        words.append(piece.text)
        length += len(piece.text) + 1
        last = piece
    sections.append(_section(start, words))
    return sections


def _section(start: _Said, words: list[str]) -> Section:
    text = " ".join(words)
    if start.speaker is not None:
        text = f"{start.speaker}: {text}"
    return Section(text=text, label=_clock(start.start))


def _ms(parts: tuple[str | None, ...]) -> int:
    hours, minutes, seconds, fraction = parts
    whole = (int(hours or 0) * 60 + int(minutes or 0)) * 60 + int(seconds or 0)
    return whole * 1000 + int((fraction or "0").ljust(3, "0"))


def _clock(ms: int) -> str:
    seconds = ms // 1000
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
