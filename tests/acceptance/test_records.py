"""What remains when the conversation is gone: the same lineage, and a pack that can be judged."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

from runtime.domain.operation import Pending
from runtime.domain.receipt import Receipt
from runtime.domain.values import Tenant
from runtime.engine.approvals import At
from runtime.engine.effects import verify_operation
from runtime.ports import Commit, Create, Reads
from runtime.stores.collections import ALL, OPERATIONS, RECEIPTS
from runtime.stores.sqlite import SqliteStore
from runtime.system import SystemClock, SystemIds
from tests.acceptance.people import PACK, STRATEGY
from tests.acceptance.truth import open_pack
from tests.acceptance.world import World, opened
from tests.sources_made import prose

pytestmark = [pytest.mark.processes, pytest.mark.timeout(300)]

SOURCE: Final = "\n\n".join(prose()[:12]).encode()
OURS: Final = Tenant(workspace="main", brand="main")


async def finished(world: World) -> None:
    """A job from its source to a verified pack."""
    await world.sandbox()
    await world.pair(await world.up())
    await world.ana.sends("source.txt", SOURCE)
    await world.ana.approves(STRATEGY)
    await world.ana.approves(PACK)
    await world.ana.verified()


async def why(world: World) -> str:
    """What /why says about job 1."""
    return str((await world.ana.asks("/why 1", "Why · job 1"))["text"])


async def test_why_is_the_same_when_every_message_and_session_is_gone(tmp_path: Path) -> None:
    async with opened(tmp_path) as world:
        await finished(world)
        before = await why(world)
        for word in ("Event telegram", "Artifact source", "model call", "vote approve by"):
            assert word in before
        for word in ("Command content_pack.export", "Receipt · applied", "Verification · verified"):
            assert word in before
        # The agents' sessions live in the process only: it ends, and they are gone with it.
        await world.processes[-1].kill()
        for message in await world.ana.history():
            await world.client.delete("ana", "bot", int(message["message_id"]))
        assert await world.ana.history() == []
        await world.up("up again")
        assert await why(world) == before
        for digest in re.findall(r"sha256 ([0-9a-f]{6})", before):
            assert any(
                row["sha256"].startswith(digest) for row in world.truth.records("artifacts")
            ), digest


async def look_again(world: World, number: int) -> str:
    """Ask the running bot, by an operation in its store, for look `number`; the operation's ID."""
    clock = SystemClock()
    store = SqliteStore.open(world.data / "truth.sqlite", ALL, clock, SystemIds())
    (row,) = world.truth.records("receipts")
    (cause,) = world.truth.records("operations", kind="stage.export")

    async def body(reads: Reads) -> Commit[str]:
        now = clock.now()
        receipt = await reads.get(RECEIPTS.key(OURS, row["id"]))
        export = await reads.get(OPERATIONS.key(OURS, cause["id"]))
        assert isinstance(receipt, Receipt)
        assert export is not None
        asked = verify_operation(At(reads, OURS, now, "again"), receipt, export).model_copy(
            # A look's number is its operation's epoch, which the claim raises by one.
            update={"id": f"again:{number}", "epoch": number - 1, "state": Pending(ready_at=now)}
        )
        return Commit(asked.id, (Create(OPERATIONS.key(OURS, asked.id), asked),))

    try:
        return await store.transact(body)
    finally:
        await store.close()


async def test_a_pack_that_was_changed_after_its_receipt_fails_verification(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path) as world:
        await finished(world)
        (receipt,) = world.truth.records("receipts")
        first = await look_again(world, 2)
        await world.truth.until(
            lambda: world.truth.state("operations", first) == "succeeded", "a second look"
        )
        (path,) = world.truth.packs()
        whole = path.read_bytes()
        section = open_pack(path).sections[0]["text"].encode()
        path.chmod(0o600)
        path.write_bytes(whole.replace(section[:8], b"Tampered", 1))
        second = await look_again(world, 3)
        looks = await world.truth.until(
            lambda: world.truth.records("verifications", operation=second), "a look at the change"
        )
        assert [look["verified"] for look in looks] == [False]
        assert looks[0]["digest"] != receipt["content_digest"]
        assert "not as approved" in looks[0]["evidence"]
        assert world.truth.records("receipts") == [receipt], "a receipt never changes"
        said = await world.ana.asks("/why 1", "NOT verified")
        assert "Verification · verified" in said["text"]
        path.unlink()
        third = await look_again(world, 4)
        gone = await world.truth.until(
            lambda: world.truth.records("verifications", operation=third), "a look at nothing"
        )
        assert [look["verified"] for look in gone] == [False]
        assert "is not there" in gone[0]["evidence"]
