"""The verifier: a second look, a record of its own, and the receipt untouched. INV-7."""

from __future__ import annotations

from pathlib import Path

import pytest

from runtime.domain import job as jobs
from runtime.domain.effect import Command, Finding
from runtime.domain.job import Done, NeedsPerson
from runtime.domain.operation import OperatorRequired, Succeeded, wake
from runtime.engine.effects import verify_id
from runtime.engine.verifier import Verifier
from runtime.errors import FenceLost, InvariantBroken
from runtime.ports import Delete, Put, Write
from runtime.stores.collections import COMMANDS, JOBS, OPERATIONS, RECEIPTS
from tests.effects_made import Only, Provider, export
from tests.runtime.engine.carrying import Carrier, carrier
from tests.world import ACME, START

RECEIPT_ID = f"{export().approval.id}:command:receipt"
VERIFY_ID = verify_id(RECEIPT_ID)


async def received(folder: Path, provider: Provider | None = None) -> Carrier:
    """An export with its receipt; its verify operation is pending."""
    at = await carrier(folder, provider or Provider())
    await at.begin(export())
    await at.carry("job-1:export")
    return at


async def test_what_is_found_as_received_makes_the_job_done(tmp_path: Path) -> None:
    at = await received(tmp_path)
    before = await at.receipts()
    await at.carry(VERIFY_ID)
    job = await at.job()
    assert isinstance(job.state, Done)
    assert job.steps[-1].note == "It is there."
    (look,) = await at.looks()
    assert look.verified
    assert (look.method, look.receipt, look.operation) == ("ledger", RECEIPT_ID, VERIFY_ID)
    assert await at.receipts() == before
    assert isinstance((await at.operation(VERIFY_ID)).state, Succeeded)


async def test_anything_else_puts_the_evidence_before_a_person(tmp_path: Path) -> None:
    at = await received(tmp_path, Provider(damaged=True))
    before = await at.receipts()
    await at.carry(VERIFY_ID)
    job = await at.job()
    assert isinstance(job.state, NeedsPerson)
    assert job.state.reason == "Not verified. It is not as it was."
    assert job.stage == "verify"
    assert not (await at.looks())[0].verified
    assert await at.receipts() == before
    assert isinstance((await at.operation(VERIFY_ID)).state, OperatorRequired)


async def test_a_person_may_ask_for_another_look_and_both_are_kept(tmp_path: Path) -> None:
    at = await received(tmp_path, Provider(damaged=True))
    await at.carry(VERIFY_ID)
    at.provider.damaged = False
    woken = wake(await at.operation(VERIFY_ID), at.clock.now())
    await at.put(Put(OPERATIONS.key(ACME, VERIFY_ID), woken))
    await at.carry(VERIFY_ID)
    assert [look.verified for look in await at.looks()] == [False, True]
    assert isinstance((await at.job()).state, Done)


class Careless(Provider):
    """Says yes to whatever it finds."""

    async def verify(self, command: Command, reference: str) -> Finding:
        found = await super().verify(command, reference)
        return found.model_copy(update={"digest": "b" * 64})


async def test_a_look_whose_digest_differs_from_the_receipt_is_not_believed(tmp_path: Path) -> None:
    at = await received(tmp_path)
    (receipt,) = await at.receipts()
    assert receipt.content_digest == "a" * 64

    careless = Careless(ledger=at.provider.ledger)
    await Verifier(Only(careless))(await at.claim(VERIFY_ID))
    (look,) = await at.looks()
    assert not look.verified
    assert look.evidence.startswith("The digest differs")


async def test_a_command_that_was_changed_behind_its_receipt_is_not_verified(
    tmp_path: Path,
) -> None:
    at = await received(tmp_path)
    command = await at.command()
    assert command is not None
    other = command.model_copy(
        update={"terms": command.terms.model_copy(update={"account": "else"})}
    )
    await at.put(Put(COMMANDS.key(ACME, command.id), other))
    await at.carry(VERIFY_ID)
    (look,) = await at.looks()
    assert (look.verified, look.method) == (False, "stored_terms")


async def test_without_a_connector_nothing_is_called_verified(tmp_path: Path) -> None:
    at = await received(tmp_path)
    await Verifier(Only(None))(await at.claim(VERIFY_ID))
    assert not (await at.looks())[0].verified
    assert isinstance((await at.job()).state, NeedsPerson)


async def test_a_stopped_job_stays_stopped_and_the_look_is_stored(tmp_path: Path) -> None:
    at = await received(tmp_path)
    stopped = jobs.stop(await at.job(), "cancelled", "by Ana", START)
    await at.put(Put(JOBS.key(ACME, "job-1"), stopped))
    await at.carry(VERIFY_ID)
    job = await at.job()
    assert job.state == stopped.state
    assert job.verification == (await at.looks())[0].id


async def test_a_stale_verifier_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    """INV-3."""
    at = await received(tmp_path)
    work = await at.claim(VERIFY_ID)
    await at.steal(VERIFY_ID)
    before = await at.everything()
    try:
        await at.handlers["stage.verify"](work)
    except FenceLost:
        assert await at.everything() == before
    else:
        message = "a stale verifier wrote"
        raise AssertionError(message)


@pytest.mark.parametrize("missing", ["subject", "receipt", "command", "job"])
async def test_a_look_at_nothing_is_a_defect_and_is_said(tmp_path: Path, missing: str) -> None:
    at = await received(tmp_path)
    command = await at.command()
    assert command is not None
    operation = await at.operation(VERIFY_ID)
    writes: dict[str, Write] = {
        "subject": Put(
            OPERATIONS.key(ACME, VERIFY_ID), operation.model_copy(update={"subject": None})
        ),
        "receipt": Delete(RECEIPTS.key(ACME, RECEIPT_ID)),
        "command": Delete(COMMANDS.key(ACME, command.id)),
        "job": Delete(JOBS.key(ACME, "job-1")),
    }
    await at.put(writes[missing])
    with pytest.raises(InvariantBroken):
        await at.carry(VERIFY_ID)
    assert await at.looks() == []
