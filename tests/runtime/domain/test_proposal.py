"""Results of agents: typed, bounded, and no quote that is not in the source."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from runtime.domain.proposal import (
    Analysis,
    Draft,
    Escalation,
    Notes,
    Quote,
    Result,
    Section,
    grounded,
)

SOURCE = "Launch is on Friday. 🚀 Бесплатно for everyone."


def quote(start: int, end: int, source: str = SOURCE, id_: str = "F1") -> Quote:
    return Quote(id=id_, text=source[start:end], start=start)


def test_a_quote_at_its_position_is_grounded() -> None:
    assert grounded((quote(0, 20), quote(21, 22), quote(23, 32)), SOURCE) is None
    assert quote(21, 22).end == 22
    assert grounded((), SOURCE) is None


@pytest.mark.parametrize("shift", [-1, 1])
def test_a_quote_one_character_off_is_refused(shift: int) -> None:
    moved = quote(23, 32).model_copy(update={"start": 23 + shift})
    found = grounded((quote(0, 20), moved), SOURCE)
    assert found is not None
    assert "F1" in found


def test_a_quote_past_the_end_is_refused() -> None:
    past = Quote(id="F2", text="everyone.!", start=len(SOURCE) - 9)
    assert grounded((past,), SOURCE) is not None


def test_a_window_counts_from_the_beginning_of_the_whole_text() -> None:
    window = SOURCE[10:30]
    assert grounded((quote(12, 20),), window, 10) is None
    assert grounded((quote(9, 20),), window, 10) is not None
    assert grounded((quote(12, 31),), window, 10) is not None


@given(st.text(min_size=1, max_size=60), st.data())
def test_exactly_the_pieces_of_the_source_are_grounded(source: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(source) - 1))
    end = data.draw(st.integers(start + 1, len(source)))
    assert grounded((quote(start, end, source),), source) is None
    text = data.draw(st.text(min_size=1, max_size=5))
    at = data.draw(st.integers(0, len(source) + 2))
    said = grounded((Quote(id="F1", text=text, start=at),), source)
    assert (said is None) is (source[at : at + len(text)] == text)


def test_a_draft_is_its_title_and_its_sections() -> None:
    sections = (
        Section(heading="When", text="Friday.", quotes=("F1",)),
        Section(text="Free.", quotes=()),
    )
    assert Draft(title="T", sections=sections).text == "T\n\nWhen\n\nFriday.\n\nFree."


def test_a_result_says_which_kind_it_is_and_holds_nothing_else() -> None:
    read: TypeAdapter[Result] = TypeAdapter(Result)
    told = read.validate_python({"result": "escalation", "reason": "a person is needed"})
    assert told == Escalation(reason="a person is needed")
    for refused in (
        {"result": "approve", "reason": "x"},
        {"result": "escalation", "reason": "x", "approved": True},
        {"reason": "x"},
    ):
        with pytest.raises(ValidationError):
            read.validate_python(refused)


@pytest.mark.parametrize(("count", "accepted"), [(39, True), (40, True), (41, False)])
def test_notes_have_a_bound(count: int, accepted: bool) -> None:
    quotes = tuple(quote(0, 5, id_=f"F{number}") for number in range(count))
    try:
        Notes(quotes=quotes)
    except ValidationError:
        assert not accepted
    else:
        assert accepted


def test_an_analysis_without_a_quote_is_none() -> None:
    with pytest.raises(ValidationError):
        Analysis(title="t", topics=(), summary=("F1",), quotes=())
