"""Stages: finishing one and beginning the next are one commit, and a repeat creates nothing."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest

from runtime.domain import job as jobs
from runtime.domain.job import NeedsPerson, Stage, Stopped
from runtime.domain.operation import Operation, Pending, Waiting
from runtime.engine import stages
from runtime.engine.stages import ACCEPTANCE, stage_operation
from runtime.engine.work import Step
from runtime.errors import AlreadyExists, InvariantBroken
from runtime.ports import Put, Reads
from runtime.stores.collections import JOBS, OPERATIONS
from tests.effects_made import export
from tests.runtime.engine.playing import Play, play
from tests.world import ACME, START

MADE = export()


async def begun(folder: Path) -> Play:
    one = await play(folder)
    await one.begin()
    return one


def test_each_stage_that_works_says_when_it_is_done() -> None:
    deciding = {"decide_strategy", "decide_draft", "done"}
    assert set(ACCEPTANCE) == set(get_args(Stage)) - deciding
    assert all(ACCEPTANCE.values())


def test_a_stage_has_one_operation_whose_goal_covers_what_it_works_on() -> None:
    job = MADE.job
    one = stage_operation(job, "write", None, START)
    assert one == stage_operation(job, "write", None, START)
    assert (one.id, one.kind, one.subject) == ("job-1:write", "stage.write", "job-1")
    changed = job.model_copy(update={"heads": {"draft": job.heads["analysis"]}})
    assert stage_operation(changed, "write", None, START).goal.digest != one.goal.digest
    assert stage_operation(job, "review", None, START).goal.digest != one.goal.digest


def test_a_stage_behind_a_decision_waits_for_it_and_only_an_effect_is_not_repeated() -> None:
    waiting = stage_operation(MADE.job, "export", MADE.operation, START, MADE.approval)
    assert waiting.state == Waiting(on=MADE.approval.id, until=MADE.approval.decide_by)
    assert (waiting.replay, waiting.cause) == ("reconcile", "job-1:export")
    ready = stage_operation(MADE.job, "write", None, START)
    assert (ready.state, ready.replay) == (Pending(ready_at=START), "safe")


async def test_the_next_stage_begins_in_the_commit_that_ends_the_last(tmp_path: Path) -> None:
    one = await begun(tmp_path)
    work = await one.claim("job-1:read")

    async def body(reads: Reads, current: Operation) -> Step[None]:
        job = await stages.current_job(reads, ACME, current)
        after = jobs.advance(job, "n", work.now())
        following = stage_operation(after, "analyse", current, work.now())
        return stages.moved(ACME, current, after, following, work.now())

    await work.commit(body)
    job = await one.job()
    assert (job.stage, job.operation) == ("analyse", "job-1:analyse")
    assert (await one.operation("job-1:read")).state.name == "succeeded"
    assert (await one.operation("job-1:analyse")).state.name == "pending"


async def test_a_next_stage_that_is_there_already_is_not_begun_again(tmp_path: Path) -> None:
    one = await begun(tmp_path)
    work = await one.claim("job-1:read")
    there = stage_operation(await one.job(), "analyse", None, one.clock.now())
    await one.put(Put(OPERATIONS.key(ACME, there.id), there))

    async def body(reads: Reads, current: Operation) -> Step[None]:
        job = await stages.current_job(reads, ACME, current)
        return stages.moved(ACME, current, job, there, work.now())

    with pytest.raises(AlreadyExists):
        await work.commit(body)
    assert (await one.operation("job-1:read")).state.name == "claimed"
    assert (await one.job()).stage == "read"


async def test_an_operation_without_its_job_is_a_fault(tmp_path: Path) -> None:
    one = await begun(tmp_path)
    work = await one.claim("job-1:read")
    for job in (None, "job-9"):
        lost = work.operation.model_copy(update={"job": job})

        async def body(reads: Reads, current: Operation, lost: Operation = lost) -> Step[None]:
            await stages.current_job(reads, ACME, lost)
            return Step(None)

        with pytest.raises(InvariantBroken):
            await work.commit(body)


async def test_a_stage_that_fails_for_good_stops_its_job_with_the_reason(tmp_path: Path) -> None:
    one = await begun(tmp_path)
    work = await one.claim("job-1:read")
    await stages.stop_job(work, "It is encrypted. " * 100)
    state = (await one.job()).state
    assert isinstance(state, Stopped)
    assert state.how == "failed"
    ended = (await one.operation("job-1:read")).state
    assert ended.name == "failed"
    assert state.reason.startswith(ended.reason)
    assert work.settled


async def test_a_stage_that_asks_for_a_person_is_seen_by_one(tmp_path: Path) -> None:
    """INV-19: the job says so, the operation stands, and the feed has an item."""
    from runtime.ports import Ask
    from runtime.stores.collections import ITEMS

    one = await begun(tmp_path)
    await stages.ask_person(await one.claim("job-1:read"), "which one?")
    assert isinstance((await one.job()).state, NeedsPerson)
    assert (await one.operation("job-1:read")).state.name == "operator_required"
    await one.project()
    page = await one.kit.store.find(Ask(ITEMS, "open", ACME, equals=(True,)))
    assert [found.record.reason for found in page.rows] == ["which one?"]


async def test_a_stopped_job_is_not_stopped_again(tmp_path: Path) -> None:
    one = await begun(tmp_path)
    work = await one.claim("job-1:read")
    stopped = jobs.stop(await one.job(), "cancelled", "by Ana", one.clock.now())
    await one.put(Put(JOBS.key(ACME, "job-1"), stopped))
    await stages.stop_job(work, "too late")
    assert (await one.job()).state == stopped.state
