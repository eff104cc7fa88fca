"""What a decision means for the work that waited: on, again, or over; expiry is no (INV-15)."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from runtime.domain import approval as approvals
from runtime.domain import operation as operations
from runtime.domain.approval import Approval, Approved, Requested, Revoked, Superseded
from runtime.domain.job import Stage, Stopped
from runtime.domain.operation import LEASE, Waiting
from runtime.domain.policy import DECIDE_WITHIN, VALID_FOR
from runtime.engine.decided import decided
from runtime.engine.scanner import Scanner
from runtime.engine.work import Work
from runtime.errors import FenceLost, InvariantBroken
from runtime.ports import Put
from runtime.stores.collections import APPROVALS, JOBS, OPERATIONS
from tests.effects_made import ANA, BO
from tests.runtime.engine.playing import Play, at_stage
from tests.world import ACME

STRATEGY = "job-1:strategy:1:approval"
DRAFT = "job-1:draft:1:approval"
TICK = timedelta(microseconds=1)


async def waiting(folder: Path, stage: Stage = "decide_strategy") -> Play:
    return await at_stage(folder, stage)


async def woken(one: Play, operation: str) -> Work:
    """A claim of the waiting operation, woken without a decision."""
    stored = operations.wake(await one.operation(operation), one.clock.now())
    await one.put(Put(OPERATIONS.key(ACME, operation), stored))
    return await one.claim(operation)


async def decision(one: Play, approval: Approval) -> None:
    await one.put(Put(APPROVALS.key(ACME, approval.id), approval))


async def test_an_approved_strategy_is_used_once_and_the_work_goes_on(tmp_path: Path) -> None:
    one = await waiting(tmp_path)
    await one.vote(STRATEGY)
    assert await decided(await one.claim("job-1:write"), "decide_strategy")
    job = await one.job()
    assert (job.stage, job.steps[-1].note) == ("write", "by Ana")
    state = (await one.approval(STRATEGY)).state
    assert state.name == "consumed"
    assert state.by == "job-1:write"


async def test_many_people_with_long_names_decide_like_any_others(tmp_path: Path) -> None:
    """Three names of 128 characters do not fit a step's note; the work goes on all the same."""
    one = await waiting(tmp_path)
    await one.vote(STRATEGY)
    approval = await one.approval(STRATEGY)
    names = tuple(
        approval.votes[0].model_copy(update={"person": f"telegram:{n}", "display": "n" * 128})
        for n in range(3)
    )
    await decision(one, approval.model_copy(update={"votes": names}))
    assert await decided(await one.claim("job-1:write"), "decide_strategy")
    assert len((await one.job()).steps[-1].note) == 300


async def test_an_approved_draft_is_left_for_the_dispatcher_to_use(tmp_path: Path) -> None:
    """INV-5: the effect's approval is consumed in the commit that prepares the command."""
    one = await waiting(tmp_path, "decide_draft")
    await one.vote(DRAFT)
    assert await decided(await one.claim("job-1:export"), "decide_draft")
    assert (await one.job()).stage == "export"
    assert (await one.approval(DRAFT)).state.name == "approved"


async def test_a_spurious_wake_waits_again(tmp_path: Path) -> None:
    one = await waiting(tmp_path)
    work = await woken(one, "job-1:write")
    assert not await decided(work, "decide_strategy")
    state = (await one.operation("job-1:write")).state
    assert state == Waiting(on=STRATEGY, until=(await one.approval(STRATEGY)).decide_by)
    assert work.settled
    await one.vote(STRATEGY)
    await one.to_the_end(decide=False)
    assert (await one.job()).stage == "decide_draft"


async def test_a_rejection_stops_the_job_and_names_who(tmp_path: Path) -> None:
    one = await waiting(tmp_path)
    await one.vote(STRATEGY, BO, "reject")
    await one.to_the_end()
    state = (await one.job()).state
    assert isinstance(state, Stopped)
    assert (state.how, state.reason) == ("rejected", "rejected by Bo")
    assert (await one.operation("job-1:write")).state.name == "cancelled"
    assert "write" not in one.cognition.calls


@pytest.mark.parametrize(("offset", "over"), [(-TICK, False), (0 * TICK, True), (TICK, True)])
async def test_nobody_deciding_is_no(tmp_path: Path, offset: timedelta, over: bool) -> None:
    one = await waiting(tmp_path)
    deadline = (await one.approval(STRATEGY)).decide_by
    one.clock.advance(deadline - one.clock.now() + offset)
    await Scanner(one.kit).once()
    if not over:
        assert isinstance((await one.operation("job-1:write")).state, Waiting)
        return
    await one.settle()
    state = (await one.job()).state
    assert isinstance(state, Stopped)
    assert state.how == "expired"
    assert (await one.approval(STRATEGY)).state.name == "expired"


@pytest.mark.parametrize(("offset", "over"), [(-TICK, False), (0 * TICK, True), (TICK, True)])
async def test_an_approval_is_used_while_it_is_valid(
    tmp_path: Path, offset: timedelta, over: bool
) -> None:
    one = await waiting(tmp_path)
    await one.vote(STRATEGY)
    one.clock.advance(VALID_FOR + offset)
    assert await decided(await one.claim("job-1:write"), "decide_strategy") is not over
    found = (await one.approval(STRATEGY)).state.name
    assert found == ("lapsed" if over else "consumed")
    assert isinstance((await one.job()).state, Stopped) is over


async def test_an_approval_that_was_taken_back_stops_the_job(tmp_path: Path) -> None:
    one = await waiting(tmp_path)
    await one.vote(STRATEGY)
    approval = await one.approval(STRATEGY)
    revoked = Revoked(at=one.clock.now(), by=ANA)
    await decision(one, approval.model_copy(update={"state": revoked}))
    assert not await decided(await one.claim("job-1:write"), "decide_strategy")
    assert isinstance((await one.job()).state, Stopped)


async def test_a_second_attempt_after_a_crash_goes_on(tmp_path: Path) -> None:
    """The decision was used, then the worker died: the next claim does not ask again."""
    one = await waiting(tmp_path)
    await one.vote(STRATEGY)
    first = await one.claim("job-1:write")
    assert await decided(first, "decide_strategy")
    job = await one.job()
    one.clock.advance(LEASE)
    await Scanner(one.kit).once()
    second = await one.claim("job-1:write")
    assert await decided(second, "decide_strategy")
    assert await one.job() == job
    with pytest.raises(FenceLost):
        await decided(first, "decide_strategy")


async def test_an_approval_used_by_other_work_is_not_used_here(tmp_path: Path) -> None:
    one = await waiting(tmp_path)
    await one.vote(STRATEGY)
    used = approvals.consume(await one.approval(STRATEGY), "job-2:write", one.clock.now())
    assert isinstance(used, Approval)
    await decision(one, used)
    assert not await decided(await one.claim("job-1:write"), "decide_strategy")
    assert isinstance((await one.job()).state, Stopped)


async def test_a_superseded_approval_never_stands_in_for_its_successor(tmp_path: Path) -> None:
    one = await waiting(tmp_path)
    approval = await one.approval(STRATEGY)
    gone = Superseded(at=one.clock.now(), by=ANA, display="Ana", successor="a2")
    await decision(one, approval.model_copy(update={"state": gone}))
    work = await woken(one, "job-1:write")
    with pytest.raises(InvariantBroken):
        await decided(work, "decide_strategy")
    assert (await one.job()).stage == "decide_strategy"


async def test_a_job_without_its_approval_is_a_fault_not_a_yes(tmp_path: Path) -> None:
    one = await waiting(tmp_path)
    job = (await one.job()).model_copy(update={"approval": None})
    await one.put(Put(JOBS.key(ACME, job.id), job))
    work = await woken(one, "job-1:write")
    with pytest.raises(InvariantBroken):
        await decided(work, "decide_strategy")


async def test_an_approval_of_another_job_is_never_looked_at(tmp_path: Path) -> None:
    """The job names its approval; an approved one beside it changes nothing."""
    one = await waiting(tmp_path)
    approval = await one.approval(STRATEGY)
    other = approval.model_copy(
        update={
            "id": "job-2:strategy:1:approval",
            "state": Approved(at=one.clock.now(), valid_until=one.clock.now() + DECIDE_WITHIN),
        }
    )
    await decision(one, other)
    assert not await decided(await woken(one, "job-1:write"), "decide_strategy")
    assert (await one.approval(STRATEGY)).state == Requested()
