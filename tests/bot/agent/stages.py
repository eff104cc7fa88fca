"""The agents one after the other over one source, as the pipeline asks them."""

from __future__ import annotations

from dataclasses import dataclass

from bot.agent.answers import Refusal
from bot.agent.offline import respond
from bot.agent.placing import place
from runtime.domain.material import reading_plan
from runtime.domain.projection import Projection
from runtime.domain.proposal import Analysis, Draft, Notes, Result, Review, Strategy
from tests.bot.agent import shown


def said(projection: Projection) -> Result:
    """What the offline model answers, with its quotes placed."""
    result = place(respond(projection.agent, projection.text), projection)
    assert not isinstance(result, Refusal), result
    return result


@dataclass(frozen=True, slots=True)
class Story:
    """Every result of one source."""

    notes: tuple[Notes, ...]
    analysis: Analysis
    strategy: Strategy
    draft: Draft
    review: Review


def story(source: str) -> Story:
    """From the source to the review, by the offline model."""
    notes = []
    for window in reading_plan(len(source)):
        read = said(shown.reading(source, window.start, window.stop))
        assert isinstance(read, Notes)
        notes.append(read)
    analysis = said(shown.merging(notes))
    assert isinstance(analysis, Analysis)
    strategy = said(shown.planning(analysis))
    assert isinstance(strategy, Strategy)
    draft = said(shown.writing(analysis, strategy))
    assert isinstance(draft, Draft)
    review = said(shown.reviewing(analysis, strategy, draft))
    assert isinstance(review, Review)
    return Story(tuple(notes), analysis, strategy, draft, review)
