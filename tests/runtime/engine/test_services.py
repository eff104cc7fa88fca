"""Services: no fault ends a loop, one process runs a single one, and stopping ends all."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path

from runtime.domain.lease import SERVICE_LEASE
from runtime.domain.values import DIRECTORY
from runtime.engine.kit import Kit
from runtime.engine.services import PAUSE_MAX_SECONDS, Holder, Stop, loop
from runtime.errors import StoreUnavailable
from runtime.ports import Commit, Put, Reads
from runtime.stores.collections import COUNTERS, LEASES, Counter
from tests.world import ACME, ManualClock, ReplyLosing, make_kit


async def turns(count: int = 50) -> None:
    """Let other tasks run. The store answers lone commits inline or by its thread."""
    for _ in range(count):
        await asyncio.wait({asyncio.ensure_future(asyncio.to_thread(int))})


class Rounds:
    """A service that does what its script says, then nothing."""

    def __init__(self, *script: bool | Exception) -> None:
        self.script = list(script)
        self.count = 0

    async def __call__(self) -> bool:
        self.count += 1
        said = self.script.pop(0) if self.script else False
        if isinstance(said, Exception):
            raise said
        return said


async def pair(folder: Path) -> tuple[Kit, Kit, ManualClock]:
    clock = ManualClock()
    first = await make_kit(folder, clock=clock)
    return first, await make_kit(folder, clock=clock, seed=1), clock


async def test_a_busy_round_is_followed_at_once_and_an_idle_one_by_a_pause(tmp_path: Path) -> None:
    clock = ManualClock()
    kit, stop, rounds = await make_kit(tmp_path, clock=clock), Stop(), Rounds(True, True)
    running = asyncio.create_task(loop(kit, stop, "s", rounds, idle_seconds=5))
    await turns(5)
    assert rounds.count == 3
    clock.advance(timedelta(seconds=4.9))
    await turns(5)
    assert rounds.count == 3
    clock.advance(timedelta(seconds=0.1))
    await turns(5)
    assert rounds.count == 4
    stop.ask()
    await running


async def test_no_fault_ends_a_loop_and_pauses_grow_to_a_bound(tmp_path: Path) -> None:
    clock = ManualClock()
    fault, defect = StoreUnavailable(cause="c"), ZeroDivisionError()
    kit, stop, rounds = await make_kit(tmp_path, clock=clock), Stop(), Rounds(*[fault, defect] * 8)
    running = asyncio.create_task(loop(kit, stop, "s", rounds, idle_seconds=5))
    for expected in range(1, 17):
        await turns(3)
        assert rounds.count == expected
        assert not running.done()
        clock.advance(timedelta(seconds=PAUSE_MAX_SECONDS))
    await turns(3)
    assert rounds.count == 17
    stop.ask()
    await running


async def test_a_pause_ends_when_what_is_watched_changes(tmp_path: Path) -> None:
    clock = ManualClock()
    kit, stop, rounds = await make_kit(tmp_path, clock=clock), Stop(), Rounds()
    running = asyncio.create_task(
        loop(kit, stop, "s", rounds, idle_seconds=60, watch=COUNTERS.name)
    )
    await turns(5)

    async def body(reads: Reads) -> Commit[None]:
        return Commit(None, (Put(COUNTERS.key(ACME, "n"), Counter(id="n", value=1)),))

    await kit.commit(body)
    await turns(5)
    assert rounds.count == 2
    stop.ask()
    await running


async def test_a_change_during_a_round_is_not_slept_over(tmp_path: Path) -> None:
    clock = ManualClock()
    kit, stop = await make_kit(tmp_path, clock=clock), Stop()
    seen: list[int] = []

    async def once() -> bool:
        seen.append(1)
        if len(seen) == 1:

            async def body(reads: Reads) -> Commit[None]:
                return Commit(None, (Put(COUNTERS.key(ACME, "n"), Counter(id="n", value=1)),))

            await kit.commit(body)
        return False

    running = asyncio.create_task(loop(kit, stop, "s", once, idle_seconds=60, watch=COUNTERS.name))
    await turns(10)
    assert len(seen) == 2
    stop.ask()
    await running


async def test_a_single_service_runs_in_one_process_until_it_gives_way(tmp_path: Path) -> None:
    first, second, clock = await pair(tmp_path)
    stops, rounds = (Stop(), Stop()), (Rounds(), Rounds())
    running = [
        asyncio.create_task(loop(kit, stop, "p", once, idle_seconds=1, single=True))
        for kit, stop, once in zip((first, second), stops, rounds, strict=True)
    ]
    for _ in range(20):
        await turns(5)
        clock.advance(timedelta(seconds=1))
    ran = [once.count for once in rounds]
    assert sorted(count > 0 for count in ran) == [False, True]
    winner = ran.index(max(ran))
    stops[winner].ask()
    await running[winner]
    clock.advance(timedelta(seconds=SERVICE_LEASE.total_seconds() / 3))
    await turns(10)
    assert rounds[1 - winner].count > 0
    stops[1 - winner].ask()
    await running[1 - winner]


async def test_a_dead_holders_lease_runs_out(tmp_path: Path) -> None:
    """INV-4: whoever takes over has the next epoch; at the end exactly the lease is free."""
    first, second, clock = await pair(tmp_path)
    one, two = Holder(first, "s"), Holder(second, "s")
    assert await one.take()
    assert not await two.take()
    clock.advance(SERVICE_LEASE - timedelta(microseconds=1))
    assert not await two.take()
    clock.advance(timedelta(microseconds=1))
    assert await two.take()
    assert not await one.take()
    lease = await first.store.get(LEASES.key(DIRECTORY, "s"))
    assert lease is not None
    assert (lease.epoch, lease.owner) == (2, two.owner)


async def test_a_third_of_the_term_is_trusted_without_asking(tmp_path: Path) -> None:
    first, second, clock = await pair(tmp_path)
    one, two = Holder(first, "s"), Holder(second, "s")
    assert await one.take()
    clock.advance(SERVICE_LEASE / 3)
    assert await one.take()
    clock.advance(SERVICE_LEASE * 2 / 3)
    assert not await two.take()


async def test_giving_back_what_another_holds_changes_nothing(tmp_path: Path) -> None:
    first, second, _ = await pair(tmp_path)
    one, two = Holder(first, "s"), Holder(second, "s")
    await two.free()
    assert await one.take()
    await two.free()
    assert not await two.take()
    await one.free()
    assert await two.take()


async def test_a_lease_is_taken_though_every_reply_is_lost(tmp_path: Path) -> None:
    kit = await make_kit(tmp_path, wrap=ReplyLosing)
    holder = Holder(kit, "s")
    assert await holder.take()
    await holder.free()


async def test_a_process_that_is_told_to_stop_waits_for_nothing(tmp_path: Path) -> None:
    kit, stop = await make_kit(tmp_path), Stop()
    waiting = asyncio.create_task(stop.wait())
    pausing = asyncio.create_task(stop.pause(kit, 3_600))
    await turns(2)
    assert not waiting.done()
    stop.ask()
    await asyncio.gather(waiting, pausing)
    await stop.pause(kit, 3_600)
    assert stop.asked
