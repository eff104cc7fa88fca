"""Rescue: trying again and stopping what cannot go on by itself."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from runtime.domain.job import Stopped
from runtime.domain.operation import RETRY_CEILING
from runtime.domain.people import Member, Role
from runtime.domain.policy import Policy
from runtime.domain.proposal import Escalation
from runtime.engine.approvals import At
from runtime.engine.rescue import Rescued, give_up, retry
from runtime.errors import CognitionError
from runtime.ports import Ask, Commit, Put, Reads
from runtime.stores.collections import ITEMS, POLICIES
from tests.effects_made import ANA, BO, member
from tests.runtime.engine.playing import Play, play
from tests.world import ACME

Move = Callable[[At, str, Member | None], Awaitable[Rescued]]


async def press(at: Play, move: Move, operation: str, by: Member | None) -> Rescued:
    async def body(reads: Reads) -> Commit[Rescued]:
        done = await move(At(reads, ACME, at.clock.now(), "press"), operation, by)
        return Commit(done, done.writes)

    return await at.kit.commit(body)


async def open_items(at: Play) -> list[str]:
    await at.project()
    page = await at.kit.store.find(Ask(ITEMS, "open", ACME, equals=(True,)))
    return [row.record.kind for row in page.rows]


async def stuck(tmp_path: Path) -> Play:
    """A job whose reader failed until its retry budget was spent."""
    at = await play(tmp_path)
    await at.begin()
    busy = CognitionError(agent="reader", kind="busy", detail="503")
    at.cognition.script["reader"] = [busy] * 5
    for _ in range(8):
        await at.settle()
        at.clock.advance(RETRY_CEILING)
    assert (await at.operation("job-1:analyse")).state.name == "operator_required"
    return at


async def test_trying_again_goes_on_to_the_end(tmp_path: Path) -> None:
    at = await stuck(tmp_path)
    assert await open_items(at) == ["failed_stage"]
    done = await press(at, retry, "job-1:analyse", member(ANA))
    assert done.done
    assert await open_items(at) == []
    await at.to_the_end()
    assert (await at.job()).state.name == "done"
    assert len(at.provider.calls) == 1


async def test_an_escalation_is_answered_by_trying_again(tmp_path: Path) -> None:
    at = await play(tmp_path)
    await at.begin()
    at.cognition.script["writer"] = [Escalation(reason="the source contradicts itself")]
    await at.to_the_end()
    assert await open_items(at) == ["escalation"]
    assert (await press(at, retry, "job-1:write", member(ANA))).done
    assert (await at.job()).state.name == "running"
    await at.to_the_end()
    assert (await at.job()).state.name == "done"
    assert at.cognition.calls.count("write") == 2, "asked again, once"


async def test_stopping_ends_the_job_and_says_by_whom(tmp_path: Path) -> None:
    at = await stuck(tmp_path)
    assert (await press(at, give_up, "job-1:analyse", member(ANA))).done
    job = await at.job()
    assert job.state.name == "stopped"
    assert member(ANA).display in job.state.reason
    await at.to_the_end()
    assert at.provider.calls == []
    assert await open_items(at) == []


@pytest.mark.parametrize("move", [retry, give_up])
@pytest.mark.parametrize("by", [None, member("telegram:9", Role.VIEWER)])
async def test_a_stranger_and_a_viewer_move_nothing(
    tmp_path: Path, move: Move, by: Member | None
) -> None:
    at = await stuck(tmp_path)
    assert not (await press(at, move, "job-1:analyse", by)).done
    assert (await at.operation("job-1:analyse")).state.name == "operator_required"


@pytest.mark.parametrize("move", [retry, give_up])
async def test_a_second_press_finds_nothing_to_do(tmp_path: Path, move: Move) -> None:
    at = await stuck(tmp_path)
    assert (await press(at, retry, "job-1:analyse", member(ANA))).done
    before = await at.operation("job-1:analyse")
    assert not (await press(at, move, "job-1:analyse", member(ANA))).done
    assert await at.operation("job-1:analyse") == before


async def test_what_was_sent_is_never_called_cancelled(tmp_path: Path) -> None:
    at = await play(tmp_path)
    await at.begin()
    at.provider.damaged = True
    await at.to_the_end()
    job = await at.job()
    assert job.state.name == "needs_person"
    closed = await press(at, give_up, f"verify:{job.receipt}", member(ANA))
    assert closed.done
    state = (await at.job()).state
    assert isinstance(state, Stopped)
    assert state.how == "failed"
    assert "exported, but not verified" in state.reason
    assert await open_items(at) == []


async def test_a_refused_effect_needs_a_new_decision_before_it_is_tried_again(
    tmp_path: Path,
) -> None:
    """INV-6: trying again opens no attempt; only the new approval does."""
    at = await play(tmp_path)
    await at.begin()
    at.provider.script = ["reject"]
    await at.to_the_end()
    assert (await at.job()).state.name == "needs_person"
    assert await open_items(at) == ["failed_stage"]
    assert (await press(at, retry, "job-1:export", member(ANA))).done
    await at.to_the_end(decide=False)
    assert len(at.provider.calls) == 1
    assert await open_items(at) == ["approval"]
    assert not (await press(at, retry, "job-1:export", member(ANA))).done
    await at.to_the_end()
    assert (await at.job()).state.name == "done"
    assert len(at.provider.calls) == 2
    assert len(set(at.provider.calls)) == 2


@pytest.mark.parametrize("intent", [False, True])
async def test_a_decision_that_is_not_enough_any_more_is_asked_for_anew(
    tmp_path: Path, *, intent: bool
) -> None:
    """INV-15: the policy asks for two since, so one vote carries nothing, however often tried."""
    at = await play(tmp_path)
    await at.begin()
    if intent:
        at.provider.script = ["credential gap"]
        await at.to_the_end()
    else:
        await at_the_draft(at)
        await at.vote("job-1:draft:1:approval")
    stricter = Policy(since=at.clock.now(), version=2, approvals_needed=2)
    await at.put(Put(POLICIES.key(ACME, "current"), stricter))
    if not intent:
        await at.carry("job-1:export")
    assert (await at.operation("job-1:export")).state.name == "operator_required"
    assert (await press(at, retry, "job-1:export", member(ANA))).done
    again = "job-1:draft:1:approval:again"
    assert (await at.approval(again)).needed == 2
    assert (await at.approval("job-1:draft:1:approval")).state.name == (
        "consumed" if intent else "superseded"
    )
    calls = len(at.provider.calls)
    await at.vote(again)
    await at.to_the_end(decide=False)
    assert len(at.provider.calls) == calls
    await at.vote(again, BO)
    await at.to_the_end(decide=False)
    assert (await at.job()).state.name == "done"
    assert len(at.provider.ledger) == 1


async def at_the_draft(at: Play) -> None:
    """Go on until the draft waits for its decision."""
    for _ in range(20):
        if (await at.job()).stage == "decide_draft":
            return
        for operation in await at.ready():
            await at.carry(operation)
        if (await at.job()).stage == "decide_strategy":
            await at.approve()


async def test_a_refused_effect_can_be_stopped(tmp_path: Path) -> None:
    at = await play(tmp_path)
    await at.begin()
    at.provider.script = ["reject"]
    await at.to_the_end()
    assert (await press(at, give_up, "job-1:export", member(ANA))).done
    assert (await at.job()).state.name == "stopped"
