"""Projections for the agents' tests: real quoted blocks around real bodies.

The authority lines are left out; an agent's work depends on its material alone.
"""

from __future__ import annotations

from collections.abc import Sequence

from runtime.domain.material import body_text
from runtime.domain.projection import Agent, Projection
from runtime.domain.proposal import Analysis, Draft, Notes, Result, Strategy
from runtime.domain.quoting import Header, Kind, quote
from runtime.domain.values import Record, Trust, sha256


def block(kind: Kind, text: str, *, start: int = 0, whole: str | None = None) -> str:
    """One block; `whole` is the text that this one is a window of."""
    everything = text if whole is None else whole
    header = Header(
        kind=kind,
        record=f"{kind}-1",
        trust=Trust.EXTERNAL,
        start=start,
        end=start + len(text),
        total=len(everything),
        whole=sha256(everything.encode()),
    )
    return quote(header, text)


def body(kind: Kind, value: Record) -> str:
    """A block with a result's body."""
    return block(kind, body_text(value))


def projection(agent: Agent, *blocks: str, operation: str = "op-1") -> Projection:
    """A projection of these blocks."""
    text = f"PROJECTION for {agent}\n\n" + "\n".join(blocks)
    digest = sha256(text.encode())
    return Projection(
        id=digest,
        operation=operation,
        epoch=1,
        agent=agent,
        step=agent,
        basis=digest,
        manifest="{}",
        manifest_digest=digest,
        rendered_digest=digest,
        text=text,
    )


def reading(source: str, start: int = 0, end: int | None = None) -> Projection:
    """What a reader of a part of the source is shown."""
    part = source[start:end]
    return projection("reader", block("source", part, start=start, whole=source))


def merging(notes: Sequence[Result]) -> Projection:
    """What the analyst is shown."""
    return projection(
        "analyst", *(body("notes", item) for item in notes if isinstance(item, Notes))
    )


def planning(analysis: Analysis, *more: str) -> Projection:
    """What the strategist is shown."""
    return projection("strategist", body("revision", analysis), *more)


def writing(analysis: Analysis, strategy: Strategy) -> Projection:
    """What the writer is shown."""
    return projection("writer", body("revision", strategy), body("revision", analysis))


def reviewing(analysis: Analysis, strategy: Strategy, draft: Draft) -> Projection:
    """What the reviewer is shown."""
    blocks = [body("revision", item) for item in (draft, strategy, analysis)]
    return projection("reviewer", *blocks)
