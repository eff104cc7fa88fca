"""Questions: what the bot asked a person, kept until it is answered or given up.

A question is bound to a destination, a person and a subject. It survives restarts; other people's
messages don't answer it; a wrong kind of answer leaves it open.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated, Final, Literal

from pydantic import Field

from runtime.domain.values import Digest, Id, Record, UtcTime

QUESTION_OPEN_FOR: Final = timedelta(hours=1)
ANSWER_CHARS_MAX: Final = 20_000

QuestionKind = Literal["edit_text", "reject_reason", "new_source"]


class Open(Record):
    """Waits for the person."""

    name: Literal["open"] = "open"


class Answered(Record):
    """The event `by` carried the answer."""

    name: Literal["answered"] = "answered"
    at: UtcTime
    by: Id


class Abandoned(Record):
    """The person pressed the button, or something newer replaced it."""

    name: Literal["abandoned"] = "abandoned"
    at: UtcTime


class QuestionExpired(Record):
    """Nobody answered in time."""

    name: Literal["expired"] = "expired"
    at: UtcTime


QuestionState = Annotated[
    Open | Answered | Abandoned | QuestionExpired, Field(discriminator="name")
]

TRANSITIONS: Final[dict[str, tuple[str, ...]]] = {
    "open": ("answered", "abandoned", "expired"),
    "answered": (),
    "abandoned": (),
    "expired": (),
}


class Question(Record):
    """`subject` is the approval (or job) asked about, `digest` the content that was shown.

    `place` joins destination and person: at most one question is open per place; a newer one
    abandons it.
    """

    id: Id
    kind: QuestionKind
    place: Id
    destination: Id
    person: Id
    subject: Id
    digest: Digest | None = None
    text: Annotated[str, Field(max_length=1_000)]
    asked_at: UtcTime
    expires_at: UtcTime
    state: QuestionState


def place(destination: str, person: str) -> str:
    """Where one question can be open: one person in one destination."""
    return f"{destination}~{person}"


def close(question: Question, state: Answered | Abandoned | QuestionExpired) -> Question:
    """Open → closed. Closed questions absorb."""
    if not isinstance(question.state, Open):
        return question
    return question.model_copy(update={"state": state})


def open_at(question: Question | None, now: datetime) -> bool:
    """Whether an answer still counts; at `expires_at` exactly it does not."""
    return question is not None and isinstance(question.state, Open) and now < question.expires_at
