"""The worker: claims, lanes, renewal, retries, fairness, drain; and what a stale worker may do."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path

import pytest

from runtime.domain import operation as operations
from runtime.domain.event import Envelope
from runtime.domain.operation import LEASE, Claimed, Failed, Operation, OperatorRequired, Pending
from runtime.domain.values import Scope, Trust
from runtime.engine import inbox
from runtime.engine.inbox import Task
from runtime.engine.kit import Kit
from runtime.engine.scanner import Scanner
from runtime.engine.services import Stop
from runtime.engine.work import Step, Work
from runtime.engine.worker import Limits, Worker, in_turns
from runtime.errors import CognitionError, FenceLost
from runtime.ports import Commit, Hint, Put, Reads
from runtime.stores.collections import COUNTERS, EVENTS, OPERATIONS, Counter
from runtime.wakes.local import LocalWakes
from tests.world import ACME, OTHER, ManualClock, ReplyLosing, make_kit


async def accept(kit: Kit, source_id: str, scope: Scope = ACME, lane: str | None = None) -> Hint:
    envelope = Envelope(
        source="test",
        source_id=source_id,
        type="t",
        trust=Trust.OPERATOR,
        payload="{}",
        correlation="c",
    )
    order = int("".join(char for char in source_id if char.isdigit()) or 0)
    task = Task("test", ("done",), lane=lane, lane_order=order)
    await inbox.accept(kit, scope, envelope, task)
    return Hint(scope, inbox.operation_id(envelope))


async def stored(kit: Kit, hint: Hint) -> Operation:
    operation = await kit.store.get(OPERATIONS.key(hint.scope, hint.operation))
    assert operation is not None
    return operation


async def succeed(work: Work) -> None:
    async def body(reads: Reads, current: Operation) -> Step[None]:
        del reads
        return Step(None, operation=operations.succeed(current, work.now()))

    await work.commit(body)


async def settle(worker: Worker) -> None:
    """Start what is ready and let it end, until nothing is ready."""
    while await worker.idle():
        await worker.drain()


async def test_an_operation_is_carried_once_and_ends_its_event(tmp_path: Path) -> None:
    kit = await make_kit(tmp_path)
    seen: list[int] = []

    async def handler(work: Work) -> None:
        seen.append(work.operation.epoch)
        await succeed(work)

    hint = await accept(kit, "1")
    worker = Worker(kit, {"test": handler})
    await settle(worker)
    await settle(worker)
    operation = await stored(kit, hint)
    event = await kit.store.get(EVENTS.key(ACME, operation.event or ""))
    assert event is not None
    assert (seen, operation.state.name, event.state.name) == ([1], "succeeded", "completed")


async def test_two_workers_claim_one_operation_once(tmp_path: Path) -> None:
    """INV-4: each claim has its own epoch, and only one succeeds."""
    kits = [await make_kit(tmp_path, seed=seed) for seed in range(4)]
    hint = await accept(kits[0], "1")
    workers = [Worker(kit, {"test": succeed}) for kit in kits for _ in range(5)]
    claims = await asyncio.gather(*(worker.claim(hint) for worker in workers))
    won = [work for work in claims if work is not None]
    assert len(won) == 1
    assert (await stored(kits[0], hint)).epoch == 1


async def test_a_chat_lane_is_worked_in_order_and_one_at_a_time(tmp_path: Path) -> None:
    kit = await make_kit(tmp_path)
    order: list[str] = []
    gate = asyncio.Event()

    async def handler(work: Work) -> None:
        order.append(work.operation.event or "")
        await gate.wait()
        await succeed(work)

    hints = [await accept(kit, str(number), lane="chat") for number in (3, 1, 2)]
    free = await accept(kit, "9")
    worker = Worker(kit, {"test": handler})
    started = [work for hint in [*hints, free] if (work := await worker.claim(hint)) is not None]
    assert {work.operation.id for work in started} == {hints[1].operation, free.operation}
    for work in started:
        await succeed(work)
    gate.set()
    await settle(worker)
    events = [(await stored(kit, hint)).event for hint in (hints[2], hints[0])]
    assert order == events


async def test_the_next_of_a_lane_is_announced_when_the_one_before_ends(tmp_path: Path) -> None:
    kit = await make_kit(tmp_path)
    first, second = [await accept(kit, str(number), lane="chat") for number in (1, 2)]
    announced = await kit.wakes.next(0)
    assert list(announced) == [first, second]
    worker = Worker(kit, {"test": succeed})
    assert await worker.idle()
    await worker.drain()
    assert list(await kit.wakes.next(0)) == [second]


async def test_a_long_lane_hides_no_other_work(tmp_path: Path) -> None:
    clock = ManualClock()
    kit = await make_kit(tmp_path, clock=clock)
    carried: list[str] = []

    async def handler(work: Work) -> None:
        carried.append(work.operation.id)
        await succeed(work)

    lane = [await accept(kit, str(number), lane="chat") for number in range(150)]
    clock.advance(timedelta(seconds=1))
    other = await accept(kit, "other")
    worker = Worker(kit, {"test": handler})
    assert await worker.idle()
    await worker.drain()
    assert sorted(carried) == sorted((lane[0].operation, other.operation))


async def test_a_waiting_operation_does_not_block_its_lane(tmp_path: Path) -> None:
    kit = await make_kit(tmp_path)
    first, second = [await accept(kit, str(number), lane="chat") for number in (1, 2)]
    worker = Worker(kit, {"test": succeed})
    work = await worker.claim(first)
    assert work is not None
    assert await worker.claim(second) is None

    async def body(reads: Reads, current: Operation) -> Step[None]:
        del reads
        return Step(None, operation=operations.wait(current, "approval", work.now() + LEASE))

    await work.commit(body)
    assert await worker.claim(second) is not None


async def test_a_fault_is_tried_again_later_until_a_person_is_asked(tmp_path: Path) -> None:
    clock = ManualClock()
    kit = await make_kit(tmp_path, clock=clock)
    tries: list[int] = []

    async def handler(work: Work) -> None:
        tries.append(work.operation.attempt)
        raise CognitionError(agent="writer", kind="busy", detail="503")

    hint = await accept(kit, "1")
    worker = Worker(kit, {"test": handler})
    for _ in range(operations.ATTEMPTS_MAX + 2):
        await settle(worker)
        clock.advance(operations.RETRY_CEILING)
    operation = await stored(kit, hint)
    event = await kit.store.get(EVENTS.key(ACME, operation.event or ""))
    assert tries == [1, 2, 3, 4, 5]
    assert isinstance(operation.state, OperatorRequired)
    assert event is not None
    assert event.state.name == "dead_lettered"


async def test_a_defect_in_a_handler_does_not_end_the_loop(tmp_path: Path) -> None:
    kit = await make_kit(tmp_path)

    async def handler(work: Work) -> None:
        if work.operation.subject is None:
            raise ZeroDivisionError

    async def silent(work: Work) -> None:
        del work

    hint = await accept(kit, "1")
    worker = Worker(kit, {"test": handler})
    assert await worker.idle()
    await worker.drain()
    operation = await stored(kit, hint)
    assert operation.state == Pending(ready_at=kit.clock.now() + operations.retry_delay(1))
    other = await accept(kit, "2")
    worker = Worker(kit, {"test": silent})
    assert await worker.idle()
    await worker.drain()
    assert isinstance((await stored(kit, other)).state, Pending)


async def test_an_operation_past_its_deadline_fails_visibly(tmp_path: Path) -> None:
    """INV-19: nothing stays claimable for ever without being claimed."""
    clock = ManualClock()
    kit = await make_kit(tmp_path, clock=clock)
    hint = await accept(kit, "1")
    key = OPERATIONS.key(ACME, hint.operation)
    late = (await stored(kit, hint)).model_copy(update={"deadline": clock.now() + LEASE})

    async def put(reads: Reads) -> Commit[None]:
        del reads
        return Commit(None, (Put(key, late),))

    await kit.store.transact(put)
    clock.advance(LEASE)
    await settle(Worker(kit, {"test": succeed}))
    assert isinstance((await stored(kit, hint)).state, Failed)


async def test_a_running_claim_is_renewed_before_it_runs_out(tmp_path: Path) -> None:
    clock = ManualClock()
    kit = await make_kit(tmp_path, clock=clock)
    begun, gate, stop = asyncio.Event(), asyncio.Event(), Stop()

    async def handler(work: Work) -> None:
        begun.set()
        await gate.wait()
        await succeed(work)

    hint = await accept(kit, "1")
    running = asyncio.create_task(Worker(kit, {"test": handler}).run(stop))
    await begun.wait()
    for _ in range(6):
        clock.advance(LEASE / 3)
        before = await stored(kit, hint)
        for _ in range(200):
            if (await stored(kit, hint)).state != before.state:
                break
            await clock.sleep(0)
        state = (await stored(kit, hint)).state
        assert isinstance(state, Claimed)
        assert not operations.lease_expired(await stored(kit, hint), clock.now())
    gate.set()
    stop.ask()
    assert isinstance(kit.wakes, LocalWakes)
    kit.wakes.wake()
    await running
    assert (await stored(kit, hint)).state.name == "succeeded"


async def test_stopping_lets_running_work_come_to_its_end(tmp_path: Path) -> None:
    kit = await make_kit(tmp_path)
    begun, gate, stop = asyncio.Event(), asyncio.Event(), Stop()

    async def handler(work: Work) -> None:
        begun.set()
        await gate.wait()
        await succeed(work)

    hint = await accept(kit, "1")
    running = asyncio.create_task(Worker(kit, {"test": handler}).run(stop))
    await begun.wait()
    stop.ask()
    kit.wakes.wake()  # type: ignore[attr-defined] # the local wakes
    late = await accept(kit, "2")
    gate.set()
    await running
    assert (await stored(kit, hint)).state.name == "succeeded"
    assert (await stored(kit, late)).state.name == "pending"


async def test_no_more_than_the_limit_runs_at_once(tmp_path: Path) -> None:
    kit = await make_kit(tmp_path)
    running = most = 0
    stop = Stop()
    done = asyncio.Event()
    total = 12
    ended = 0

    async def handler(work: Work) -> None:
        nonlocal running, most, ended
        running += 1
        most = max(most, running)
        await kit.clock.sleep(0)
        await succeed(work)
        running -= 1
        ended += 1
        if ended == total:
            done.set()

    for number in range(total):
        await accept(kit, str(number))
    loop = asyncio.create_task(Worker(kit, {"test": handler}, Limits(concurrency=3)).run(stop))
    await done.wait()
    stop.ask()
    kit.wakes.wake()  # type: ignore[attr-defined] # the local wakes
    await loop
    assert most == 3


def test_tenants_take_turns() -> None:
    hints = [Hint(ACME, f"a{index}") for index in range(4)] + [Hint(OTHER, "b0")]
    assert [hint.operation for hint in in_turns(hints)] == ["a0", "b0", "a1", "a2", "a3"]


async def test_a_tenant_with_much_work_does_not_starve_another(tmp_path: Path) -> None:
    kit = await make_kit(tmp_path)
    order: list[Scope] = []

    async def handler(work: Work) -> None:
        order.append(work.scope)
        await succeed(work)

    for number in range(30):
        await accept(kit, f"a{number}")
    await accept(kit, "b1", scope=OTHER)
    await settle(Worker(kit, {"test": handler}))
    assert order.index(OTHER) <= 1


async def test_a_stale_worker_writes_nothing(tmp_path: Path) -> None:
    """INV-3 and INV-4: after a takeover every write of the older claim is refused."""
    clock = ManualClock()
    kit = await make_kit(tmp_path, clock=clock)
    hint = await accept(kit, "1")
    stale = await Worker(kit, {"test": succeed}).claim(hint)
    assert stale is not None
    clock.advance(LEASE)
    assert (await Scanner(kit).once()).released == 1
    fresh = await Worker(kit, {"test": succeed}).claim(hint)
    assert fresh is not None
    assert fresh.operation.epoch == stale.operation.epoch + 1
    key = COUNTERS.key(ACME, "written")

    async def write(reads: Reads, current: Operation) -> Step[None]:
        del reads, current
        return Step(None, (Put(key, Counter(id="written", value=1)),))

    with pytest.raises(FenceLost):
        await stale.commit(write)
    with pytest.raises(FenceLost):
        await succeed(stale)
    assert await kit.store.get(key) is None
    await succeed(fresh)
    with pytest.raises(FenceLost):
        await fresh.commit(write)
    assert await kit.store.get(key) is None


async def test_work_goes_on_when_every_reply_is_lost(tmp_path: Path) -> None:
    kit = await make_kit(tmp_path, wrap=ReplyLosing)
    values: list[int] = []
    key = COUNTERS.key(ACME, "n")

    async def handler(work: Work) -> None:
        async def count(reads: Reads, current: Operation) -> Step[int]:
            del current
            known = await reads.get(key)
            raised = Counter(id="n", value=(known.value if known else 0) + 1)
            return Step(raised.value, (Put(key, raised),))

        values.append(await work.commit(count))
        values.append(await work.commit(count))
        await succeed(work)

    hint = await accept(kit, "1")
    await settle(Worker(kit, {"test": handler}))
    assert values == [1, 2]
    operation = await stored(kit, hint)
    assert (operation.state.name, operation.epoch) == ("succeeded", 1)


async def test_a_claim_that_ran_out_is_released_parked_or_left(tmp_path: Path) -> None:
    clock = ManualClock()
    kit = await make_kit(tmp_path, clock=clock)
    hint = await accept(kit, "1")
    worker = Worker(kit, {"test": succeed})
    assert await worker.claim(hint) is not None
    clock.advance(LEASE - timedelta(microseconds=1))
    assert (await Scanner(kit).once()).released == 0
    clock.advance(timedelta(microseconds=1))
    assert (await Scanner(kit).once()).released == 1
    assert (await Scanner(kit).once()).released == 0
    assert (await stored(kit, hint)).state.name == "pending"
