"""What each agent is shown of a job, and what changes a projection over a real store.

INV-8 and INV-9; the pure part has its own tests in tests/runtime/domain.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta
from pathlib import Path

import pytest

from runtime.domain.approval import Approved, Consumed
from runtime.domain.artifact import RETENTION
from runtime.domain.effect import Unknown
from runtime.domain.feed import FeedChange, FeedHead, change_id
from runtime.domain.material import body_of, reading_plan
from runtime.domain.operation import release
from runtime.domain.policy import Policy
from runtime.domain.projection import Agent, Projection
from runtime.domain.proposal import Analysis, Draft, Escalation, Notes, Strategy, Thought
from runtime.domain.quoting import Block, unquote
from runtime.domain.values import DIRECTORY, Trust
from runtime.engine.compiler import Compiler, Excerpt, asked
from runtime.engine.snapshot import CHAT_MAX
from runtime.errors import (
    ArtifactCorrupt,
    ArtifactNotReady,
    BadInput,
    FenceLost,
    InvariantBroken,
    ScopeViolation,
)
from runtime.stores.collections import (
    APPROVALS,
    ARTIFACTS,
    COMMANDS,
    EVENTS,
    FEED_CHANGES,
    FEED_HEADS,
    ITEMS,
    JOBS,
    MODEL_CALLS,
    OPERATIONS,
    POLICIES,
    RECEIPTS,
    REVISIONS,
    SHELLS,
    VERIFICATIONS,
)
from tests.runtime.engine import compiling
from tests.runtime.engine.compiling import (
    AGENTS,
    ANALYSIS,
    DRAFT,
    HOSTILE,
    QUOTES,
    SOURCE,
    STRATEGY,
    Stage,
    step_of,
)
from tests.world import ACME, OTHER, START, ManualClock, make_kit


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Stage]:
    made = Stage(await make_kit(tmp_path), tmp_path)
    await made.build()
    yield made
    await made.kit.store.close()


def shown(made: Projection, kind: str) -> list[Block]:
    return [block for block in unquote(made.text) if block.header.kind == kind]


@pytest.mark.parametrize("agent", AGENTS)
async def test_the_same_state_gives_the_same_projection(stage: Stage, agent: Agent) -> None:
    first = await stage.compile(agent, step_of(agent))
    clock = stage.kit.clock
    assert isinstance(clock, ManualClock)
    clock.advance(timedelta(days=3, seconds=7))
    assert await stage.compile(agent, step_of(agent)) == first


async def test_a_reader_gets_the_window_of_its_step_to_the_character(stage: Stage) -> None:
    plan = reading_plan(len(SOURCE))
    assert len(plan) == 2
    for index, window in enumerate(plan):
        (block,) = shown(await stage.compile("reader", f"read:{index}"), "source")
        assert block.text == SOURCE[window.start : window.stop]
        assert (block.header.start, block.header.end) == (window.start, window.stop)
        assert block.header.total == len(SOURCE)
        assert block.header.trust is Trust.EXTERNAL
        assert block.header.record == "artifacts/job-1:text"
        assert block.header.label == HOSTILE[:80]


@pytest.mark.parametrize("step", ["read:2", "read:", "analyse", "read:0\n"])
async def test_a_step_outside_the_plan_is_refused(stage: Stage, step: str) -> None:
    with pytest.raises((BadInput, ValueError)):
        await stage.compile("reader", step)


async def test_an_excerpt_is_shown_instead_when_it_is_named(stage: Stage) -> None:
    excerpt = Excerpt("job-1:text", 5, 100)
    made = await stage.compile("reader", "read:0", excerpts=(excerpt,))
    (block,) = shown(made, "source")
    assert block.text == SOURCE[5:105]


async def test_the_analyst_gets_the_journaled_notes_in_order(stage: Stage) -> None:
    made = await stage.compile("analyst", "analyse")
    blocks = shown(made, "notes")
    assert [block.header.label for block in blocks] == ["read:0", "read:1"]
    assert all(block.header.trust is Trust.MODEL for block in blocks)
    first = body_of(blocks[0].text)
    assert isinstance(first, Notes)
    assert first.quotes == QUOTES[:2]


async def test_the_newest_notes_of_a_window_count(stage: Stage) -> None:
    newer = compiling.notes(0, QUOTES[4:], salt="again").model_copy(
        update={"at": START + timedelta(hours=1)}
    )
    await stage.put(MODEL_CALLS, newer)
    block = shown(await stage.compile("analyst", "analyse"), "notes")[0]
    assert block.header.record == f"model_calls/{newer.id}"


async def test_a_window_without_notes_is_named(stage: Stage) -> None:
    call = compiling.notes(1, ())
    thought = Thought(value=Escalation(reason="unreadable"), model="offline-1")
    await stage.put(MODEL_CALLS, call.model_copy(update={"thought": thought}))
    made = await stage.compile("analyst", "analyse")
    window = reading_plan(len(SOURCE))[1]
    place = f"characters {window.start} to {window.stop}"
    assert f'- no result: "source text" {place}; read this window again' in made.text


async def test_what_was_not_read_of_a_long_source_is_named(stage: Stage) -> None:
    chars = 24_000 * 24 + 23
    await stage.change(ARTIFACTS, "job-1:text", chars=chars)
    made = await stage.compile("analyst", "analyse")
    assert made.text.count("- not read:") == 23
    assert made.text.count("- no result:") == 22


async def test_each_agent_gets_the_bodies_that_it_works_from(stage: Stage) -> None:
    expected: dict[Agent, list[Analysis | Strategy | Draft]] = {
        "strategist": [ANALYSIS],
        "writer": [STRATEGY, ANALYSIS],
        "reviewer": [DRAFT, STRATEGY, ANALYSIS],
    }
    for agent, bodies in expected.items():
        found = [body_of(block.text) for block in shown(await stage.compile(agent), "revision")]
        assert [each.result for each in found] == [each.result for each in bodies]
        assert found[0] == bodies[0]


async def test_the_quotes_that_the_strategy_builds_on_are_kept_longest(stage: Stage) -> None:
    analysis = body_of(shown(await stage.compile("writer"), "revision")[1].text)
    assert isinstance(analysis, Analysis)
    assert analysis.quotes[0].id == STRATEGY.points[0]
    assert set(analysis.quotes) == set(QUOTES)


async def test_people_and_providers_are_quoted_with_their_trust(stage: Stage) -> None:
    made = await stage.compile("writer")
    (brief,) = shown(made, "brief")
    assert (brief.text, brief.header.trust) == ("Keep it short.", Trust.OPERATOR)
    (decision,) = shown(made, "decision")
    assert (decision.text, decision.header.record) == (HOSTILE, "approvals/ap-1")
    reports = shown(made, "report")
    assert [block.header.trust for block in reports] == [Trust.PROVIDER] * 2
    assert json.loads(reports[0].text)["detail"] == HOSTILE
    assert made.text.count("\n# 3 Policy") == 1


async def test_the_chat_agent_gets_the_question_and_what_waits(stage: Stage) -> None:
    made = await stage.compile("chat", "answer")
    (question,) = shown(made, "question")
    assert (question.text, question.header.trust) == ("What waits for me?", Trust.OPERATOR)
    (items,) = shown(made, "items")
    assert json.loads(items.text)["title"] == HOSTILE
    (jobs,) = shown(made, "jobs")
    assert json.loads(jobs.text)["number"] == 1


@pytest.mark.parametrize(("count", "named"), [(CHAT_MAX - 1, 0), (CHAT_MAX, 0), (CHAT_MAX + 1, 2)])
async def test_longer_lists_for_the_chat_are_cut_and_named(
    stage: Stage, count: int, named: int
) -> None:
    await stage.put(ITEMS, *(compiling.item(number) for number in range(1, count + 1)))
    await stage.put(SHELLS, *(compiling.shell(number) for number in range(1, count + 1)))
    made = await stage.compile("chat", "answer")
    (jobs,) = shown(made, "jobs")
    assert len(jobs.text.split("\n")) == min(count, CHAT_MAX)
    assert made.text.count("- bounded list:") == named


async def test_the_chat_sees_the_newest_changes_first_and_what_the_question_names(
    stage: Stage,
) -> None:
    await stage.put(SHELLS, *(compiling.shell(number) for number in range(1, 61)))
    await stage.put(SHELLS, *(compiling.shell(number, is_open=False) for number in (61, 62)))
    old = await stage.get(JOBS, "job-1")
    await stage.put(JOBS, old.model_copy(update={"id": "job-61", "number": 61}))
    changed = [*range(1, 51), 62]
    await stage.put(
        FEED_CHANGES,
        *(
            FeedChange(
                id=change_id(sequence),
                sequence=sequence,
                kind="job_upserted",
                subject=f"job-{number}",
                view="d" * 64,
                at=START,
            )
            for sequence, number in enumerate(changed, start=1)
        ),
    )
    await stage.put(FEED_HEADS, FeedHead(sequence=len(changed)))
    await stage.put(EVENTS, compiling.event("How is job 61, or #61? Not 61-2 nor v61."))
    made = await stage.compile("chat", "answer")
    (jobs,) = shown(made, "jobs")
    rows = [json.loads(line) for line in jobs.text.split("\n")]
    assert [row["number"] for row in rows] == [61, *range(50, 31, -1)]
    assert [row["open"] for row in rows] == [False, *[True] * 19]
    assert '- bounded list: "shells beyond the first 20"; /jobs lists them [shells]' in made.text


@pytest.mark.parametrize(
    ("payload", "expected"),
    [('{"text":"hi"}', "hi"), ("plain", "plain"), ('{"a":1}', '{"a":1}'), ("[1]", "[1]")],
)
def test_a_question_is_the_text_of_the_stored_event(payload: str, expected: str) -> None:
    assert asked(compiling.event().model_copy(update={"payload": payload})) == expected


async def test_another_transport_says_where_its_question_stands(stage: Stage) -> None:
    stage.compiler = Compiler(stage.spill, lambda event: f"{event.source} asks")
    (question,) = shown(await stage.compile("chat", "answer"), "question")
    assert question.text == "telegram asks"


Change = Callable[[Stage], Awaitable[None]]
CHANGES: dict[str, Change] = {
    "policy": lambda stage: stage.put(POLICIES, Policy(version=3, since=START)),
    "approval": lambda stage: stage.change(
        APPROVALS, "ap-1", state=Approved(at=START, valid_until=START + timedelta(days=2))
    ),
    "approval used": lambda stage: stage.change(
        APPROVALS, "ap-1", state=Consumed(at=START, by="cmd-1")
    ),
    "effect": lambda stage: stage.change(
        COMMANDS, "cmd-1", state=Unknown(dispatched_at=START, at=START, reason="lost")
    ),
    "attempt": lambda stage: stage.change(COMMANDS, "cmd-1", attempt=2),
    "receipt": lambda stage: stage.change(RECEIPTS, "cmd-1:receipt", outcome="rejected"),
    "verification": lambda stage: stage.change(
        VERIFICATIONS, "cmd-1:receipt:look:1", verified=False
    ),
    "brief": lambda stage: stage.change(JOBS, "job-1", brief="Make it long."),
    "stage": lambda stage: stage.change(JOBS, "job-1", stage="write"),
    "goal": lambda stage: stage.change(OPERATIONS, "job-1:writer", acceptance=("other",)),
}


@pytest.mark.parametrize("change", CHANGES)
async def test_what_is_consequential_in_the_store_changes_the_basis(
    stage: Stage, change: str
) -> None:
    before = await stage.compile("writer")
    await CHANGES[change](stage)
    assert (await stage.compile("writer")).basis != before.basis


async def test_a_takeover_keeps_the_basis_and_changes_the_identity(stage: Stage) -> None:
    before = await stage.compile("writer")
    clock = stage.kit.clock
    operation = await stage.get(OPERATIONS, "job-1:writer")
    await stage.change(
        OPERATIONS,
        "job-1:writer",
        epoch=2,
        attempt=2,
        last_commit="x",
        state=release(operation, clock.now()).state,
    )
    await stage.change(JOBS, "job-1", updated_at=START + timedelta(hours=1))
    after = await stage.compile("writer")
    assert after.basis == before.basis
    assert after.id != before.id
    assert (before.epoch, after.epoch) == (1, 2)


async def test_a_stale_worker_compiles_nothing(stage: Stage) -> None:
    stale = await stage.get(OPERATIONS, "job-1:writer")
    await stage.change(OPERATIONS, "job-1:writer", epoch=2)
    with pytest.raises(FenceLost):
        await stage.compiler.compile(
            stage.store, ACME, stale, "writer", step="write", model="offline-1"
        )


async def test_a_revision_that_is_not_as_referred_is_never_shown(stage: Stage) -> None:
    await stage.change(REVISIONS, "job-1:strategy:1", digest="0" * 64)
    with pytest.raises(InvariantBroken):
        await stage.compile("writer")


async def test_damaged_or_expired_sources_are_never_shown(stage: Stage, tmp_path: Path) -> None:
    (file,) = [path for path in (tmp_path / "blobs").rglob("*") if path.is_file()]
    data = file.read_bytes()
    file.write_bytes(b"X" + data[1:])
    with pytest.raises(ArtifactCorrupt):
        await stage.compile("reader", "read:0")
    with pytest.raises(ArtifactNotReady):
        await stage.compile("analyst", "analyse")


async def test_a_source_past_its_retention_is_never_shown(stage: Stage) -> None:
    clock = stage.kit.clock
    assert isinstance(clock, ManualClock)
    clock.advance(RETENTION["source"])
    with pytest.raises(ArtifactNotReady):
        await stage.compile("reader", "read:0")


async def test_only_a_tenant_has_projections_and_only_its_own(stage: Stage) -> None:
    operation = await stage.get(OPERATIONS, "job-1:writer")
    for scope in (DIRECTORY, OTHER):
        with pytest.raises(ScopeViolation):
            await stage.compiler.compile(
                stage.store, scope, operation, "writer", step="write", model="offline-1"
            )
