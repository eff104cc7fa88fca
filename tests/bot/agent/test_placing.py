"""Quotes are placed where they stand, and what stands nowhere is refused."""

from __future__ import annotations

import pytest

from bot.agent.answers import AnalysisSaid, Answer, NotesSaid, Refusal, Said
from bot.agent.placing import place
from runtime.domain.proposal import Analysis, Draft, Notes, Quote, Section, Strategy, grounded
from tests.bot.agent import shown

SOURCE = "Zero. Erste Zeile 🎉 hier.\nOne fact. Two facts. One fact. 终。\n"
ANALYSIS = Analysis(
    title="T",
    topics=(),
    summary=("F1",),
    quotes=(Quote(id="F1", text="One fact.", start=27), Quote(id="F2", text="终。", start=58)),
)
STRATEGY = Strategy(headline="H", audience="A", angle="G", points=("F2", "F1"), rationale="R")


def notes(*texts: str) -> NotesSaid:
    """Notes as a model gives them."""
    return NotesSaid(quotes=tuple(Said(id=f"F{at}", text=text) for at, text in enumerate(texts)))


@pytest.mark.parametrize("start", [0, 6, 20])
def test_a_readers_quote_gets_its_position_in_the_whole_source(start: int) -> None:
    placed = place(notes("One fact.", "终。"), shown.reading(SOURCE, start))
    assert isinstance(placed, Notes)
    assert grounded(placed.quotes, SOURCE) is None
    assert placed.quotes[0].start == SOURCE.index("One fact.")


@pytest.mark.parametrize(
    "text", ["Two fact", "one fact.", "One fact.  Two", "│ One fact.", "Zero."]
)
def test_what_is_not_exactly_in_the_window_is_refused(text: str) -> None:
    if text == "Two fact":
        assert isinstance(place(notes(text), shown.reading(SOURCE, 6)), Notes)
        return
    refusal = place(notes("One fact.", text), shown.reading(SOURCE, 6))
    assert refusal == Refusal("schema", "answer.quotes.1: not an exact piece of what was shown")


def test_a_number_is_given_once() -> None:
    said = NotesSaid(quotes=(Said(id="F1", text="Zero."), Said(id="F1", text="One fact.")))
    assert isinstance(place(said, shown.reading(SOURCE)), Refusal)


def test_an_analyst_may_only_take_what_readers_quoted() -> None:
    read = place(notes("One fact.", "Two facts."), shown.reading(SOURCE))
    assert isinstance(read, Notes)
    projection = shown.merging([read])

    def said(*texts: str, summary: str = "F1") -> AnalysisSaid:
        quotes = tuple(Said(id=f"F{at}", text=text) for at, text in enumerate(texts, start=1))
        return AnalysisSaid(title="T", topics=(), summary=(summary,), quotes=quotes)

    placed = place(said("Two facts."), projection)
    assert isinstance(placed, Analysis)
    assert grounded(placed.quotes, SOURCE) is None
    assert isinstance(place(said("Zero."), projection), Refusal)
    assert isinstance(place(said("Two facts.", summary="F2"), projection), Refusal)


@pytest.mark.parametrize(("name", "accepted"), [("F1", True), ("F3", False)])
def test_a_strategy_and_a_draft_rest_on_shown_quotes_only(name: str, *, accepted: bool) -> None:
    strategy: Answer = STRATEGY.model_copy(update={"points": ("F1", name)})
    draft = Draft(title="T", sections=(Section(text="x", quotes=(name,)),))
    assert (place(strategy, shown.planning(ANALYSIS)) == strategy) is accepted
    assert (place(draft, shown.writing(ANALYSIS, STRATEGY)) == draft) is accepted
