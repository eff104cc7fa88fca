"""The reviewer sees what a draft says beyond its quotes, and the writer keeps to them."""

from __future__ import annotations

import pytest

from runtime.domain.proposal import Analysis, Draft, Quote, Review, Section, Strategy
from tests.bot.agent import shown
from tests.bot.agent.stages import said

TEXTS = (
    "The Bridge opens on 4 December.",
    "Walking over the Bridge is free.",
    "A ferry runs until noon.",
)
ANALYSIS = Analysis(
    title="A new bridge",
    topics=("Bridge",),
    summary=("F1",),
    quotes=tuple(
        Quote(id=f"F{at}", text=text, start=100 * at) for at, text in enumerate(TEXTS, start=1)
    ),
)
STRATEGY = Strategy(
    headline="A new bridge", audience="A", angle="G", points=("F1", "F2", "F3"), rationale="R"
)


def written(strategy: Strategy = STRATEGY) -> Draft:
    """The offline draft."""
    draft = said(shown.writing(ANALYSIS, strategy))
    assert isinstance(draft, Draft)
    return draft


def reviewed(draft: Draft) -> Review:
    """The offline review."""
    review = said(shown.reviewing(ANALYSIS, STRATEGY, draft))
    assert isinstance(review, Review)
    return review


def test_points_that_share_a_name_stand_under_it() -> None:
    draft = written()
    assert [(section.heading, section.quotes) for section in draft.sections] == [
        ("", ("F3",)),
        ("Bridge", ("F1", "F2")),
    ]
    assert draft.sections[1].text == f"{TEXTS[0]}\n\n{TEXTS[1]}"


def test_a_headline_that_the_source_does_not_have_is_not_taken_over() -> None:
    draft = written(STRATEGY.model_copy(update={"headline": "The best bridge ever"}))
    assert draft.title == "A new bridge"
    assert written(STRATEGY.model_copy(update={"headline": "A ferry runs"})).title == "A ferry runs"


def test_a_point_that_is_the_title_is_not_said_again() -> None:
    draft = written(STRATEGY.model_copy(update={"headline": TEXTS[2]}))
    assert draft.title == TEXTS[2]
    assert TEXTS[2] not in [section.text for section in draft.sections]
    assert reviewed(draft).verdict == "ready"


def test_a_draft_of_quotes_is_ready() -> None:
    assert reviewed(written()) == Review(verdict="ready", findings=())


@pytest.mark.parametrize(
    ("change", "finding"),
    [
        ({"title": "The best bridge"}, "No quote says this (title): The best bridge"),
        (
            {"sections": (Section(text=f"{TEXTS[0]} It is the best.", quotes=("F1", "F2", "F3")),)},
            "No quote says this (section 1): It is the best.",
        ),
        (
            {"sections": (Section(heading="News", text=TEXTS[0], quotes=("F1", "F2", "F3")),)},
            "No quote says this (section 1, heading): News",
        ),
        (
            {"sections": (Section(text=f"{TEXTS[0]}\n\n{TEXTS[0]}", quotes=("F1", "F2", "F3")),)},
            f"Said twice: {TEXTS[0]}",
        ),
        (
            {"sections": (Section(text=TEXTS[0], quotes=("F1",)),)},
            "Points of the strategy that the draft leaves out: F2, F3.",
        ),
    ],
)
def test_each_deviation_is_one_finding(change: dict[str, object], finding: str) -> None:
    review = reviewed(written().model_copy(update=change))
    assert review == Review(verdict="doubts", findings=(finding,))


def test_findings_are_bounded() -> None:
    text = "\n".join(f"Claim number {at} stands nowhere." for at in range(40))
    draft = Draft(title="A new bridge", sections=(Section(text=text, quotes=()),))
    assert len(reviewed(draft).findings) == 12
