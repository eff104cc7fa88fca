"""Going on: the next operation is claimed in the commit that creates it, under all its rules."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from runtime.domain import operation as operations
from runtime.domain.operation import LEASE, Goal, Operation, Pending
from runtime.domain.values import sha256
from runtime.engine.kit import Kit
from runtime.engine.scanner import Scanner
from runtime.engine.services import Stop
from runtime.engine.work import Step, Work
from runtime.engine.worker import Limits, Worker
from runtime.ports import Commit, Create, Reads, Store
from runtime.stores.collections import OPERATIONS
from tests.world import ACME, Counting, ManualClock, ReplyLosing, make_kit


def made(kit: Kit, id_: str, kind: str = "second", lane: str | None = None) -> Operation:
    now = kit.clock.now()
    return Operation(
        id=id_,
        kind=kind,
        goal=Goal(kind=kind, digest=sha256(id_.encode())),
        acceptance=("done",),
        correlation="c",
        lane=lane,
        in_lane=lane,
        created_at=now,
        state=Pending(ready_at=now),
    )


async def put(kit: Kit, operation: Operation) -> None:
    async def body(reads: Reads) -> Commit[None]:
        known = await reads.get(OPERATIONS.key(ACME, operation.id))
        write = Create(OPERATIONS.key(ACME, operation.id), operation)
        return Commit(None, () if known is not None else (write,))

    await kit.commit(body)


async def stored(kit: Kit, id_: str) -> Operation:
    found = await kit.store.get(OPERATIONS.key(ACME, id_))
    assert found is not None
    return found


class Two:
    """A first stage that creates a second one, and the second."""

    def __init__(self, kit: Kit, following: Operation) -> None:
        self.kit = kit
        self.following = following
        self.epochs: list[tuple[str, int]] = []
        self.gate: asyncio.Event | None = None

    async def first(self, work: Work) -> None:
        self.epochs.append((work.operation.id, work.operation.epoch))

        async def body(reads: Reads, current: Operation) -> Step[None]:
            del reads
            created = Create(OPERATIONS.key(ACME, self.following.id), self.following)
            return Step(None, (created,), operations.succeed(current, work.now()))

        await work.commit(body)

    async def second(self, work: Work) -> None:
        self.epochs.append((work.operation.id, work.operation.epoch))
        if self.gate is not None:
            await self.gate.wait()

        async def body(reads: Reads, current: Operation) -> Step[None]:
            del reads
            return Step(None, operation=operations.succeed(current, work.now()))

        await work.commit(body)


async def begin(
    kit: Kit, following: Operation | None = None, limits: Limits | None = None
) -> tuple[Worker, Two]:
    two = Two(kit, following or made(kit, "b"))
    worker = Worker(kit, {"first": two.first, "second": two.second}, limits)
    await put(kit, made(kit, "a", "first"))
    return worker, two


async def test_the_next_stage_costs_no_claim_of_its_own(tmp_path: Path) -> None:
    counts: list[Counting] = []

    def counting(store: Store) -> Store:
        counts.append(Counting(store))
        return counts[0]

    kit = await make_kit(tmp_path, wrap=counting)
    worker, two = await begin(kit, limits=Limits(concurrency=2))
    before = counts[0].commits
    assert await worker.idle()
    await worker.drain()
    assert two.epochs == [("a", 1), ("b", 1)]
    assert (await stored(kit, "b")).state.name == "succeeded"
    assert counts[0].commits - before == 3, "claim, first and next, second"


async def test_a_full_worker_passes_the_next_stage_on(tmp_path: Path) -> None:
    kit = await make_kit(tmp_path)
    worker, two = await begin(kit, limits=Limits(concurrency=1))
    assert await worker.idle()
    await worker.drain()
    assert two.epochs == [("a", 1)]
    assert (await stored(kit, "b")).state.name == "pending"


@pytest.mark.parametrize("why", ["lane", "kind", "later"])
async def test_what_it_may_not_take_stays_pending(tmp_path: Path, why: str) -> None:
    kit = await make_kit(tmp_path)
    following = made(
        kit, "b", "third" if why == "kind" else "second", "x" if why == "lane" else None
    )
    if why == "later":
        later = Pending(ready_at=kit.clock.now() + LEASE)
        following = following.model_copy(update={"state": later})
    worker, two = await begin(kit, following)
    assert await worker.idle()
    await worker.drain()
    assert two.epochs == [("a", 1)]
    assert (await stored(kit, "b")).state.name == "pending"


async def test_a_stopping_worker_takes_nothing_more(tmp_path: Path) -> None:
    kit = await make_kit(tmp_path)
    stop = Stop()
    two = Two(kit, made(kit, "b"))

    async def first(work: Work) -> None:
        stop.ask()
        kit.wakes.wake()  # type: ignore[attr-defined] # the local wakes
        await two.first(work)

    await put(kit, made(kit, "a", "first"))
    await Worker(kit, {"first": first, "second": two.second}).run(stop)
    assert two.epochs == [("a", 1)]
    assert (await stored(kit, "b")).state.name == "pending"


async def test_a_lost_reply_does_not_lose_what_was_taken(tmp_path: Path) -> None:
    kit = await make_kit(tmp_path, wrap=ReplyLosing)
    worker, two = await begin(kit)
    while await worker.idle():
        await worker.drain()
    assert two.epochs == [("a", 1), ("b", 1)]
    assert (await stored(kit, "b")).state.name == "succeeded"


async def test_a_worker_that_dies_with_it_leaves_it_to_the_scanner(tmp_path: Path) -> None:
    clock = ManualClock()
    kit = await make_kit(tmp_path, clock=clock)
    worker, two = await begin(kit)
    two.gate = asyncio.Event()
    assert await worker.idle()
    while ("b", 1) not in two.epochs:
        await clock.sleep(0)
    clock.advance(LEASE)
    assert (await Scanner(kit).once()).released == 1
    other = Two(kit, made(kit, "c"))
    heir = Worker(kit, {"first": other.first, "second": other.second})
    assert await heir.idle()
    await heir.drain()
    assert other.epochs == [("b", 2)]
    two.gate.set()
    await worker.drain()
    assert (await stored(kit, "b")).epoch == 2, "the stale worker changed nothing"
