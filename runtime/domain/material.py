"""Material: what an agent may read but not obey, with its place, its trust and its rank.

Lower ranks are kept longer when the budget is short. Bodies of results are written as lines of
JSON, one list entry per line, so that a cut between lines leaves whole entries. `reading_plan` says
which windows of a source are read; what it leaves out is an omission that the analyst is shown.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Final, Literal

from pydantic import Field, TypeAdapter, ValidationError

from runtime.domain.canonical import canonical_text
from runtime.domain.proposal import Analysis, Quote, Result
from runtime.domain.quoting import Header, Kind
from runtime.domain.values import Digest, Record, Trust, sha256
from runtime.errors import BadInput

WINDOW_CHARS: Final = 24_000
OVERLAP_CHARS: Final = 600
"""Neighbouring windows share this much: a sentence at a border stands whole in one of them."""
WINDOWS_MAX: Final = 24

LISTS: Final = ("quotes", "sections", "findings")
"""The fields of results whose entries get a line each."""

_RESULT: Final[TypeAdapter[Any]] = TypeAdapter(Result)


class Material(Record):
    """A text with where it comes from. `start` and `total` count characters of the whole.

    `cut` says how it may be shortened: not at all, between lines, or anywhere (at a line if near).
    """

    kind: Kind
    record: str
    label: str = ""
    trust: Trust
    start: int = 0
    total: int
    whole: Digest
    text: str
    rank: int
    cut: Literal["whole", "lines", "chars"]

    def header(self, chars: int) -> Header:
        """The header of a block that shows the first `chars` of the text."""
        return Header(
            kind=self.kind,
            record=self.record,
            label=self.label,
            trust=self.trust,
            start=self.start,
            end=self.start + chars,
            total=self.total,
            whole=self.whole,
        )


class Omission(Record):
    """Something that is not shown, why, and how to get it. `end` 0 means all or unknown."""

    record: str
    label: str = ""
    start: int = 0
    end: int = 0
    why: Literal["budget", "not read", "bounded list", "no result", "unreadable"]
    how: str = Field(max_length=300)


def material(
    kind: Kind,
    record: str,
    text: str,
    *,
    trust: Trust,
    rank: int,
    label: str = "",
    cut: Literal["whole", "lines", "chars"] = "whole",
) -> Material:
    """Material that is shown from its beginning and is all there is."""
    try:
        digest = sha256(text.encode())
    except UnicodeEncodeError:
        raise BadInput(record=record, cause="lone surrogate") from None
    return Material(
        kind=kind,
        record=record,
        label=label,
        trust=trust,
        total=len(text),
        whole=digest,
        text=text,
        rank=rank,
        cut=cut,
    )


def reading_plan(total_chars: int) -> tuple[range, ...]:
    """Which windows of a source are read, in order and evenly spread: all of it, or at most 24."""
    if total_chars <= 0:
        return ()
    last = total_chars - WINDOW_CHARS
    if last <= 0:
        return (range(total_chars),)
    stride = WINDOW_CHARS - OVERLAP_CHARS
    count = min(-(-last // stride) + 1, WINDOWS_MAX)
    starts = [index * last // (count - 1) for index in range(count)]
    return tuple(range(start, start + WINDOW_CHARS) for start in starts)


def unread(plan: Iterable[range], total_chars: int) -> tuple[range, ...]:
    """What a plan leaves out."""
    gaps: list[range] = []
    seen = 0
    for window in plan:
        if window.start > seen:
            gaps.append(range(seen, window.start))
        seen = max(seen, window.stop)
    if seen < total_chars:
        gaps.append(range(seen, total_chars))
    return tuple(gaps)


def body_text(body: Record) -> str:
    """A result as lines of canonical JSON: first its plain fields, then each list entry."""
    plain = body.model_dump(mode="json")
    entries = [(name, entry) for name in LISTS for entry in plain.pop(name, ())]
    return "\n".join([canonical_text(plain), *(canonical_text({n: e}) for n, e in entries)])


def body_of(text: str) -> Result:
    """The result that these lines say; entries that were cut off are missing from it.

    Raises:
        BadInput: these are not the lines of a result.
    """
    whole: dict[str, Any] = {}
    try:
        for line in text.split("\n"):
            for name, value in json.loads(line).items():
                if name in LISTS:
                    whole.setdefault(name, []).append(value)
                else:
                    whole[name] = value
        if whole.get("result") in {"notes", "review"}:
            whole.setdefault("quotes" if whole["result"] == "notes" else "findings", [])
        result: Result = _RESULT.validate_python(whole)
    except (ValidationError, ValueError, AttributeError):
        raise BadInput(text="body", cause="not the lines of a result") from None
    return result


def foremost(analysis: Analysis, ids: Iterable[str]) -> Analysis:
    """The same analysis with these quotes first, so that a cut takes the others."""
    wanted = frozenset(ids)
    quotes: tuple[Quote, ...] = analysis.quotes
    ordered = sorted(quotes, key=lambda quote: quote.id not in wanted)
    return analysis.model_copy(update={"quotes": tuple(ordered)})
