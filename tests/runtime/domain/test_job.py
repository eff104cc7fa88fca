"""Jobs: the order of the stages, and states that end for good."""

from __future__ import annotations

from datetime import timedelta
from typing import Literal, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.domain import job as jobs
from runtime.domain.job import (
    STAGES,
    STEP_WORDS,
    TRANSITIONS,
    Done,
    Job,
    NeedsPerson,
    Running,
    Source,
    Stage,
    Stopped,
)
from tests.world import START

LATER = START + timedelta(minutes=1)
How = Literal["rejected", "failed", "cancelled", "expired"]


def job(stage: Stage = "read", **changes: object) -> Job:
    made = Job(
        id="job-1",
        number=1,
        title="t",
        home="telegram:1",
        by="telegram:1",
        source=Source(kind="text", name="n"),
        stage=stage,
        correlation="c",
        created_at=START,
        updated_at=START,
    )
    return made.model_copy(update=changes)


def test_each_stage_has_its_words_and_stands_in_the_table_once() -> None:
    assert get_args(Stage) == STAGES
    assert set(STEP_WORDS) == set(STAGES)
    assert len(set(STAGES)) == len(STAGES)


def test_advancing_goes_through_every_stage_and_notes_each() -> None:
    at, walked = job(), []
    for number in range(len(STAGES) - 1):
        at = jobs.advance(at, f"note {number}", LATER)
        walked.append(at.stage)
    assert tuple(walked) == STAGES[1:]
    assert [step.stage for step in at.steps] == list(STAGES[:-1])
    assert at.steps[3].note == "note 3"
    assert at.updated_at == LATER


def test_nothing_follows_done() -> None:
    assert jobs.following("verify") == "done"
    assert jobs.following("done") == "done"


@given(st.sampled_from(STAGES), st.sampled_from(STAGES))
def test_going_back_keeps_only_the_steps_before(reached: Stage, back: Stage) -> None:
    at = job()
    while at.stage != reached:
        at = jobs.advance(at, "", START)
    gone = jobs.return_to(at, back, LATER)
    assert gone.stage == back
    assert all(STAGES.index(step.stage) < STAGES.index(back) for step in gone.steps)
    assert gone.steps == at.steps[: len(gone.steps)]


STATES = {
    "running": Running(),
    "needs_person": NeedsPerson(stage="read", reason="r", at=START),
    "done": Done(at=START),
    "stopped": Stopped(how="failed", at=START, reason="r"),
}


@given(st.sampled_from(sorted(STATES)), st.integers(0, 3), st.sampled_from(get_args(How)))
def test_a_job_moves_along_its_table_and_what_has_ended_stays(
    start: str, move: int, how: How
) -> None:
    before = job(state=STATES[start])
    after = (
        jobs.finish(before, LATER),
        jobs.stop(before, how, "why", LATER),
        jobs.need_person(before, "why", LATER),
        jobs.go_on(before, LATER),
    )[move]
    if after.state != before.state:
        assert after.state.name in TRANSITIONS[start]
        assert after.updated_at == LATER
    if not TRANSITIONS[start]:
        assert after == before


def test_a_job_that_needs_a_person_says_where_it_stands() -> None:
    needy = jobs.need_person(job("review"), "why", LATER)
    assert needy.state == NeedsPerson(stage="review", reason="why", at=LATER)
    assert jobs.go_on(needy, LATER).state == Running()
    assert jobs.stop(needy, "cancelled", "no", LATER).state.name == "stopped"


@pytest.mark.parametrize(("length", "kept"), [(299, 299), (300, 300), (301, 300)])
def test_a_note_that_is_too_long_is_cut(length: int, kept: int) -> None:
    assert len(jobs.advance(job(), "x" * length, START).steps[-1].note) == kept
