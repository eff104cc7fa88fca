"""The reconciler: looks, never acts, and hands back what it found. INV-6, INV-12, INV-19."""

from __future__ import annotations

from pathlib import Path

import pytest

from runtime.domain.effect import (
    Answer,
    AnswerAbsent,
    AnswerApplied,
    Command,
    Dispatched,
    Prepared,
    Unknown,
)
from runtime.domain.operation import (
    Claimed,
    OperatorRequired,
    Pending,
    Succeeded,
    Waiting,
    cancel,
)
from runtime.domain.receipt import late_answer
from runtime.domain.values import Fence
from runtime.engine.approvals import At
from runtime.engine.effects import LOOKS_MAX, lost_dispatch
from runtime.engine.reconciler import Reconciler
from runtime.errors import FenceLost
from runtime.ports import Commit, Create, Put, Reads
from runtime.stores.collections import LATE_ANSWERS, OPERATIONS
from tests.effects_made import Act, Look, Only, Provider, export
from tests.runtime.engine.carrying import Carrier, carrier, settled
from tests.world import ACME, START

EXPORT_ID = "job-1:export"
RECONCILE_ID = f"reconcile:{export().approval.id}:command:1"


async def lost(folder: Path, act: Act, *looks: Look) -> Carrier:
    """An export whose answer was lost; its reconcile operation is pending."""
    at = await carrier(folder, Provider([act], list(looks)))
    await at.begin(export())
    await at.carry(EXPORT_ID)
    assert isinstance((await at.operation(RECONCILE_ID)).state, Pending)
    return at


async def test_what_a_look_finds_is_handed_back_and_the_export_wakes(tmp_path: Path) -> None:
    at = await lost(tmp_path, "apply, reply lost")
    await at.carry(RECONCILE_ID)
    command = await at.command()
    assert command is not None
    assert command.state.name == "observed"
    assert command.holder.operation == EXPORT_ID
    assert isinstance((await at.operation(EXPORT_ID)).state, Pending)
    assert isinstance((await at.operation(RECONCILE_ID)).state, Succeeded)
    await at.carry(EXPORT_ID)
    assert (await at.receipts())[0].origin == "reconciliation"
    assert len(at.provider.calls) == 1


async def test_proof_of_absence_opens_the_next_attempt_and_nothing_else_does(
    tmp_path: Path,
) -> None:
    """INV-6."""
    at = await lost(tmp_path, "reply lost")
    await at.carry(RECONCILE_ID)
    command = await at.command()
    assert command is not None
    assert isinstance(command.state, Prepared)
    assert command.attempt == 2
    assert command.holder.operation == EXPORT_ID
    assert len(at.provider.calls) == 1
    await at.to_the_end()
    assert [attempt for _, attempt in at.provider.calls] == [1, 2]


@pytest.mark.parametrize("look", ["unknown", "break", "not entered"])
async def test_a_look_that_finds_nothing_out_is_repeated_then_a_person_decides(
    tmp_path: Path, look: Look
) -> None:
    at = await lost(tmp_path, "apply, reply lost", *[look] * 20)
    await at.to_the_end()
    assert at.provider.reconciled == LOOKS_MAX
    assert len(at.provider.calls) == 1
    command = await at.command()
    assert command is not None
    assert isinstance(command.state, Unknown)
    assert command.state.found
    operation = await at.operation(RECONCILE_ID)
    assert isinstance(operation.state, OperatorRequired)
    assert operation.state.reason == command.state.found
    assert isinstance((await at.operation(EXPORT_ID)).state, Waiting)


async def test_a_later_look_may_still_find_it(tmp_path: Path) -> None:
    at = await lost(tmp_path, "apply, reply lost", "unknown", "break")
    await at.to_the_end()
    assert at.provider.reconciled == 3
    assert [receipt.outcome for receipt in await at.receipts()] == ["applied"]


async def test_a_crash_twice_is_reconciled_twice_each_under_its_own_id(tmp_path: Path) -> None:
    """INV-12."""
    at = await carrier(tmp_path, Provider(["reply lost", "reply lost"]))
    await at.begin(export())
    await at.to_the_end()
    names = {item.id for item in await at.operations() if item.kind == "effect.reconcile"}
    assert names == {RECONCILE_ID, RECONCILE_ID.removesuffix("1") + "2"}
    assert [attempt for _, attempt in at.provider.calls] == [1, 2, 3]
    assert len(at.provider.ledger) == 1


async def late_applied(at: Carrier, reference: str) -> None:
    """The sender's answer arrives after its fence was lost."""
    command = await at.command()
    assert command is not None
    answer = AnswerApplied(reference=reference, digest="a" * 64)
    fence = command.holder.model_copy(update={"operation": EXPORT_ID, "epoch": 1})
    late = late_answer(command, fence, answer, at.clock.now())

    async def body(reads: Reads) -> Commit[None]:
        return Commit(None, (Create(LATE_ANSWERS.key(ACME, late.id), late),))

    await at.kit.store.transact(body)


async def test_a_late_answer_that_verifies_settles_what_a_look_could_not(tmp_path: Path) -> None:
    at = await lost(tmp_path, "apply, reply lost", "unknown")
    await late_applied(at, f"there/{export().approval.id}:command")
    await at.to_the_end()
    assert at.provider.reconciled == 1
    assert (await at.receipts())[0].origin == "reconciliation"


async def test_absence_that_a_late_answer_contradicts_opens_nothing(tmp_path: Path) -> None:
    """INV-6."""
    absent: list[Look] = ["absent"] * 20
    at = await lost(tmp_path, "reply lost", *absent)
    await late_applied(at, "elsewhere")
    await at.to_the_end()
    assert len(at.provider.calls) == 1
    command = await at.command()
    assert command is not None
    assert isinstance(command.state, Unknown)
    assert "told that it worked" in command.state.found


class Meanwhile(Provider):
    """A provider during whose first look the sender's own answer is stored."""

    at: Carrier

    async def reconcile(self, command: Command) -> Answer:
        if not self.reconciled:
            await late_applied(self.at, f"there/{command.id}")
            self.ledger.append(command.id)
            self.reconciled += 1
            return AnswerAbsent(proof="it was not there a moment ago")
        return await super().reconcile(command)


async def test_an_answer_that_comes_while_a_look_goes_on_is_not_overlooked(tmp_path: Path) -> None:
    """INV-6: absence found before the sender's answer opens no attempt."""
    provider = Meanwhile(["reply lost"])
    at = await carrier(tmp_path, provider)
    provider.at = at
    await at.begin(export())
    await at.to_the_end()
    assert len(at.provider.calls) == 1
    assert at.provider.reconciled == 2
    assert (await at.receipts())[0].origin == "reconciliation"


async def test_a_look_that_was_given_up_is_taken_up_again_when_the_wait_is_over(
    tmp_path: Path,
) -> None:
    """INV-19: what hid the effect (a lock, a disk) may be gone; nothing is sent again."""
    looks: list[Look] = ["unknown"] * LOOKS_MAX
    at = await lost(tmp_path, "apply, reply lost", *looks)
    await at.to_the_end()
    assert isinstance((await at.operation(RECONCILE_ID)).state, OperatorRequired)
    state = (await at.operation(EXPORT_ID)).state
    assert isinstance(state, Waiting)
    at.clock.advance(state.until - at.clock.now())
    await at.to_the_end()
    assert at.provider.reconciled == LOOKS_MAX + 1
    await settled(at)


@pytest.mark.parametrize(
    ("act", "state"), [("apply, reply lost", "applied"), ("reply lost", "cancelled")]
)
async def test_an_export_that_has_ended_leaves_the_truth_to_the_reconciler(
    tmp_path: Path, act: Act, state: str
) -> None:
    at = await lost(tmp_path, act)
    key = OPERATIONS.key(ACME, EXPORT_ID)

    async def end(reads: Reads) -> Commit[None]:
        stored = await reads.get(key)
        assert stored is not None
        return Commit(None, (Put(key, cancel(stored, "by a person", at.clock.now())),))

    await at.kit.store.transact(end)
    await at.to_the_end()
    command = await at.command()
    assert command is not None
    assert command.state.name == state
    assert len(at.provider.calls) == 1
    assert len(await at.receipts()) == (1 if state == "applied" else 0)
    assert isinstance((await at.operation(RECONCILE_ID)).state, Succeeded)


async def test_a_command_that_was_resolved_meanwhile_needs_no_look(tmp_path: Path) -> None:
    at = await lost(tmp_path, "apply, reply lost")
    await at.carry(RECONCILE_ID)
    key = OPERATIONS.key(ACME, RECONCILE_ID)

    async def again(reads: Reads) -> Commit[None]:
        stored = await reads.get(key)
        assert stored is not None
        pending = stored.model_copy(update={"state": Pending(ready_at=at.clock.now())})
        return Commit(None, (Put(key, pending),))

    await at.kit.store.transact(again)
    await at.carry(RECONCILE_ID)
    assert at.provider.reconciled == 1
    assert isinstance((await at.operation(RECONCILE_ID)).state, Succeeded)


async def test_without_a_connector_nobody_guesses(tmp_path: Path) -> None:
    at = await lost(tmp_path, "apply, reply lost")
    await Reconciler(Only(None))(await at.claim(RECONCILE_ID))
    command = await at.command()
    assert command is not None
    assert isinstance(command.state, Unknown)
    assert "No connector" in command.state.found


async def test_a_stale_reconciler_is_refused_at_every_commit(tmp_path: Path) -> None:
    """INV-3."""
    refused = 0
    for number in range(1, 6):
        folder = tmp_path / str(number)
        folder.mkdir()
        at = await lost(folder, "reply lost")
        work = await at.claim(RECONCILE_ID)
        seen: list[list[str]] = []

        async def steal(at: Carrier = at, seen: list[list[str]] = seen) -> None:
            await at.steal(RECONCILE_ID)
            seen.append(await at.everything())

        at.watched.before = (at.watched.count + number, steal)
        try:
            await at.handlers["effect.reconcile"](work)
        except FenceLost:
            refused += 1
            assert await at.everything() == seen[0]
        else:
            break
    assert refused == 2


async def test_the_live_path_and_a_scan_make_the_same_commit(tmp_path: Path) -> None:
    """INV-12: the IDs follow from the command and its attempt, whoever notices."""
    at = await lost(tmp_path, "reply lost")
    live, waiting = await at.operation(RECONCILE_ID), await at.operation(EXPORT_ID)
    command = await at.command()
    assert command is not None
    assert isinstance(command.state, Unknown)
    sent = command.model_copy(
        update={
            "state": Dispatched(at=command.state.dispatched_at),
            "holder": Fence(operation=EXPORT_ID, epoch=1),
        }
    )
    claimed = waiting.model_copy(
        update={"state": Claimed(owner="0" * 64, claimed_at=START, until=START)}
    )

    async def scan(reads: Reads) -> Commit[None]:
        found = lost_dispatch(At(reads, ACME, START, "scan"), sent, claimed, "The answer was lost.")
        assert found.command == command
        assert found.operation == waiting
        assert found.reconcile == live
        return Commit(None)

    await at.kit.store.transact(scan)
