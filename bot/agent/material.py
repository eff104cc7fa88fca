"""What a projection shows, as typed pieces: read back from its quoted blocks.

Only `runtime.domain.quoting` decides where a block begins and ends, so nothing that a source says
can pass for a block. A body that is not a result of ours is left out, not guessed at.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, Final

from runtime.domain.material import body_of
from runtime.domain.proposal import Analysis, Draft, Notes, Quote, Result, Strategy
from runtime.domain.quoting import Block, Kind, unquote
from runtime.errors import BadInput

_POLICY_LINE: Final = re.compile(
    r"^- blocked terms: (?P<terms>\[.*\]) \[policies/current\]$", re.MULTILINE
)


@dataclass(frozen=True, slots=True)
class Window:
    """A part of the source: its text, where it starts in the whole, and the whole's length."""

    text: str
    start: int
    total: int

    @property
    def whole(self) -> bool:
        """Whether this is all of the source."""
        return self.start == 0 and self.end == self.total

    @property
    def end(self) -> int:
        """One past its last character, in the whole."""
        return self.start + len(self.text)


@dataclass(frozen=True, slots=True)
class Material:
    """The blocks of one projection, by what they are."""

    blocks: tuple[Block, ...]
    results: tuple[Result, ...]
    blocked_terms: tuple[str, ...] = ()
    """The policy's, from the projection's own lines."""

    @property
    def windows(self) -> tuple[Window, ...]:
        """The shown parts of the source, in the projection's order."""
        return tuple(
            Window(block.text, block.header.start, block.header.total)
            for block in self.blocks
            if block.header.kind == "source"
        )

    @property
    def notes(self) -> tuple[Notes, ...]:
        """The readers' notes, in the order of the source."""
        found = [result for result in self.results if isinstance(result, Notes)]
        first = [min((quote.start for quote in notes.quotes), default=0) for notes in found]
        return tuple(found[at] for at in sorted(range(len(found)), key=lambda at: first[at]))

    @property
    def analysis(self) -> Analysis | None:
        """The shown analysis."""
        return next((item for item in self.results if isinstance(item, Analysis)), None)

    @property
    def strategy(self) -> Strategy | None:
        """The shown strategy."""
        return next((item for item in self.results if isinstance(item, Strategy)), None)

    @property
    def draft(self) -> Draft | None:
        """The shown draft."""
        return next((item for item in self.results if isinstance(item, Draft)), None)

    @property
    def quotes(self) -> tuple[Quote, ...]:
        """Every placed quote that is shown: the analysis' own, or else the notes'."""
        if self.analysis is not None:
            return self.analysis.quotes
        return tuple(quote for notes in self.notes for quote in notes.quotes)

    def texts(self, *kinds: Kind) -> tuple[str, ...]:
        """The texts of the blocks of these kinds."""
        return tuple(block.text for block in self.blocks if block.header.kind in kinds)

    def rows(self, kind: Kind) -> tuple[dict[str, Any], ...]:
        """The lines of the blocks of a kind that are JSON objects."""
        parsed = (_object(line) for text in self.texts(kind) for line in text.split("\n"))
        return tuple(row for row in parsed if row is not None)


def material(projection: str) -> Material:
    """Read a projection's text. Raises BadInput if its blocks are damaged."""
    blocks = unquote(projection)
    found = (_result(block) for block in blocks if block.header.kind in {"notes", "revision"})
    results = tuple(result for result in found if result is not None)
    return Material(blocks, results, _blocked_terms(projection))


def _blocked_terms(projection: str) -> tuple[str, ...]:
    """Lines of material begin with a bar, so none of them can pass for the policy's."""
    said = _POLICY_LINE.search(projection)
    listed = _json(said["terms"]) if said else None
    return tuple(str(term) for term in listed) if isinstance(listed, list) else ()


def _result(block: Block) -> Result | None:
    try:
        return body_of(block.text)
    except BadInput:
        return None


def _object(text: str) -> dict[str, Any] | None:
    value = _json(text)
    return value if isinstance(value, dict) else None


def _json(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return None
