"""The dispatcher: an approved effect goes out once, whatever dies. INV-3, INV-5, INV-6, INV-7."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Literal

import pytest

from runtime.domain import job as jobs
from runtime.domain.approval import Consumed
from runtime.domain.effect import Applied, Dispatched, Failed, Prepared, Unknown
from runtime.domain.job import Done, NeedsPerson
from runtime.domain.operation import Cancelled, OperatorRequired, Pending, Succeeded, Waiting
from runtime.domain.people import Role
from runtime.domain.policy import Policy
from runtime.engine.dispatcher import TRIES_MAX, Dispatcher, begun
from runtime.engine.effects import reconcile_id
from runtime.errors import FenceLost
from runtime.ports import Ask, Commit, Put, Reads, Store, Write
from runtime.stores.collections import APPROVALS, JOBS, MARKERS, MEMBERS, POLICIES
from runtime.stores.sqlite import SqliteStore
from tests.conformance.stores import Lossy
from tests.effects_made import ANA, Act, Crash, Only, Provider, export, member
from tests.runtime.engine.carrying import Carrier, carrier
from tests.world import ACME, START

EXPORT_ID = "job-1:export"


async def put(at: Carrier, write: Write) -> None:
    async def body(reads: Reads) -> Commit[None]:
        return Commit(None, (write,))

    await at.watched.store.transact(body)


async def begin(folder: Path, *script: Act) -> Carrier:
    at = await carrier(folder, Provider(list(script)))
    await at.begin(export())
    return at


async def settled(at: Carrier) -> None:
    """The whole story is told once: one effect, one receipt, verified, done, nothing left over."""
    assert len(at.provider.ledger) == 1
    assert len(set(at.provider.calls)) == len(at.provider.calls)
    receipts = await at.receipts()
    assert [receipt.outcome for receipt in receipts] == ["applied"]
    command = await at.command()
    assert command is not None
    assert command.state == Applied(at=receipts[0].at, receipt=receipts[0].id)
    job = await at.job()
    assert isinstance(job.state, Done)
    assert (job.stage, job.receipt) == ("done", receipts[0].id)
    assert [step.stage for step in job.steps] == ["decide_draft", "export", "verify"]
    looks = await at.looks()
    assert looks[-1].verified
    assert job.verification == looks[-1].id
    assert {operation.state.name for operation in await at.operations()} == {"succeeded"}


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
    page = await at.kit.store.find(Ask(MARKERS, "waiting", ACME))
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


@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_crash_at_any_commit_ends_in_one_effect(
    tmp_path: Path, when: Literal["before", "after"]
) -> None:
    """INV-6: the provider's ledger is the judge."""
    crashes = 0
    for number in range(1, 30):
        folder = tmp_path / str(number)
        folder.mkdir()
        first = await begin(folder)
        first.watched.crash_at = (first.watched.count + number, when)
        try:
            await first.to_the_end()
        except Crash:
            crashes += 1
        else:
            await settled(first)
            break
        second = await carrier(folder, first.provider, clock=first.clock, seed=number)
        await second.to_the_end()
        await settled(second)
    assert crashes == 7  # two claims; prepared, dispatched, observed, settled; the look


async def test_two_crashes_at_any_two_commits_end_in_one_effect(tmp_path: Path) -> None:
    """INV-6: also the recovery may die."""
    pairs = seed = 0
    for one in range(1, 8):
        for two in range(1, 8):
            folder = tmp_path / f"{one}-{two}"
            folder.mkdir()
            at = await begin(folder)
            for number in (one, two):
                at.watched.crash_at = (at.watched.count + number, "after")
                with contextlib.suppress(Crash):
                    await at.to_the_end()
                seed += 1
                at = await carrier(folder, at.provider, clock=at.clock, seed=seed)
            await at.to_the_end()
            await settled(at)
            pairs += 1
    assert pairs == 49


@pytest.mark.parametrize("act", ["crash", "apply, crash", "apply, reply lost", "reply lost"])
async def test_a_send_whose_answer_is_missing_is_looked_for_and_never_repeated(
    tmp_path: Path, act: Act
) -> None:
    """INV-6: only proof of absence opens the second attempt."""
    at = await begin(tmp_path, act)
    if "crash" in act:
        with pytest.raises(Crash):
            await at.carry(EXPORT_ID)
        at = await carrier(tmp_path, at.provider, clock=at.clock, seed=1)
    await at.to_the_end()
    await settled(at)
    assert at.provider.reconciled == 1
    attempts = [attempt for _, attempt in at.provider.calls]
    assert attempts == ([1] if act.startswith("apply") else [1, 2])
    origin = "reconciliation" if act.startswith("apply") else "observation"
    assert (await at.receipts())[0].origin == origin


def losing(when: Literal["before", "after"]) -> Callable[[Store], Store]:
    """Each transaction loses its first reply."""

    def wrap(store: Store) -> Store:
        assert isinstance(store, SqliteStore)
        return Lossy(store, when)

    return wrap


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("act", ["apply", "reply lost", "reject", "not entered"])
async def test_lost_replies_of_commits_change_no_outcome(
    tmp_path: Path, act: Act, when: Literal["before", "after"]
) -> None:
    ends = []
    for name, lossy in (("lossy", True), ("plain", False)):
        folder = tmp_path / name
        folder.mkdir()
        provider = Provider([act])
        at = await carrier(
            folder,
            provider,
            wrap=losing(when) if lossy else lambda store: store,
        )
        await at.begin(export())
        await at.to_the_end()
        ends.append((await at.everything(), provider.calls, provider.ledger))
    assert ends[0] == ends[1]


async def test_a_stale_epoch_is_refused_at_every_commit_and_changes_nothing(tmp_path: Path) -> None:
    """INV-3."""
    refused = 0
    for number in range(1, 10):
        folder = tmp_path / str(number)
        folder.mkdir()
        at = await begin(folder)
        work = await at.claim(EXPORT_ID)
        seen: list[list[str]] = []

        async def steal(at: Carrier = at, seen: list[list[str]] = seen) -> None:
            await at.steal(EXPORT_ID)
            seen.append(await at.everything())

        at.watched.before = (at.watched.count + number, steal)
        try:
            await at.handlers["stage.export"](work)
        except FenceLost:
            refused += 1
            assert await at.everything() == seen[0]
        else:
            break
    assert refused == 4  # prepared, dispatched, observed, settled


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
    at.watched.before = (at.watched.count + 3, lambda: put(at, write))
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
    await put(at, Put(JOBS.key(ACME, "job-1"), stopped))
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
