"""The dispatcher: an approved effect goes out once, whatever dies. INV-3, INV-5, INV-6, INV-7."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from runtime.domain import job as jobs
from runtime.domain.approval import Consumed
from runtime.domain.effect import (
    Applied,
    ClosedUnproven,
    CommandCancelled,
    CommandState,
    Dispatched,
    Failed,
    Prepared,
    Unknown,
)
from runtime.domain.job import NeedsPerson
from runtime.domain.operation import Cancelled, OperatorRequired, Pending, Succeeded, Waiting
from runtime.domain.people import Role
from runtime.domain.policy import Policy
from runtime.domain.values import Fence
from runtime.engine.dispatcher import TRIES_MAX, Dispatcher, begun
from runtime.engine.effects import reconcile_id
from runtime.errors import FenceLost
from runtime.ports import Ask, Delete, Put, Write
from runtime.stores.collections import (
    APPROVALS,
    COMMANDS,
    JOBS,
    MARKERS,
    MEMBERS,
    OPERATIONS,
    POLICIES,
)
from tests.effects_made import ANA, Act, Crash, Only, Provider, command, export, member, vote
from tests.runtime.engine.carrying import Carrier, begin, carrier, settled
from tests.world import ACME, START

EXPORT_ID = "job-1:export"


async def test_an_approved_effect_becomes_a_receipt_and_a_verified_job(tmp_path: Path) -> None:
    at = await begin(tmp_path)
    await at.to_the_end()
    await settled(at)
    assert at.provider.calls == [(f"{export().approval.id}:command", 1)]
    receipt = (await at.receipts())[0]
    assert receipt.origin == "observation"
    assert (receipt.operation, receipt.epoch) == (EXPORT_ID, 1)
    approval = await at.kit.store.get(APPROVALS.key(ACME, export().approval.id))
    assert approval is not None
    assert isinstance(approval.state, Consumed)
    assert approval.state.by == receipt.command


async def test_every_change_leaves_a_mark(tmp_path: Path) -> None:
    at = await begin(tmp_path)
    await at.carry(EXPORT_ID)
    page = await at.kit.store.find(Ask(MARKERS, "waiting", None))
    kinds = {found.record.kind for found in page.rows}
    assert kinds == {"job"}


async def test_the_intent_is_stored_before_the_provider_is_contacted(tmp_path: Path) -> None:
    at = await begin(tmp_path, "crash")
    with pytest.raises(Crash):
        await at.carry(EXPORT_ID)
    command = await at.command()
    assert command is not None
    assert command.terms_digest == export().approval.digest
    assert isinstance(command.state, Dispatched)


async def test_an_answer_that_comes_too_late_is_evidence_and_no_outcome(tmp_path: Path) -> None:
    at = await begin(tmp_path)
    work = await at.claim(EXPORT_ID)
    at.watched.before = (at.watched.count + 3, lambda: at.steal(EXPORT_ID))
    with pytest.raises(FenceLost):
        await at.handlers["stage.export"](work)
    command = await at.command()
    assert command is not None
    assert isinstance(command.state, Dispatched)
    (late,) = await at.late(command.id)
    assert (late.answer.name, late.attempt, late.epoch) == ("applied", 1, 1)
    at.clock.advance(timedelta(minutes=5))
    await at.to_the_end()
    await settled(at)
    assert len(at.provider.calls) == 1


async def test_a_lost_dispatch_waits_with_its_reconciler_as_holder(tmp_path: Path) -> None:
    at = await begin(tmp_path, "reply lost")
    await at.carry(EXPORT_ID)
    command = await at.command()
    assert command is not None
    assert isinstance(command.state, Unknown)
    assert command.holder.operation == reconcile_id(command)
    export_operation = await at.operation(EXPORT_ID)
    assert isinstance(export_operation.state, Waiting)
    assert export_operation.state.on == command.id
    reconcile = await at.operation(reconcile_id(command))
    assert isinstance(reconcile.state, Pending)
    assert (reconcile.cause, reconcile.subject) == (EXPORT_ID, command.id)


async def test_an_unknown_command_is_never_sent_again_however_often_it_wakes(
    tmp_path: Path,
) -> None:
    """INV-6."""
    at = await begin(tmp_path, "reply lost")
    at.provider.looks = ["unknown"] * 100
    await at.to_the_end()
    for _ in range(3):
        at.clock.advance(timedelta(days=2))
        await at.to_the_end()
    assert at.provider.calls == [(f"{export().approval.id}:command", 1)]
    command = await at.command()
    assert command is not None
    assert isinstance(command.state, Unknown)
    assert isinstance((await at.operation(EXPORT_ID)).state, Waiting)


async def test_a_refusal_is_received_and_put_before_a_person(tmp_path: Path) -> None:
    at = await begin(tmp_path, "reject")
    await at.to_the_end()
    (receipt,) = await at.receipts()
    assert receipt.outcome == "rejected"
    command = await at.command()
    assert command is not None
    assert isinstance(command.state, Failed)
    job = await at.job()
    assert isinstance(job.state, NeedsPerson)
    assert "too long" in job.state.reason
    assert job.stage == "export"
    assert at.provider.ledger == []
    assert [item.id for item in await at.operations()] == [EXPORT_ID]


async def test_a_provider_that_was_not_reached_is_tried_again_within_bounds(tmp_path: Path) -> None:
    again: list[Act] = ["not entered"] * 10
    at = await begin(tmp_path, *again)
    await at.to_the_end()
    assert [attempt for _, attempt in at.provider.calls] == list(range(1, TRIES_MAX + 1))
    job = await at.job()
    assert isinstance(job.state, NeedsPerson)
    assert job.state.reason.startswith("Nothing was sent.")
    assert isinstance((await at.operation(EXPORT_ID)).state, OperatorRequired)
    command = await at.command()
    assert command is not None
    assert isinstance(command.state, Prepared)
    assert await at.receipts() == []


async def test_a_second_try_that_reaches_the_provider_settles(tmp_path: Path) -> None:
    at = await begin(tmp_path, "not entered")
    await at.carry(EXPORT_ID)
    waiting = await at.operation(EXPORT_ID)
    assert isinstance(waiting.state, Pending)
    assert waiting.state.ready_at > at.clock.now()
    await at.to_the_end()
    await settled(at)
    assert [attempt for _, attempt in at.provider.calls] == [1, 2]


async def test_a_credential_gap_asks_a_person_at_once(tmp_path: Path) -> None:
    at = await begin(tmp_path, "credential gap")
    await at.to_the_end()
    assert len(at.provider.calls) == 1
    job = await at.job()
    assert isinstance(job.state, NeedsPerson)
    assert "token has expired" in job.state.reason


@pytest.mark.parametrize("act", ["break", "nothing", "absent"])
async def test_what_a_connector_did_not_classify_is_unknown(tmp_path: Path, act: Act) -> None:
    at = await begin(tmp_path, act)
    await at.carry(EXPORT_ID)
    command = await at.command()
    assert command is not None
    assert isinstance(command.state, Unknown)


async def test_without_a_connector_nothing_is_prepared_and_a_person_is_told(tmp_path: Path) -> None:
    at = await begin(tmp_path)
    await Dispatcher(Only(None))(await at.claim(EXPORT_ID))
    assert await at.command() is None
    job = await at.job()
    assert isinstance(job.state, NeedsPerson)
    assert "No connector" in job.state.reason


async def changes_between_intent_and_dispatch(tmp_path: Path, write: Write) -> Carrier:
    """The world changes after the intent is stored and before anything is sent."""
    at = await begin(tmp_path)
    at.watched.before = (at.watched.count + 3, lambda: at.put(write))
    await at.carry(EXPORT_ID)
    return at


@pytest.mark.parametrize(
    "write",
    [
        Put(POLICIES.key(ACME, "current"), Policy(since=START, version=2, allowed_effects=())),
        Put(POLICIES.key(ACME, "current"), Policy(since=START, version=2, approvals_needed=2)),
        Put(MEMBERS.key(ACME, ANA), member(ANA, Role.VIEWER)),
    ],
    ids=["effect forbidden", "more people needed", "approver demoted"],
)
async def test_everything_is_asked_again_at_dispatch(tmp_path: Path, write: Write) -> None:
    """INV-5."""
    at = await changes_between_intent_and_dispatch(tmp_path, write)
    assert at.provider.calls == []
    command = await at.command()
    assert command is not None
    assert isinstance(command.state, Prepared)
    assert isinstance((await at.job()).state, NeedsPerson)


async def test_a_job_that_is_stopped_before_dispatch_takes_the_intent_back(tmp_path: Path) -> None:
    stopped = jobs.stop(export().job, "cancelled", "by Ana", START)
    at = await changes_between_intent_and_dispatch(tmp_path, Put(JOBS.key(ACME, "job-1"), stopped))
    assert at.provider.calls == []
    command = await at.command()
    assert command is not None
    assert command.state.name == "cancelled"
    assert isinstance((await at.operation(EXPORT_ID)).state, Cancelled)


async def test_a_job_that_is_stopped_after_dispatch_still_gets_its_receipt(tmp_path: Path) -> None:
    at = await begin(tmp_path, "apply, reply lost")
    await at.carry(EXPORT_ID)
    stopped = jobs.stop(await at.job(), "cancelled", "by Ana", START)
    await at.put(Put(JOBS.key(ACME, "job-1"), stopped))
    await at.to_the_end()
    assert [receipt.outcome for receipt in await at.receipts()] == ["applied"]
    job = await at.job()
    assert job.state == stopped.state
    assert job.stage == "export"
    assert (await at.looks())[0].verified
    assert isinstance((await at.operation(EXPORT_ID)).state, Succeeded)


async def test_a_decision_that_lapsed_is_stored_as_lapsed_and_nothing_goes_out(
    tmp_path: Path,
) -> None:
    at = await begin(tmp_path)
    at.clock.advance(timedelta(days=2))
    await at.carry(EXPORT_ID)
    assert at.provider.calls == []
    approval = await at.kit.store.get(APPROVALS.key(ACME, export().approval.id))
    assert approval is not None
    assert approval.state.name == "lapsed"
    assert isinstance((await at.job()).state, NeedsPerson)


async def test_begun_says_whether_the_effect_has_its_command(tmp_path: Path) -> None:
    at = await begin(tmp_path, "not entered")
    work = await at.claim(EXPORT_ID)
    assert not await begun(work)
    await at.handlers["stage.export"](work)
    assert await begun(work)


async def state_of(
    folder: Path, command_state: CommandState, *, holder: str = EXPORT_ID
) -> Carrier:
    """An export that finds its command in this state when it is claimed."""
    at = await begin(folder)
    stored = command().model_copy(update={"state": command_state})
    held = stored.model_copy(update={"holder": Fence(operation=holder, epoch=1)})
    await at.put(Put(COMMANDS.key(ACME, held.id), held))
    await at.carry(EXPORT_ID)
    assert at.provider.calls == []
    return at


@pytest.mark.parametrize(
    ("state", "ends"),
    [
        (Applied(at=START, receipt="r"), "succeeded"),
        (Failed(at=START, reason="too long"), "failed"),
        (CommandCancelled(at=START, reason="stopped"), "failed"),
        (ClosedUnproven(at=START, by=ANA, reason="enough"), "failed"),
    ],
)
async def test_a_settled_command_ends_its_export_without_another_word(
    tmp_path: Path, state: CommandState, ends: str
) -> None:
    at = await state_of(tmp_path, state)
    assert (await at.operation(EXPORT_ID)).state.name == ends


async def test_an_unknown_command_without_its_reconciler_gets_one(tmp_path: Path) -> None:
    """INV-19: waiting for nobody would be for ever."""
    at = await state_of(tmp_path, Unknown(dispatched_at=START, at=START, reason="lost"))
    stored = await at.command()
    assert stored is not None
    assert stored.holder.operation == reconcile_id(stored)
    assert isinstance((await at.operation(reconcile_id(stored))).state, Pending)
    assert isinstance((await at.operation(EXPORT_ID)).state, Waiting)


@pytest.mark.parametrize(
    "state", [Prepared(at=START, ready_at=START), Dispatched(at=START)], ids=["prepared", "sent"]
)
async def test_a_command_that_another_operation_holds_is_left_alone(
    tmp_path: Path, state: CommandState
) -> None:
    at = await state_of(tmp_path, state, holder="other")
    stored = await at.command()
    assert stored is not None
    assert stored.state == state
    assert isinstance((await at.operation(EXPORT_ID)).state, Waiting)


async def test_an_effect_with_an_approved_time_waits_for_it(tmp_path: Path) -> None:
    at = await carrier(tmp_path, Provider())
    made = export()
    noon = START + timedelta(hours=3)
    terms = made.terms.model_copy(update={"not_before": noon})
    votes = (vote(ANA, terms.digest),)
    changes = {"terms": terms, "digest": terms.digest, "votes": votes}
    made.approval = made.approval.model_copy(update=changes)
    await at.begin(made)
    await at.carry(EXPORT_ID)
    assert at.provider.calls == []
    assert (await at.operation(EXPORT_ID)).state == Pending(ready_at=noon)
    at.clock.advance(timedelta(hours=3))
    await at.to_the_end()
    await settled(at)


@pytest.mark.parametrize("missing", ["job", "approval", "the job's approval", "name"])
async def test_an_export_of_nothing_stands_in_front_of_a_person(
    tmp_path: Path, missing: str
) -> None:
    at = await begin(tmp_path)
    made = export()
    without = made.job.model_copy(update={"approval": None})
    nameless = made.operation.model_copy(update={"job": None})
    writes: dict[str, Write] = {
        "job": Delete(JOBS.key(ACME, "job-1")),
        "approval": Delete(APPROVALS.key(ACME, made.approval.id)),
        "the job's approval": Put(JOBS.key(ACME, "job-1"), without),
        "name": Put(OPERATIONS.key(ACME, EXPORT_ID), nameless),
    }
    await at.put(writes[missing])
    work = await at.claim(EXPORT_ID)
    assert not await begun(work)
    await at.handlers["stage.export"](work)
    assert isinstance((await at.operation(EXPORT_ID)).state, OperatorRequired)
