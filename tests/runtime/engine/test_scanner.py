"""The scanner: what stopped moving goes on or stands in front of a person, and once (INV-19)."""

from __future__ import annotations

import sqlite3
from datetime import timedelta
from pathlib import Path

import pytest

from runtime.domain import operation as operations
from runtime.domain.operation import ATTEMPTS_MAX, LEASE, Claimed, Operation, Pending, Waiting
from runtime.domain.values import DIRECTORY, Scope, sha256
from runtime.engine.kit import Kit
from runtime.engine.scanner import PAGE, Scan, Scanner, expired_claim, overdue_wait
from runtime.errors import StoreUnavailable
from runtime.ports import Ask, Body, Commit, Put, Reads, Store
from runtime.stores.collections import OPERATIONS
from tests.effects_made import export
from tests.runtime.engine.carrying import Watched
from tests.world import ACME, OTHER, START, Counting, ManualClock, make_kit

TICK = timedelta(microseconds=1)
AROUND = pytest.mark.parametrize(
    ("offset", "over"), [(-TICK, False), (0 * TICK, True), (TICK, True)]
)
MADE = export().operation


def claimed(id_: str = "op", attempt: int = 1, **changes: object) -> Operation:
    state = Claimed(owner=sha256(b"o"), claimed_at=START, until=START + LEASE)
    return MADE.model_copy(
        update={"id": id_, "epoch": 1, "attempt": attempt, "state": state, **changes}
    )


def waiting(id_: str = "op") -> Operation:
    return MADE.model_copy(
        update={"id": id_, "attempt": 4, "state": Waiting(on="a", until=START + LEASE)}
    )


async def store(kit: Kit, *made: Operation, scope: Scope = ACME) -> None:
    async def body(reads: Reads) -> Commit[None]:
        return Commit(None, tuple(Put(OPERATIONS.key(scope, each.id), each) for each in made))

    await kit.store.transact(body)


async def found(kit: Kit, id_: str, scope: Scope = ACME) -> Operation:
    stored = await kit.store.get(OPERATIONS.key(scope, id_))
    assert stored is not None
    return stored


@AROUND
def test_a_claim_is_over_at_its_end(offset: timedelta, over: bool) -> None:
    after = expired_claim(claimed(), START + LEASE + offset)
    assert isinstance(after.state, Pending) is over
    assert after.epoch == 1


@AROUND
def test_a_wait_is_over_at_its_end_with_a_fresh_retry_budget(offset: timedelta, over: bool) -> None:
    after = overdue_wait(waiting(), START + LEASE + offset)
    assert isinstance(after.state, Pending) is over
    assert after.attempt == (0 if over else 4)


@pytest.mark.parametrize(
    ("attempt", "state"),
    [
        (ATTEMPTS_MAX - 1, "pending"),
        (ATTEMPTS_MAX, "operator_required"),
        (ATTEMPTS_MAX + 1, "operator_required"),
    ],
)
def test_a_spent_retry_budget_needs_a_person(attempt: int, state: str) -> None:
    assert expired_claim(claimed(attempt=attempt), START + LEASE).state.name == state


@pytest.mark.parametrize(
    ("replay", "state"),
    [("safe", "pending"), ("reconcile", "pending"), ("never", "operator_required")],
)
def test_what_must_not_be_repeated_needs_a_person(replay: str, state: str) -> None:
    after = expired_claim(claimed(replay=replay), START + LEASE)
    assert after.state.name == state


def test_other_states_are_left_alone() -> None:
    late = START + timedelta(days=9)
    for operation in (MADE, waiting(), operations.succeed(claimed(), START)):
        assert expired_claim(operation, late) == operation
    for operation in (MADE, claimed()):
        assert overdue_wait(operation, late) == operation


async def test_each_finding_is_counted_in_every_tenant_and_found_once(tmp_path: Path) -> None:
    clock = ManualClock()
    kit = await make_kit(tmp_path, clock=clock)
    await store(kit, claimed("a"), claimed("b", ATTEMPTS_MAX), waiting("c"))
    await store(kit, claimed("a"), scope=OTHER)
    await store(kit, claimed("d"), scope=DIRECTORY)
    assert not (await Scanner(kit).once()).busy
    clock.advance(LEASE)
    scan = await Scanner(kit).once()
    assert scan == Scan(released=3, parked=1, woken=1)
    assert scan.busy
    assert await Scanner(kit).once() == Scan()
    assert (await found(kit, "a", OTHER)).state.name == "pending"
    assert (await found(kit, "b")).state.name == "operator_required"


async def test_two_scanners_at_once_release_once(tmp_path: Path) -> None:
    import asyncio

    clock = ManualClock()
    kits = [await make_kit(tmp_path, clock=clock, seed=seed) for seed in range(2)]
    await store(kits[0], *(claimed(f"op-{number}") for number in range(20)))
    clock.advance(LEASE)
    scans = await asyncio.gather(*(Scanner(kit).once() for kit in kits))
    assert sum(scan.released for scan in scans) == 20
    assert all(scan.failed == 0 for scan in scans)


async def test_a_renewal_that_came_before_the_scan_counts(tmp_path: Path) -> None:
    """The page is read before the transaction: what it says is read again there."""
    clock = ManualClock()
    kit = await make_kit(tmp_path, clock=clock, wrap=Watched)
    await store(kit, claimed("a"))
    clock.advance(LEASE)
    watched = kit.store
    assert isinstance(watched, Watched)

    async def renew() -> None:
        async def body(reads: Reads) -> Commit[None]:
            stored = await reads.get(OPERATIONS.key(ACME, "a"))
            assert stored is not None
            renewed = operations.renew(stored, clock.now())
            return Commit(None, (Put(OPERATIONS.key(ACME, "a"), renewed),))

        await watched.store.transact(body)

    watched.before = (watched.count + 1, renew)
    assert await Scanner(kit).once() == Scan()
    assert isinstance((await found(kit, "a")).state, Claimed)


async def test_an_operation_that_is_gone_is_no_finding(tmp_path: Path) -> None:
    clock = ManualClock()
    kit = await make_kit(tmp_path, clock=clock)
    await store(kit, claimed("a"))
    clock.advance(LEASE)
    page = await kit.store.find(Ask(OPERATIONS, "leases", None, equals=("claimed",)))
    other = await make_kit(tmp_path / "empty", clock=clock)
    assert await Scanner(other)._move(page.rows[0], expired_claim) == "gone"


async def test_one_broken_row_does_not_stop_the_others(tmp_path: Path) -> None:
    clock = ManualClock()
    kit = await make_kit(tmp_path, clock=clock)
    await store(kit, claimed("a"), claimed("b"), claimed("c"))
    with sqlite3.connect(tmp_path / "truth.sqlite") as file:
        spoil = "UPDATE r_operations SET body = replace(body, 'goal', 'gaol') WHERE id = 'b'"
        assert file.execute(spoil).rowcount == 1
    clock.advance(LEASE)
    fresh = await make_kit(tmp_path, clock=clock, seed=1)
    scan = await Scanner(fresh).once()
    assert (scan.released, scan.unreadable) == (2, 1)


class Refusing:
    """A store in which one operation cannot be written, as a full or locked one."""

    def __init__(self, inner: Store, id_: str) -> None:
        self._inner, self._id = inner, id_
        self.get, self.find, self.close = inner.get, inner.find, inner.close

    async def transact(self, body: Body[object]) -> object:
        async def refusing(reads: Reads) -> Commit[object]:
            commit = await body(reads)
            if any(write.key.id == self._id for write in commit.writes):
                raise StoreUnavailable(cause="the disk is full")
            return commit

        return await self._inner.transact(refusing)


async def test_a_finding_that_fails_is_counted_and_the_next_ones_go_on(tmp_path: Path) -> None:
    clock = ManualClock()
    kit = await make_kit(
        tmp_path,
        clock=clock,
        wrap=lambda inner: Refusing(inner, "b"),  # type: ignore[arg-type,return-value]  # generic in the port only
    )
    other = await make_kit(tmp_path, clock=clock, seed=1)
    await store(other, claimed("a"), claimed("b"), claimed("c"))
    clock.advance(LEASE)
    assert await Scanner(kit).once() == Scan(released=2, failed=1)


async def test_a_scan_is_one_bounded_page(tmp_path: Path) -> None:
    clock = ManualClock()
    kit = await make_kit(tmp_path, clock=clock, wrap=Counting)
    await store(kit, *(claimed(f"op-{number}") for number in range(PAGE + 1)))
    clock.advance(LEASE)
    counts = kit.store
    assert isinstance(counts, Counting)
    counts.rows = counts.commits = 0
    assert (await Scanner(kit).once()).released == PAGE
    assert (counts.rows, counts.commits) == (PAGE, PAGE)
    assert (await Scanner(kit).once()).released == 1


async def test_many_broken_rows_do_not_hide_the_ones_behind_them(tmp_path: Path) -> None:
    clock = ManualClock()
    kit = await make_kit(tmp_path, clock=clock)
    await store(kit, *(claimed(f"bad-{number:03}") for number in range(PAGE + 5)))
    with sqlite3.connect(tmp_path / "truth.sqlite") as file:
        file.execute("UPDATE r_operations SET body = replace(body, 'goal', 'gaol')")
    fresh = await make_kit(tmp_path, clock=clock, seed=1)
    await store(fresh, claimed("good"))
    clock.advance(LEASE)
    scanner = Scanner(fresh)
    scans = [await scanner.once() for _ in range(3)]
    assert sum(scan.released for scan in scans) == 1
    assert (await found(fresh, "good")).state.name == "pending"
