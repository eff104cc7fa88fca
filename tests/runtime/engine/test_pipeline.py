"""The pipeline from a source to a verified export, whatever crashes, repeats or is stopped."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Literal

import pytest

from runtime.domain import job as jobs
from runtime.domain.effect import Finding, Terms
from runtime.domain.job import STAGES, Job, NeedsPerson, Stopped
from runtime.domain.operation import LEASE
from runtime.domain.projection import Projection
from runtime.domain.proposal import (
    Analysis,
    Draft,
    Escalation,
    Quote,
    Section,
    Strategy,
    Thought,
)
from runtime.domain.revision import Revision
from runtime.domain.values import Scope
from runtime.engine.pipeline import Pipeline
from runtime.engine.scanner import Scanner
from runtime.errors import CognitionError, InvariantBroken
from runtime.ports import Put
from runtime.stores.collections import ARTIFACTS, COMMANDS, JOBS
from tests.effects_made import Crash, Provider
from tests.runtime.engine.carrying import Watched
from tests.runtime.engine.playing import TEXT, Desk, Play, Scripted, at_stage, drafted, play
from tests.world import ACME, ManualClock, ReplyLosing

CALLS = ["read:0", "analyse", "strategise", "write", "review"]


async def test_a_source_is_carried_to_a_verified_export(tmp_path: Path) -> None:
    one = await play(tmp_path)
    await one.begin()
    await one.to_the_end()
    job = await one.job()
    assert job.state.name == "done"
    assert [step.stage for step in job.steps] == list(STAGES[:-1])
    assert one.cognition.calls == CALLS
    assert len(one.provider.ledger) == 1
    assert job.title == "Launch"
    assert set(job.heads) == {"analysis", "strategy", "draft", "review"}
    drafted = await one.revision(job.heads["draft"].id)
    assert [ref.kind for ref in drafted.based_on] == ["analysis", "strategy"]
    assert (drafted.author, drafted.trust.value) == ("scripted", "model_inference")


async def test_every_reply_of_the_store_may_be_lost(tmp_path: Path) -> None:
    one = await play(tmp_path, wrap=ReplyLosing)
    await one.begin()
    await one.to_the_end()
    assert (await one.job()).state.name == "done"
    assert one.cognition.calls == CALLS
    assert len(one.provider.ledger) == 1


async def test_the_export_waits_for_a_person(tmp_path: Path) -> None:
    one = await play(tmp_path)
    await one.begin()
    await one.to_the_end(decide=False)
    assert (await one.job()).stage == "decide_strategy"
    await one.approve()
    await one.to_the_end(decide=False)
    assert (await one.job()).stage == "decide_draft"
    assert one.provider.ledger == []
    await one.approve()
    await one.to_the_end(decide=False)
    assert (await one.job()).state.name == "done"


When = Literal["before", "after"]


async def story(folder: Path, at: tuple[int, When] | None) -> tuple[Play, int]:
    """Play the whole job; die at one transaction, and let another process go on."""
    clock, cognition, desk, provider = ManualClock(), Scripted(), Desk(), Provider()
    first = await play(
        folder, clock=clock, cognition=cognition, desk=desk, provider=provider, wrap=Watched
    )
    await first.begin()
    watched = first.kit.store
    assert isinstance(watched, Watched)
    watched.count = 0
    watched.crash_at = at
    try:
        await first.to_the_end()
    except Crash:
        await first.kit.store.close()
        clock.advance(LEASE)
        first = await play(
            folder, clock=clock, seed=1, cognition=cognition, desk=desk, provider=provider
        )
        await Scanner(first.kit).once()
        await first.to_the_end()
    return first, watched.count


async def test_a_crash_at_any_commit_changes_no_outcome(tmp_path: Path) -> None:
    """No finished model call is repeated, the effect happens once, every job ends done."""
    calm, commits = await story(tmp_path / "calm", None)
    expected = await calm.job()
    await calm.kit.store.close()
    assert commits > 25
    points: list[tuple[int, When]] = [(number, "before") for number in range(1, commits + 1)]
    points += [(number, "after") for number in range(1, commits + 1, 8)]
    for number, when in points:
        where = tmp_path / f"{number}-{when}"
        one, _ = await story(where, (number, when))
        job = await one.job()
        assert job.state.name == "done", where.name
        assert job.heads == expected.heads
        assert len(one.provider.ledger) == 1, where.name
        again = len(one.cognition.calls) - len(CALLS)
        # Only the call whose result was not stored yet may be made again.
        assert again <= (when == "before"), where.name
        assert one.desk.brought <= 2
        await one.kit.store.close()


@pytest.mark.parametrize("stage", ["read", "analyse", "strategise", "write", "review", "export"])
async def test_a_job_that_was_stopped_meanwhile_ends_quietly(tmp_path: Path, stage: str) -> None:
    before = {"write": "decide_strategy", "export": "decide_draft"}
    one = await at_stage(tmp_path, before.get(stage, stage))
    await one.approve()
    calls = list(one.cognition.calls)
    job = jobs.stop(await one.job(), "cancelled", "by Ana", one.clock.now())
    await one.put(Put(JOBS.key(ACME, job.id), job))
    await one.to_the_end()
    assert await one.job() == job
    assert (await one.operation(f"job-1:{stage}")).state.name == "cancelled"
    assert one.cognition.calls == calls
    assert one.provider.ledger == []


async def test_a_job_stopped_while_the_model_thinks_gets_no_revision(tmp_path: Path) -> None:
    one = await at_stage(tmp_path, "strategise")
    work = await one.claim("job-1:strategise")

    class Slow(Scripted):
        async def think(self, projection: Projection) -> Thought:
            job = jobs.stop(await one.job(), "cancelled", "by Ana", one.clock.now())
            await one.put(Put(JOBS.key(ACME, job.id), job))
            return await super().think(projection)

    slow = await play(tmp_path, clock=one.clock, seed=5, cognition=Slow())
    work.kit = slow.kit
    await slow.handlers["stage.strategise"](work)
    job = await one.job()
    assert job.state.name == "stopped"
    assert "strategy" not in job.heads
    assert (await one.operation("job-1:strategise")).state.name == "cancelled"


BAD: dict[str, tuple[str, Analysis | Strategy | Draft]] = {
    "a quote that is not there": (
        "analyse",
        Analysis(
            title="t",
            topics=(),
            summary=("F1",),
            quotes=(Quote(id="F1", text="Tickets cost $5.", start=21),),
        ),
    ),
    "two quotes with one id": (
        "analyse",
        Analysis(title="t", topics=(), summary=("F1",), quotes=(Scripted().quotes()[0],) * 2),
    ),
    "a summary of nothing": (
        "analyse",
        Analysis(title="t", topics=(), summary=("F9",), quotes=Scripted().quotes()),
    ),
    "a point without its quote": (
        "strategise",
        Strategy(headline="h", audience="a", angle="a", points=("F1", "F9"), rationale="r"),
    ),
    "a section without its quote": (
        "write",
        Draft(title="t", sections=(Section(text="x", quotes=("F9",)),)),
    ),
    "another kind of result": ("strategise", drafted()),
}
AGENT = {"analyse": "analyst", "strategise": "strategist", "write": "writer"}


@pytest.mark.parametrize("kind", BAD)
async def test_a_result_that_does_not_hold_is_refused_and_not_journaled(
    tmp_path: Path, kind: str
) -> None:
    stage, bad = BAD[kind]
    one = await at_stage(tmp_path, {"write": "decide_strategy"}.get(stage, stage))
    if stage == "write":
        await one.approve()
    one.cognition.script[AGENT[stage]] = [bad]
    with pytest.raises(CognitionError):
        await one.carry(f"job-1:{stage}")
    assert stage not in await one.journaled(f"job-1:{stage}")
    assert (await one.job()).stage == stage
    one.clock.advance(LEASE)
    await Scanner(one.kit).once()
    await one.carry(f"job-1:{stage}")
    assert (await one.job()).stage != stage


async def test_an_agent_that_asks_for_a_person_gets_one(tmp_path: Path) -> None:
    one = await at_stage(tmp_path, "strategise")
    one.cognition.script["strategist"] = [Escalation(reason="which audience?")]
    await one.settle()
    job = await one.job()
    assert isinstance(job.state, NeedsPerson)
    assert job.state.reason == "agent: which audience?"
    assert (await one.operation("job-1:strategise")).state.name == "operator_required"


async def test_a_damaged_source_stops_the_job_in_words(tmp_path: Path) -> None:
    one = await at_stage(tmp_path, "analyse")
    text = await one.kit.store.get(ARTIFACTS.key(ACME, "job-1:text"))
    assert text is not None
    for path in (tmp_path / "blobs").rglob("*"):
        if path.is_file() and path.read_bytes() == TEXT.encode():
            path.chmod(0o600)
            path.write_bytes(TEXT.encode().replace(b"Friday", b"Monday"))
    await one.settle()
    job = await one.job()
    assert isinstance(job.state, Stopped)
    assert "job-1:text" in job.state.reason
    assert one.cognition.calls == []


async def test_an_effect_that_cannot_be_done_stands_in_front_of_a_person(tmp_path: Path) -> None:
    one = await at_stage(tmp_path, "review")

    async def none(scope: Scope, job: Job, draft: Revision, analysis: Revision) -> Terms | Finding:
        return Finding(ok=False, method="m", evidence="No connector carries it.")

    refusing = Pipeline(one.thinker, one.spill, none, one.handlers["stage.export"])
    one.handlers.update({"stage.review": refusing.handlers["stage.review"]})
    await one.settle()
    state = (await one.job()).state
    assert isinstance(state, NeedsPerson)
    assert state.reason == "No connector carries it."


async def test_a_draft_that_changed_while_it_was_reviewed_is_not_asked_about(
    tmp_path: Path,
) -> None:
    """INV-15: the terms of one draft are never asked about as those of another."""
    one = await at_stage(tmp_path, "review")

    class Meddling(Scripted):
        async def think(self, projection: Projection) -> Thought:
            job = await one.job()
            newer = job.heads["draft"].model_copy(update={"number": 2, "id": "job-1:draft:2"})
            changed = job.model_copy(update={"heads": {**job.heads, "draft": newer}})
            await one.put(Put(JOBS.key(ACME, job.id), changed))
            return await super().think(projection)

    other = await play(tmp_path, clock=one.clock, seed=5, cognition=Meddling())
    with pytest.raises(InvariantBroken):
        await other.carry("job-1:review")
    assert (await one.job()).stage == "review"


async def test_a_long_source_is_read_in_windows_that_are_each_asked_once(tmp_path: Path) -> None:
    text = "Every sentence of this source says one more thing. " * 1_000
    one = await play(tmp_path, cognition=Scripted(text), desk=Desk([text.encode()]))
    await one.begin()
    await one.to_the_end(decide=False)
    assert one.cognition.calls[:3] == ["read:0", "read:1", "read:2"]
    assert len(set(one.cognition.calls)) == len(one.cognition.calls)
    assert (await one.job()).stage == "decide_strategy"


async def test_an_approval_not_used_in_time_lapses(tmp_path: Path) -> None:
    one = await at_stage(tmp_path, "decide_draft")
    await one.approve()
    one.clock.advance(timedelta(days=2))
    await one.settle()
    job = await one.job()
    assert isinstance(job.state, Stopped)
    assert job.state.how == "expired"
    assert one.provider.ledger == []


async def test_an_effect_under_way_is_found_out_about_though_its_job_was_stopped(
    tmp_path: Path,
) -> None:
    """Work past dispatch is never called cancelled."""
    one = await at_stage(tmp_path, "decide_draft")
    await one.approve()
    one.provider.script = ["apply, crash"]
    with pytest.raises(Crash):
        await one.carry("job-1:export")
    job = jobs.stop(await one.job(), "cancelled", "by Ana", one.clock.now())
    await one.put(Put(JOBS.key(ACME, job.id), job))
    one.clock.advance(LEASE)
    await Scanner(one.kit).once()
    await one.to_the_end()
    command = await one.kit.store.get(COMMANDS.key(ACME, f"{job.approval}:command"))
    assert command is not None
    assert command.state.name == "applied"
    assert (await one.operation("job-1:export")).state.name == "succeeded"
    assert (await one.job()).state == job.state
    assert len(one.provider.ledger) == 1
