"""Questions: open until their exact end, closed once."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from runtime.domain.question import (
    TRANSITIONS,
    Abandoned,
    Answered,
    Open,
    Question,
    QuestionExpired,
    QuestionState,
    close,
    open_at,
    place,
)

NOW = datetime(2027, 1, 4, 9, 0, tzinfo=UTC)
ENDS: list[QuestionState] = [
    Answered(at=NOW, by="e"),
    Abandoned(at=NOW),
    QuestionExpired(at=NOW),
]


def question() -> Question:
    return Question(
        id="q",
        kind="edit_text",
        place=place("telegram:1:5", "telegram:2"),
        destination="telegram:1:5",
        person="telegram:2",
        subject="a",
        text="?",
        asked_at=NOW - timedelta(hours=1),
        expires_at=NOW,
        state=Open(),
    )


@pytest.mark.parametrize(("early", "counts"), [(1, True), (0, False), (-1, False)])
def test_an_answer_counts_until_exactly_the_end(early: int, *, counts: bool) -> None:
    assert open_at(question(), NOW - timedelta(microseconds=early)) is counts
    assert not open_at(None, NOW)


@pytest.mark.parametrize("first", ENDS, ids=lambda state: state.name)
@pytest.mark.parametrize("second", ENDS, ids=lambda state: state.name)
def test_a_closed_question_absorbs(first: QuestionState, second: QuestionState) -> None:
    assert not isinstance(first, Open)
    assert not isinstance(second, Open)
    closed = close(question(), first)
    assert closed.state == first
    assert close(closed, second) == closed
    assert TRANSITIONS[first.name] == ()
    assert not open_at(closed, NOW - timedelta(minutes=1))


def test_places_tell_people_and_topics_apart() -> None:
    places = {
        place("telegram:1", "telegram:2"),
        place("telegram:1:5", "telegram:2"),
        place("telegram:1", "telegram:3"),
    }
    assert len(places) == 3
