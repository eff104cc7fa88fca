"""Material: the reading plan covers what it says, and bodies come back from their lines."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.domain.material import (
    OVERLAP_CHARS,
    WINDOW_CHARS,
    WINDOWS_MAX,
    body_of,
    body_text,
    foremost,
    material,
    reading_plan,
    unread,
)
from runtime.domain.proposal import (
    Analysis,
    ChatAnswer,
    Draft,
    Escalation,
    Notes,
    Quote,
    Result,
    Review,
    Section,
    Strategy,
)
from runtime.domain.values import Trust
from runtime.errors import BadInput

WHOLE_MAX = WINDOW_CHARS + (WINDOWS_MAX - 1) * (WINDOW_CHARS - OVERLAP_CHARS)
QUOTES = tuple(
    Quote(id=f"F{place}", text=f"Fact {place}\u2028or\nso.", start=place) for place in range(5)
)
RESULTS: tuple[Result, ...] = (
    Notes(quotes=()),
    Notes(title="T", quotes=QUOTES),
    Analysis(title="T", topics=("a", "b"), summary=("F1",), quotes=QUOTES),
    Strategy(headline="H", audience="A", angle="B", points=("F1", "F2"), rationale="R"),
    Draft(title="T", sections=(Section(text="x\ny", quotes=("F1",)), Section(text="z", quotes=()))),
    Review(verdict="ready", findings=()),
    Review(verdict="doubts", findings=("one\ntwo", "three")),
    ChatAnswer(text="yes"),
    Escalation(reason="no"),
)


@pytest.mark.parametrize("body", RESULTS, ids=lambda body: str(body.result))
def test_a_body_comes_back_from_its_lines(body: Result) -> None:
    assert body_of(body_text(body)) == body


def test_a_body_cut_between_lines_keeps_whole_entries() -> None:
    lines = body_text(RESULTS[2]).split("\n")
    assert len(lines) == 6
    cut = body_of("\n".join(lines[:3]))
    assert isinstance(cut, Analysis)
    assert cut.quotes == QUOTES[:2]


@pytest.mark.parametrize(
    "text", ["", "x", "[]", "{}", "null", '{"result":"notes"}\n{', '{"result":1}']
)
def test_what_is_no_body_is_refused(text: str) -> None:
    with pytest.raises(BadInput):
        body_of(text)


def test_the_quotes_that_are_built_on_come_first() -> None:
    analysis = RESULTS[2]
    assert isinstance(analysis, Analysis)
    ordered = [quote.id for quote in foremost(analysis, ["F3", "F1", "F9"]).quotes]
    assert ordered == ["F1", "F3", "F0", "F2", "F4"]


def test_material_without_bytes_is_refused() -> None:
    with pytest.raises(BadInput):
        material("brief", "jobs/1", "\ud800", trust=Trust.OPERATOR, rank=0)


@pytest.mark.parametrize(
    ("total", "windows"),
    [
        (0, 0),
        (1, 1),
        (WINDOW_CHARS - 1, 1),
        (WINDOW_CHARS, 1),
        (WINDOW_CHARS + 1, 2),
        (2 * WINDOW_CHARS - OVERLAP_CHARS, 2),
        (2 * WINDOW_CHARS - OVERLAP_CHARS + 1, 3),
        (WHOLE_MAX - 1, WINDOWS_MAX),
        (WHOLE_MAX, WINDOWS_MAX),
        (WHOLE_MAX + 1, WINDOWS_MAX),
        (WINDOWS_MAX * WINDOW_CHARS, WINDOWS_MAX),
        (WINDOWS_MAX * WINDOW_CHARS + 1, WINDOWS_MAX),
        (50_000_000, WINDOWS_MAX),
    ],
)
def test_a_source_is_read_in_few_windows(total: int, windows: int) -> None:
    plan = reading_plan(total)
    assert len(plan) == windows
    assert bool(unread(plan, total)) is (total > WINDOWS_MAX * WINDOW_CHARS)


@given(st.integers(1, 3 * WHOLE_MAX))
def test_a_plan_begins_at_the_beginning_ends_at_the_end_and_hides_nothing(total: int) -> None:
    plan = reading_plan(total)
    assert plan[0].start == 0
    assert plan[-1].stop == total
    assert all(0 < len(window) <= WINDOW_CHARS for window in plan)
    assert all(one.start < two.start for one, two in pairwise(plan))
    gaps = unread(plan, total)
    if total <= WHOLE_MAX:
        assert gaps == ()
        assert all(two.start <= one.stop - OVERLAP_CHARS for one, two in pairwise(plan))
    covered = sum(len(gap) for gap in gaps) + _union(plan)
    assert covered == total


def _union(plan: tuple[range, ...]) -> int:
    end = size = 0
    for window in plan:
        size += window.stop - max(window.start, end)
        end = window.stop
    return size


def test_a_long_source_is_read_evenly() -> None:
    total = 10 * WHOLE_MAX
    plan = reading_plan(total)
    gaps = [len(gap) for gap in unread(plan, total)]
    assert len(gaps) == WINDOWS_MAX - 1
    assert max(gaps) - min(gaps) <= 1
