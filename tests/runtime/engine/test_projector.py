"""The projector: a contiguous feed, a true snapshot, cards that follow, bounded cost (INV-13)."""

from __future__ import annotations

import asyncio
import random  # noqa: TID251 - a seeded order of changes
import sqlite3
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path
from typing import TypeVar

import pytest

from runtime.domain import job as jobs
from runtime.domain import operation as operations
from runtime.domain.card import Card, card_id
from runtime.domain.job import Job
from runtime.domain.operation import Operation, OperatorRequired
from runtime.domain.values import Record
from runtime.engine.marks import dirty_operation
from runtime.engine.projector import Projector
from runtime.engine.stages import put_job
from runtime.ports import Ask, Body, Commit, Key, Page, Put, Reads, Store
from runtime.stores.collections import (
    CARDS,
    ITEMS,
    OPERATIONS,
    SHELLS,
)
from tests.effects_made import export
from tests.runtime.engine.carrying import Watched
from tests.runtime.engine.playing import at_stage
from tests.runtime.engine.projecting import (
    begin,
    cards,
    change,
    feed,
    job_of,
    open_items,
    project,
    shell_of,
    snapshot,
)
from tests.world import ACME, OTHER, START, ManualClock, make_kit

R = TypeVar("R", bound=Record)
T = TypeVar("T")


def moves(job: Job, at: ManualClock, dice: random.Random) -> Job:
    """One of the ways in which a job changes."""
    now = at.now()
    return (
        jobs.advance(job, "n", now),
        jobs.need_person(job, f"agent: {dice.random()}", now),
        jobs.go_on(job, now),
        job.model_copy(update={"title": f"t{dice.random()}"}),
        jobs.stop(job, "cancelled", "c", now) if dice.random() < 0.1 else job,
    )[dice.randrange(5)]


@pytest.mark.parametrize("seed", range(3))
async def test_changes_are_contiguous_and_make_any_old_snapshot_current(
    tmp_path: Path, seed: int
) -> None:
    """Two projectors and two writers on one file, everything at once."""
    clock, dice = ManualClock(), random.Random(seed)
    kits = [await make_kit(tmp_path, clock=clock, seed=number) for number in range(2)]
    made = [export(f"job-{number}") for number in range(4)]
    await begin(kits[0], *made)
    snapshots = [await snapshot(kits[0])]
    for _ in range(15):
        clock.advance(timedelta(seconds=1))
        works: list[Awaitable[object]] = [Projector(kit).once() for kit in kits]
        for each in dice.sample(made, 2):
            kit = dice.choice(kits)
            works.append(change(kit, moves(await job_of(kit, each.job.id), clock, dice), each))
        dice.shuffle(works)
        await asyncio.gather(*works)
        snapshots.append(await snapshot(dice.choice(kits)))
    await project(kits[1])
    current, changes = await snapshot(kits[0]), await feed(kits[0])
    assert [each.sequence for each in changes] == list(range(1, current.head + 1))
    assert current.head > 10
    for old in snapshots:
        assert old.after(changes) == current
    for each in made:
        shell = await shell_of(kits[0], each.job.id)
        assert shell.order == (await job_of(kits[0], each.job.id)).updated_at


async def test_projecting_again_changes_nothing(tmp_path: Path) -> None:
    kit = await make_kit(tmp_path)
    made = export()
    await begin(kit, made)
    await project(kit)
    before = await snapshot(kit)
    await change(kit, made.job, made)
    await project(kit)
    assert await snapshot(kit) == before
    assert not await Projector(kit).once()


async def test_tenants_have_feeds_of_their_own(tmp_path: Path) -> None:
    """INV-18: each counts for itself and shows only its own."""
    kit = await make_kit(tmp_path)
    made = export()
    await begin(kit, made)

    async def body(reads: Reads) -> Commit[None]:
        writes = put_job(OTHER, made.job, made.operation, kit.clock.now())
        return Commit(None, tuple(writes))

    await kit.commit(body)
    await project(kit)
    for scope in (ACME, OTHER):
        told = await feed(kit, scope)
        assert told
        assert [each.sequence for each in told] == list(range(1, len(told) + 1))
    assert (await shell_of(kit, "job-1", OTHER)).id == "job-1"


class Interfering:
    """A store in which something happens once, after a body has read and before it commits."""

    def __init__(self, inner: Store) -> None:
        self._inner = inner
        self.get, self.find, self.close = inner.get, inner.find, inner.close
        self.first: Callable[[], Awaitable[None]] | None = None

    async def transact(self, body: Body[T]) -> T:
        async def interfered(reads: Reads) -> Commit[T]:
            commit = await body(reads)
            if self.first is not None and commit.writes:
                act, self.first = self.first, None
                await act()
            return commit

        return await self._inner.transact(interfered)

    @property
    def waiting(self) -> bool:
        return self.first is not None


async def test_a_change_while_the_projector_commits_is_not_lost(tmp_path: Path) -> None:
    clock = ManualClock()
    kit = await make_kit(tmp_path, clock=clock, wrap=Interfering)
    other = await make_kit(tmp_path, clock=clock, seed=1)
    made = export()
    await begin(other, made)
    titled = made.job.model_copy(update={"title": "Changed meanwhile"})

    async def meddle() -> None:
        await change(other, titled, made)

    store = kit.store
    assert isinstance(store, Interfering)
    store.first = meddle
    await project(kit)
    assert not store.waiting
    assert (await shell_of(kit)).title == "Changed meanwhile"
    changes = await feed(kit)
    assert [each.sequence for each in changes] == list(range(1, len(changes) + 1))


async def test_a_change_between_page_and_commit_is_not_lost(tmp_path: Path) -> None:
    clock = ManualClock()
    kit = await make_kit(tmp_path, clock=clock, wrap=Watched)
    other = await make_kit(tmp_path, clock=clock, seed=1)
    made = export()
    await begin(other, made)
    watched = kit.store
    assert isinstance(watched, Watched)

    async def meddle() -> None:
        await change(other, made.job.model_copy(update={"title": "Changed"}), made)

    watched.before = (watched.count + 1, meddle)
    await project(kit)
    assert (await shell_of(kit)).title == "Changed"


async def test_a_job_that_cannot_be_read_does_not_stop_the_others(tmp_path: Path) -> None:
    """Nor does it keep the loop busy; once it can be read again, it is projected."""
    kit = await make_kit(tmp_path)
    made = [export(f"job-{number}") for number in (1, 2, 3)]
    await begin(kit, *made)

    def spoil(table: str, one: str, other: str, id_: str) -> None:
        with sqlite3.connect(tmp_path / "truth.sqlite") as file:
            statement = f"UPDATE {table} SET body = replace(body, ?, ?) WHERE id = ?"  # noqa: S608 - our own tables
            assert file.execute(statement, (one, other, id_)).rowcount == 1

    spoil("r_jobs", "correlation", "korrelation", "job-2")
    spoil("r_approvals", "decide_by", "decide_bi", made[2].approval.id)
    fresh = await make_kit(tmp_path, seed=1)
    await Projector(fresh).once()
    assert not await Projector(fresh).once(), "it would be asked again without a pause"
    assert (await shell_of(fresh, "job-1")).id == "job-1"
    assert await fresh.store.get(SHELLS.key(ACME, "job-2")) is None
    spoil("r_jobs", "korrelation", "correlation", "job-2")
    spoil("r_approvals", "decide_bi", "decide_by", made[2].approval.id)
    healed = await make_kit(tmp_path, seed=2)
    await project(healed)
    for each in made:
        assert (await shell_of(healed, each.job.id)).view


class Poisoned:
    """A store in which reading one job breaks in a way that nobody foresaw."""

    def __init__(self, store: Store, job: str) -> None:
        self._store, self._job = store, job

    async def get(self, key: Key[R]) -> R | None:
        return await self._store.get(key)

    async def find(self, ask: Ask[R]) -> Page[R]:
        return await self._store.find(ask)

    async def close(self) -> None:
        await self._store.close()

    async def transact(self, body: Body[T]) -> T:
        async def poisoned(reads: Reads) -> Commit[T]:
            return await body(_PoisonedReads(reads, self._job))

        return await self._store.transact(poisoned)


class _PoisonedReads:
    def __init__(self, reads: Reads, job: str) -> None:
        self._reads, self._job = reads, job

    async def get(self, key: Key[R]) -> R | None:
        if key.id == self._job:
            raise ZeroDivisionError
        return await self._reads.get(key)

    async def find(self, ask: Ask[R]) -> Page[R]:
        return await self._reads.find(ask)


async def test_a_defect_that_one_job_meets_does_not_stop_the_others(tmp_path: Path) -> None:
    kit = await make_kit(tmp_path, wrap=lambda store: Poisoned(store, "job-1"))
    await begin(kit, *(export(f"job-{number}") for number in (1, 2, 3)))
    assert await Projector(kit).once()
    assert (await shell_of(kit, "job-2")).id == "job-2"
    assert (await shell_of(kit, "job-3")).id == "job-3"
    assert await kit.store.get(SHELLS.key(ACME, "job-1")) is None


async def test_many_broken_jobs_do_not_hide_the_ones_behind_them(tmp_path: Path) -> None:
    kit = await make_kit(tmp_path)
    broken = [export(f"bad-{number}") for number in range(210)]
    for start in range(0, 210, 70):
        await begin(kit, *broken[start : start + 70])
    with sqlite3.connect(tmp_path / "truth.sqlite") as file:
        file.execute("UPDATE r_jobs SET body = replace(body, 'correlation', 'korrelation')")
    kit.clock.advance(timedelta(seconds=1))  # type: ignore[attr-defined]  # the manual clock
    fresh = await make_kit(tmp_path, seed=1, clock=kit.clock)  # type: ignore[arg-type]  # as above
    await begin(fresh, export())
    projector = Projector(fresh)
    rounds = 0
    while await projector.once():
        rounds += 1
        assert rounds < 5
    assert (await shell_of(fresh)).id == "job-1"


async def test_an_item_opens_with_its_card_and_closes_when_decided(tmp_path: Path) -> None:
    """INV-17: what is shown follows from what is stored."""
    one = await at_stage(tmp_path, "decide_draft")
    await one.project()
    items = await open_items(one)
    assert [item.kind for item in items] == ["approval"]
    told = await cards(one, items[0].id)
    assert [(card.destination, card.wanted, card.pending) for card in told] == [
        ("telegram:100", items[0].view, True)
    ]
    await one.vote("job-1:draft:1:approval")
    await one.project()
    assert await open_items(one) == []
    after = await cards(one, items[0].id)
    assert len(after) == 1
    assert after[0].wanted != told[0].wanted
    assert (await feed(one.kit))[-1].kind == "item_closed"


async def test_a_card_of_a_decision_follows_its_effect_to_the_end(tmp_path: Path) -> None:
    one = await at_stage(tmp_path, "decide_draft")
    await one.project()
    item = (await open_items(one))[0]
    wanted = [(await cards(one, item.id))[0].wanted]
    await one.approve()
    for _ in range(10):
        await one.project()
        wanted.append((await cards(one, item.id))[0].wanted)
        for operation in await one.ready():
            await one.carry(operation)
    await one.project()
    assert (await one.job()).state.name == "done"
    assert len(set(wanted)) >= 4, "approved, applied and verified each change it"


async def test_the_card_of_a_job_follows_it_and_others_do_not(tmp_path: Path) -> None:
    kit = await make_kit(tmp_path)
    made, beside = export("job-1"), export("job-2")
    await begin(kit, made, beside)

    def card(job: str) -> Card:
        return Card(
            id=card_id("job", job, "telegram:100"),
            subject="job",
            subject_id=job,
            destination="telegram:100",
            wanted="0" * 64,
            due_at=START,
            created_at=START,
        )

    async def body(reads: Reads) -> Commit[None]:
        both = [card("job-1"), card("job-2")]
        return Commit(None, tuple(Put(CARDS.key(ACME, each.id), each) for each in both))

    await kit.commit(body)
    await project(kit)
    await change(kit, made.job.model_copy(update={"title": "New"}), made)
    await project(kit)
    for id_ in ("job-1", "job-2"):
        stored = await kit.store.get(CARDS.key(ACME, card(id_).id))
        assert stored is not None
        assert stored.wanted == (await shell_of(kit, id_)).view


async def test_an_item_that_nothing_lists_any_more_is_closed(tmp_path: Path) -> None:
    one = await at_stage(tmp_path, "strategise")
    needy = jobs.need_person(await one.job(), "agent: which?", one.clock.now())
    operation = await one.operation("job-1:strategise")

    async def store(job: Job) -> None:
        async def body(reads: Reads) -> Commit[None]:
            return Commit(None, tuple(put_job(ACME, job, operation, one.clock.now())))

        await one.kit.commit(body)

    await store(needy)
    await one.project()
    assert [item.kind for item in await open_items(one)] == ["escalation"]
    await store(jobs.go_on(needy, one.clock.now()))
    await one.project()
    assert await open_items(one) == []


async def test_what_stands_still_without_a_job_is_listed_until_it_moves(tmp_path: Path) -> None:
    """INV-19: also an operation that belongs to no job is in front of a person."""
    kit = await make_kit(tmp_path)
    stuck = OperatorRequired(at=START, reason="its workers stopped 5 times")
    lone = export().operation.model_copy(update={"id": "event:1", "job": None, "state": stuck})

    async def store(operation: Operation) -> list[str]:
        async def body(reads: Reads) -> Commit[None]:
            mark = dirty_operation(ACME, operation, kit.clock.now(), operation.state.name)
            return Commit(None, (Put(OPERATIONS.key(ACME, operation.id), operation), mark))

        await kit.commit(body)
        await project(kit)
        page = await kit.store.find(Ask(ITEMS, "open", ACME, equals=(True,)))
        return [row.record.subject for row in page.rows]

    assert await store(lone) == ["event:1"]
    assert await store(operations.wake(lone, START)) == []
    assert [each.kind for each in await feed(kit)] == ["item_upserted", "item_closed"]
