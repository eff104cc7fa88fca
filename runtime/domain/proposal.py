"""Typed results of agents: what a model may say, and nothing else.

A result is a proposal. Deterministic code checks it (`grounded`) and decides; no field of any of
these can approve, select a revision or start an effect. Quotes carry their position in the source
text, and a quote that is not there is refused: a model cannot make evidence.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from runtime.domain.values import Record

Short = Annotated[str, Field(min_length=1, max_length=300)]
Line = Annotated[str, Field(min_length=1, max_length=2_000)]


class Quote(Record):
    """An exact piece of the source text: `text == source[start:start + len(text)]`.

    `start` counts characters (code points) from the beginning of the whole source text.
    """

    id: Annotated[str, Field(pattern=r"^F[0-9]{1,5}$")]
    text: Line
    start: Annotated[int, Field(ge=0)]

    @property
    def end(self) -> int:
        """One past the last character."""
        return self.start + len(self.text)


class Notes(Record):
    """What a reader found in one window of the source."""

    result: Literal["notes"] = "notes"
    title: Annotated[str, Field(max_length=300)] = ""
    quotes: Annotated[tuple[Quote, ...], Field(max_length=40)]


class Analysis(Record):
    """The source, understood: the quotes that carry it, most telling first."""

    result: Literal["analysis"] = "analysis"
    title: Short
    topics: Annotated[tuple[Short, ...], Field(max_length=12)]
    summary: Annotated[tuple[str, ...], Field(min_length=1, max_length=8)]
    """IDs of the quotes that summarise the source."""
    quotes: Annotated[tuple[Quote, ...], Field(min_length=1, max_length=80)]


class Strategy(Record):
    """What to say, to whom and why, resting on quotes of the analysis."""

    result: Literal["strategy"] = "strategy"
    headline: Short
    audience: Short
    angle: Line
    points: Annotated[tuple[str, ...], Field(min_length=1, max_length=12)]
    """IDs of the quotes to build on, in order."""
    rationale: Line


class Section(Record):
    """One part of a draft. `quotes` are the IDs it rests on."""

    heading: Annotated[str, Field(max_length=300)] = ""
    text: Annotated[str, Field(min_length=1, max_length=8_000)]
    quotes: Annotated[tuple[str, ...], Field(max_length=20)]


class Draft(Record):
    """The text that people approve."""

    result: Literal["draft"] = "draft"
    title: Short
    sections: Annotated[tuple[Section, ...], Field(min_length=1, max_length=20)]

    @property
    def text(self) -> str:
        """The whole draft as plain text."""
        parts = [self.title]
        for section in self.sections:
            parts.extend([section.heading] if section.heading else [])
            parts.append(section.text)
        return "\n\n".join(parts)


class Review(Record):
    """A second look at a draft. It informs the approver; it decides nothing."""

    result: Literal["review"] = "review"
    verdict: Literal["ready", "doubts"]
    findings: Annotated[tuple[Line, ...], Field(max_length=12)]


class ChatAnswer(Record):
    """An answer to plain chat, from a projection. It can point at a bot command, not run one."""

    result: Literal["chat_answer"] = "chat_answer"
    text: Annotated[str, Field(min_length=1, max_length=3_500)]


class Escalation(Record):
    """The agent says that a person is needed; it becomes a needs-you item."""

    result: Literal["escalation"] = "escalation"
    reason: Line


Result = Annotated[
    Notes | Analysis | Strategy | Draft | Review | ChatAnswer | Escalation,
    Field(discriminator="result"),
]


class Thought(Record):
    """What came back from one model call: the result, who said it and what it cost."""

    value: Result
    model: Short
    input_tokens: int = 0
    output_tokens: int = 0


def grounded(quotes: tuple[Quote, ...], source: str, offset: int = 0) -> str | None:
    """Why these quotes are not in `source`, or None if each is, at its position.

    `offset` is the position of `source` in the whole text, for a window of it.
    """
    for quote in quotes:
        start = quote.start - offset
        if start < 0 or source[start : start + len(quote.text)] != quote.text:
            return f"quote {quote.id} is not in the source at {quote.start}"
    return None
