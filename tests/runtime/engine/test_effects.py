"""Writes that several parts share: a scan commits what the live path commits. INV-12, INV-19."""

from __future__ import annotations

from pathlib import Path

import pytest

from runtime.domain.effect import Unknown
from runtime.domain.operation import Waiting
from runtime.domain.values import Fence
from runtime.engine.approvals import At
from runtime.engine.effects import INTERRUPTED, lost_of, reconcile_id
from runtime.ports import Commit, Put, Reads
from runtime.stores.collections import OPERATIONS
from tests.effects_made import Act, Crash, Provider
from tests.runtime.engine.carrying import Carrier, begin, carrier, settled
from tests.world import ACME, START

EXPORT_ID = "job-1:export"


async def scan(at: Carrier) -> bool:
    """What a scan does with a claimed operation whose retries are spent."""

    async def body(reads: Reads) -> Commit[bool]:
        key = OPERATIONS.key(ACME, EXPORT_ID)
        stored = await reads.get(key)
        assert stored is not None
        lost = await lost_of(At(reads, ACME, START, "scan"), stored)
        if lost is None:
            return Commit(False)
        return Commit(True, (*lost.writes, Put(key, lost.operation)))

    return await at.kit.commit(body)


@pytest.mark.parametrize("act", ["apply, crash", "crash"])
async def test_a_dispatch_behind_spent_retries_is_looked_for_and_settled(
    tmp_path: Path, act: Act
) -> None:
    at = await begin(tmp_path, act)
    with pytest.raises(Crash):
        await at.carry(EXPORT_ID)
    at = await carrier(tmp_path, at.provider, clock=at.clock, seed=1)
    assert await scan(at)
    command = await at.command()
    assert command is not None
    assert command.state == Unknown(dispatched_at=START, at=START, reason=INTERRUPTED)
    assert command.holder == Fence(operation=reconcile_id(command), epoch=0)
    assert isinstance((await at.operation(EXPORT_ID)).state, Waiting)
    assert not await scan(at)
    await at.to_the_end()
    await settled(at)


async def test_what_was_not_dispatched_is_not_lost(tmp_path: Path) -> None:
    at = await begin(tmp_path)
    assert not await scan(at)
    at.watched.crash_at = (at.watched.count + 2, "after")
    with pytest.raises(Crash):
        await at.carry(EXPORT_ID)
    again = await carrier(tmp_path, Provider(), clock=at.clock, seed=1)
    assert (await again.command()) is not None
    assert not await scan(again)
