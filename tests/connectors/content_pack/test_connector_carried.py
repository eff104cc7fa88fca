"""The whole way on a real disk: approved → packed → received → verified, and tampering found."""

from __future__ import annotations

from pathlib import Path

import pytest

from connectors.content_pack.connector import ContentPack
from connectors.registry import Registry
from runtime.domain.job import Done, NeedsPerson
from runtime.engine.dispatcher import Dispatcher
from runtime.engine.effects import verify_id
from runtime.engine.reconciler import Reconciler
from runtime.engine.verifier import Verifier
from runtime.engine.work import Work
from tests.effects_made import Crash, Provider, export
from tests.runtime.engine.carrying import Carrier, carrier
from tests.world import ACME

COMMAND_ID = f"{export().approval.id}:command"
VERIFY_ID = verify_id(f"{COMMAND_ID}:receipt")


async def begin(tmp_path: Path) -> tuple[Carrier, ContentPack, Registry]:
    at = await carrier(tmp_path, Provider())
    await at.begin(export())
    pack = ContentPack(tmp_path / "packs", at.clock)
    return at, pack, Registry([pack])


async def test_an_approved_draft_becomes_a_verified_pack(tmp_path: Path) -> None:
    at, pack, registry = await begin(tmp_path)
    await Dispatcher(registry)(await at.claim("job-1:export"))
    await Verifier(registry)(await at.claim(VERIFY_ID))
    job = await at.job()
    assert isinstance(job.state, Done)
    (receipt,) = await at.receipts()
    assert pack.path(ACME, receipt.reference).is_file()
    assert job.steps[-2].note == receipt.reference
    assert (await at.looks())[0].digest == receipt.content_digest


async def test_a_pack_changed_after_its_receipt_fails_verification_and_keeps_the_receipt(
    tmp_path: Path,
) -> None:
    """INV-7."""
    at, pack, registry = await begin(tmp_path)
    await Dispatcher(registry)(await at.claim("job-1:export"))
    (receipt,) = await at.receipts()
    path = pack.path(ACME, receipt.reference)
    path.write_bytes(path.read_bytes().replace(b"Friday", b"Monday"))
    await Verifier(registry)(await at.claim(VERIFY_ID))
    job = await at.job()
    assert isinstance(job.state, NeedsPerson)
    assert "draft.md" in job.state.reason
    assert await at.receipts() == [receipt]


async def test_a_death_between_the_pack_and_its_record_is_reconciled_from_the_disk(
    tmp_path: Path,
) -> None:
    """INV-6: the answer is lost with its process; the pack is found, not made again."""
    at, pack, registry = await begin(tmp_path)
    at.watched.crash_at = (at.watched.count + 4, "before")  # claim, prepared, dispatched, observed
    with pytest.raises(Crash):
        await Dispatcher(registry)(await at.claim("job-1:export"))
    (made,) = (tmp_path / "packs").rglob("*.zip")
    inode = made.stat().st_ino
    again = await carrier(tmp_path, Provider(), clock=at.clock, seed=1)
    await again.steal("job-1:export")
    command = await again.command()
    assert command is not None
    assert command.state.name == "dispatched"
    await Dispatcher(registry)(Work(again.kit, ACME, await again.operation("job-1:export")))
    await Reconciler(registry)(await again.claim(f"reconcile:{COMMAND_ID}:1"))
    await Dispatcher(registry)(await again.claim("job-1:export"))
    (receipt,) = await again.receipts()
    assert (receipt.outcome, receipt.origin) == ("applied", "reconciliation")
    assert made.stat().st_ino == inode
    assert pack.path(ACME, receipt.reference) == made
