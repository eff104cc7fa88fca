"""Thinking: a finished call is stored before it is used, and never made again for equal input."""

from __future__ import annotations

from pathlib import Path

import pytest

from runtime.domain.operation import LEASE
from runtime.domain.policy import Policy
from runtime.domain.projection import Projection
from runtime.domain.proposal import Draft, Escalation, Notes, Result, Strategy, Thought
from runtime.engine.scanner import Scanner
from runtime.engine.thinking import Escalated, anything
from runtime.engine.work import Work
from runtime.errors import CognitionError, FenceLost
from runtime.ports import Ask, Commit, Put, Reads
from runtime.stores.collections import MODEL_CALLS, POLICIES, PROJECTIONS
from tests.runtime.engine.playing import Play, Scripted, at_stage, drafted, play
from tests.world import ACME

STRATEGISE = "job-1:strategise"


async def strategist(folder: Path) -> tuple[Play, Work]:
    one = await at_stage(folder, "strategise")
    one.cognition.calls.clear()
    return one, await one.claim(STRATEGISE)


async def ask(one: Play, work: Work, step: str = "strategise") -> Strategy:
    value, model = await one.thinker.think(work, "strategist", step, Strategy, anything)
    assert model == "scripted"
    return value


async def taken_over(one: Play) -> Work:
    one.clock.advance(LEASE)
    await Scanner(one.kit).once()
    return await one.claim(STRATEGISE)


async def test_a_finished_call_is_not_made_again_by_a_new_epoch(tmp_path: Path) -> None:
    one, work = await strategist(tmp_path)
    first = await ask(one, work)
    again = await taken_over(one)
    assert again.operation.epoch == work.operation.epoch + 1
    one.cognition.script["strategist"] = [first.model_copy(update={"headline": "Another"})]
    assert await ask(one, again) == first
    assert one.cognition.calls == ["strategise"]


async def test_a_changed_input_makes_its_own_call(tmp_path: Path) -> None:
    one, work = await strategist(tmp_path)
    first = await ask(one, work)
    policy = Policy(version=2, since=one.clock.now(), blocked_terms=("free",))

    async def change(reads: Reads) -> Commit[None]:
        return Commit(None, (Put(POLICIES.key(ACME, "current"), policy),))

    await one.kit.commit(change)
    one.cognition.script["strategist"] = [first.model_copy(update={"headline": "Another"})]
    assert (await ask(one, work)).headline == "Another"
    assert one.cognition.calls == ["strategise", "strategise"]
    assert len(await one.journaled(STRATEGISE)) == 2


async def test_another_step_is_another_call(tmp_path: Path) -> None:
    one, work = await strategist(tmp_path)
    await ask(one, work)
    await ask(one, work, "strategise:2")
    assert one.cognition.calls == ["strategise", "strategise:2"]


async def test_what_was_shown_is_stored_before_the_model_is_asked(tmp_path: Path) -> None:
    """INV-8: each call names the projection that it was given, which is stored."""
    one, work = await strategist(tmp_path)
    await ask(one, work)
    page = await one.kit.store.find(Ask(MODEL_CALLS, "of_operation", ACME, equals=(STRATEGISE,)))
    call = page.rows[0].record
    record = await one.kit.store.get(PROJECTIONS.key(ACME, call.projection))
    assert record is not None
    assert (record.basis, record.epoch, record.step) == (call.basis, 1, "strategise")


@pytest.mark.parametrize("value", [drafted(), Notes(quotes=())], ids=["a draft", "notes"])
async def test_a_result_of_another_kind_is_refused(tmp_path: Path, value: Result) -> None:
    one, work = await strategist(tmp_path)
    one.cognition.script["strategist"] = [value]
    with pytest.raises(CognitionError) as refused:
        await ask(one, work)
    assert refused.value.fields["kind"] == "schema"
    assert await one.journaled(STRATEGISE) == []


async def test_a_result_that_does_not_hold_is_refused_in_words(tmp_path: Path) -> None:
    one, work = await strategist(tmp_path)

    def never(result: Result) -> str | None:
        return "a point names nothing"

    with pytest.raises(CognitionError) as refused:
        await one.thinker.think(work, "strategist", "strategise", Strategy, never)
    assert refused.value.fields == {
        "agent": "strategist",
        "kind": "ungrounded",
        "detail": "a point names nothing",
    }
    assert await one.journaled(STRATEGISE) == []


async def test_an_escalation_is_remembered_as_one(tmp_path: Path) -> None:
    one, work = await strategist(tmp_path)
    one.cognition.script["strategist"] = [Escalation(reason="which audience?")]
    with pytest.raises(Escalated):
        await ask(one, work)
    with pytest.raises(Escalated) as escalated:
        await ask(one, await taken_over(one))
    assert escalated.value.reason == "which audience?"
    assert one.cognition.calls == ["strategise"]


async def test_a_stored_result_of_another_kind_is_a_fault(tmp_path: Path) -> None:
    one, work = await strategist(tmp_path)
    await ask(one, work)
    with pytest.raises(CognitionError):
        await one.thinker.think(work, "strategist", "strategise", Draft, anything)


async def test_a_worker_that_thought_too_long_stores_nothing(tmp_path: Path) -> None:
    """INV-3: while the model was asked, another worker took the operation over."""
    one, work = await strategist(tmp_path)

    class Slow(Scripted):
        async def think(self, projection: Projection) -> Thought:
            await taken_over(one)
            return await super().think(projection)

    slow = await play(tmp_path, clock=one.clock, seed=5, cognition=Slow())
    with pytest.raises(FenceLost):
        await slow.thinker.think(work, "strategist", "strategise", Strategy, anything)
    assert await one.journaled(STRATEGISE) == []


async def test_of_two_equal_calls_the_stored_one_counts(tmp_path: Path) -> None:
    """The reply of the commit was lost, or the same worker asked twice at once."""
    one, work = await strategist(tmp_path)

    class Twice(Scripted):
        async def think(self, projection: Projection) -> Thought:
            await ask(one, work)
            thought = await super().think(projection)
            assert isinstance(thought.value, Strategy)
            return thought.model_copy(
                update={"value": thought.value.model_copy(update={"headline": "Second"})}
            )

    twice = await play(tmp_path, clock=one.clock, seed=5, cognition=Twice())
    value, _ = await twice.thinker.think(work, "strategist", "strategise", Strategy, anything)
    assert value.headline == "Free"
    assert one.thinker.model == "scripted"
    assert len(await one.journaled(STRATEGISE)) == 1
