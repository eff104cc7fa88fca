"""Store conformance: commits are serialisable, whole, and run again until they stand."""

from __future__ import annotations

import asyncio
from typing import Literal

import pytest

from runtime.errors import AlreadyExists, Contention, StoreUnavailable
from runtime.ports import Ask, Commit, Create, Delete, Key, Put, Reads
from tests.conformance.records import ACME, TALLIES, TASKS, Closed, Open, Tally, Task
from tests.conformance.stores import Attempts, Backend, Lossy, QuickClock, gate, together

A = TALLIES.key(ACME, "a")
B = TALLIES.key(ACME, "b")
NOW = QuickClock().now()


async def put(store: Attempts, *writes: Put[Tally] | Put[Task]) -> None:
    async def body(reads: Reads) -> Commit[None]:
        return Commit(None, writes)

    await store.transact(body)


async def value(store: Attempts, key: Key[Tally] = A) -> int | None:
    tally = await store.get(key)
    return None if tally is None else tally.value


async def test_what_a_body_returns_is_written_and_its_outcome_comes_back(store: Attempts) -> None:
    async def body(reads: Reads) -> Commit[str]:
        assert await reads.get(A) is None
        return Commit("done", (Create(A, Tally(value=1)), Put(B, Tally(value=2))))

    assert await store.transact(body) == "done"
    assert (await value(store), await value(store, B)) == (1, 2)


async def test_a_body_does_not_see_its_own_writes_but_the_next_one_does(store: Attempts) -> None:
    await put(store, Put(A, Tally(value=1)))

    async def remove(reads: Reads) -> Commit[bool]:
        return Commit(await reads.get(A) is not None, (Delete(A), Delete(B)))

    assert await store.transact(remove) is True
    assert await store.transact(remove) is False


async def test_twenty_bodies_that_raise_one_number_lose_no_update(store: Attempts) -> None:
    meet = gate(20)

    async def body(reads: Reads) -> Commit[int]:
        tally = await reads.get(A) or Tally(value=0)
        await meet()
        return Commit(tally.value + 1, (Put(A, Tally(value=tally.value + 1)),))

    outcomes = await together(*[store.transact(body) for _ in range(20)])
    assert sorted(outcomes) == list(range(1, 21))
    assert await value(store) == 20


async def test_write_skew_is_refused(store: Attempts) -> None:
    await put(store, Put(A, Tally(value=1)), Put(B, Tally(value=1)))
    meet = gate(2)

    async def lower(mine: Key[Tally]) -> bool:
        async def body(reads: Reads) -> Commit[bool]:
            both = [await reads.get(A), await reads.get(B)]
            await meet()
            if sum(tally.value for tally in both if tally is not None) < 2:
                return Commit(False)
            return Commit(True, (Put(mine, Tally(value=0)),))

        return await store.transact(body)

    outcomes = await together(lower(A), lower(B))
    assert sorted(outcomes) == [False, True]


async def test_an_absence_that_was_read_is_validated(store: Attempts) -> None:
    meet = gate(2)

    async def body(reads: Reads) -> Commit[bool]:
        there = await reads.get(A) is not None
        await meet()
        # The write is elsewhere: only the absence of A connects the two.
        return Commit(there, () if there else (Put(A, Tally(value=1)), Put(B, Tally(value=1))))

    assert sorted(await together(store.transact(body), store.transact(body))) == [False, True]


async def test_a_phantom_of_a_find_is_validated(store: Attempts) -> None:
    meet = gate(2)

    async def add(name: str) -> int:
        async def body(reads: Reads) -> Commit[int]:
            page = await reads.find(Ask(TASKS, "ranked", ACME, ("post", False)))
            await meet()
            task = Task(id=name, kind="post", rank=len(page.rows), state=Open(ready_at=NOW))
            return Commit(len(page.rows), (Create(TASKS.key(ACME, name), task),))

        return await store.transact(body)

    outcomes = await together(add("one"), add("two"))
    assert sorted(outcomes) == [0, 1]


async def test_a_find_notices_that_a_row_changed_or_left(backend: Backend) -> None:
    store, other = backend.open(), backend.open()
    key = TASKS.key(ACME, "one")
    task = Task(id="one", kind="post", rank=1, state=Open(ready_at=NOW))
    await put(store, Put(key, task))
    runs = 0

    async def body(reads: Reads) -> Commit[list[str | None]]:
        nonlocal runs
        runs += 1
        page = await reads.find(Ask(TASKS, "ready", ACME, ("open",)))
        if runs == 1:
            await put(other, Put(key, task.model_copy(update={"owner": "w"})))
        if runs == 2:
            await put(other, Put(key, task.model_copy(update={"state": Closed(at=NOW)})))
        return Commit([row.record.owner for row in page.rows], (Put(A, Tally(value=runs)),))

    assert await store.transact(body) == []
    assert runs == 3


@pytest.mark.parametrize("marks", [0, 1])
async def test_two_reads_of_one_commit_belong_to_one_moment(backend: Backend, marks: int) -> None:
    store, other = backend.open(), backend.open()
    await put(other, Put(A, Tally(value=1)), Put(B, Tally(value=1)))
    runs = 0

    async def body(reads: Reads) -> Commit[tuple[int, int]]:
        nonlocal runs
        runs += 1
        left = await reads.get(A)
        if runs == 1:
            await put(other, Put(A, Tally(value=2)), Put(B, Tally(value=2)))
        right = await reads.get(B)
        assert left is not None
        assert right is not None
        mark = (Put(TALLIES.key(ACME, "mark"), Tally(value=0)),) * marks
        return Commit((left.value, right.value), mark)

    assert await store.transact(body) == (2, 2)


async def test_a_body_that_fails_on_two_moments_runs_again(backend: Backend) -> None:
    store, other = backend.open(), backend.open()
    await put(other, Put(A, Tally(value=1)), Put(B, Tally(value=1)))
    runs = 0

    async def body(reads: Reads) -> Commit[int]:
        nonlocal runs
        runs += 1
        left = await reads.get(A)
        if runs == 1:
            await put(other, Put(A, Tally(value=2)), Put(B, Tally(value=2)))
        if left != await reads.get(B):
            raise KeyError(runs)
        return Commit(runs)

    assert await store.transact(body) == 2


async def test_a_body_that_fails_on_what_is_true_fails(store: Attempts) -> None:
    async def body(reads: Reads) -> Commit[int]:
        await reads.get(A)
        raise KeyError(A.path)

    with pytest.raises(KeyError, match="tallies/a"):
        await store.transact(body)


async def test_create_of_an_existing_key_is_refused_and_writes_nothing(store: Attempts) -> None:
    await put(store, Put(A, Tally(value=1)))

    async def body(reads: Reads) -> Commit[None]:
        return Commit(None, (Put(B, Tally(value=9)), Create(A, Tally(value=9))))

    with pytest.raises(AlreadyExists) as caught:
        await store.transact(body)
    assert caught.value.fields["key"] == A.path
    assert (await value(store), await value(store, B)) == (1, None)


async def test_writes_of_one_commit_apply_in_their_order(store: Attempts) -> None:
    async def body(reads: Reads) -> Commit[None]:
        return Commit(
            None,
            (
                Create(A, Tally(value=1)),
                Delete(A),
                Create(A, Tally(value=2)),
                Put(B, Tally(value=3)),
            ),
        )

    await store.transact(body)
    assert await value(store) == 2

    async def twice(reads: Reads) -> Commit[None]:
        return Commit(None, (Delete(A), Create(A, Tally(value=5)), Create(A, Tally(value=6))))

    with pytest.raises(AlreadyExists):
        await store.transact(twice)
    assert await value(store) == 2


async def test_a_version_is_never_reused_after_delete_and_create(backend: Backend) -> None:
    store, other = backend.open(), backend.open()
    await put(store, Put(A, Tally(value=1)))
    runs = 0

    async def body(reads: Reads) -> Commit[int]:
        nonlocal runs
        runs += 1
        tally = await reads.get(A)
        if runs == 1:

            async def remove(reads: Reads) -> Commit[None]:
                return Commit(None, (Delete(A),))

            await other.transact(remove)
            await put(other, Put(A, Tally(value=1)))
        assert tally is not None
        return Commit(runs, (Put(A, Tally(value=tally.value + 1)),))

    assert await store.transact(body) == 2


async def test_a_record_that_always_changes_ends_in_contention(backend: Backend) -> None:
    store, other = backend.open(deadline_seconds=0.5), backend.open()
    runs = 0

    async def body(reads: Reads) -> Commit[None]:
        nonlocal runs
        runs += 1
        await reads.get(A)
        await put(other, Put(A, Tally(value=runs)))
        return Commit(None, (Put(A, Tally(value=-1)),))

    with pytest.raises(Contention) as caught:
        await store.transact(body)
    assert caught.value.fields["attempts"] == runs > 3
    assert float(str(caught.value.fields["seconds"])) >= 0.5
    assert await value(other) == runs


@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_lost_reply_runs_the_body_again_and_it_recognises_itself(
    store: Attempts, when: Literal["before", "after"]
) -> None:
    lossy = Lossy(store, when)
    for token in ("first", "second", "third"):

        async def body(reads: Reads, token: str = token) -> Commit[int]:
            tally = await reads.get(A) or Tally(value=0)
            if tally.token == token:
                return Commit(tally.value)
            raised = Tally(value=tally.value + 1, token=token)
            return Commit(raised.value, (Put(A, raised),))

        await lossy.transact(body)
    assert await value(store) == 3


async def test_a_cancelled_task_hears_of_it_only_when_its_commit_is_decided(
    store: Attempts,
) -> None:
    running = asyncio.Event()

    async def body(reads: Reads) -> Commit[None]:
        await reads.get(A)
        running.set()
        return Commit(None, (Put(A, Tally(value=7)),))

    for extra in range(3):
        running.clear()
        task = asyncio.ensure_future(store.transact(body))
        await running.wait()
        for _ in range(extra + 1):
            task.cancel()
            await QuickClock().sleep(0)
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await value(store) == 7

        async def again(reads: Reads) -> Commit[None]:
            return Commit(None, (Delete(A),))

        await store.transact(again)


async def test_a_task_cancelled_inside_its_body_writes_nothing(store: Attempts) -> None:
    async def body(reads: Reads) -> Commit[None]:
        await asyncio.get_running_loop().create_future()
        return Commit(None, (Put(A, Tally(value=7)),))

    task = asyncio.ensure_future(store.transact(body))
    await QuickClock().sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await value(store) is None


async def test_twenty_workers_claim_one_task_and_exactly_one_gets_it(backend: Backend) -> None:
    handles = [backend.open() for _ in range(4)]
    key = TASKS.key(ACME, "one")
    await put(handles[0], Put(key, Task(id="one", kind="post", rank=1, state=Open(ready_at=NOW))))
    meet = gate(20)

    async def claim(number: int) -> bool:
        async def body(reads: Reads) -> Commit[bool]:
            task = await reads.get(key)
            await meet()
            assert task is not None
            if task.owner is not None:
                return Commit(task.owner == str(number))
            return Commit(True, (Put(key, task.model_copy(update={"owner": str(number)})),))

        return await handles[number % 4].transact(body)

    won = await together(*[claim(number) for number in range(20)])
    assert won.count(True) == 1
    task = await handles[0].get(key)
    assert task is not None
    assert task.owner == str(won.index(True))


async def test_close_finishes_what_was_submitted_and_refuses_what_comes_later(
    backend: Backend,
) -> None:
    store = backend.open()
    tasks = [
        asyncio.ensure_future(put(store, Put(TALLIES.key(ACME, f"n{n}"), Tally(value=n))))
        for n in range(10)
    ]
    await QuickClock().sleep(0)
    await store.close()
    await asyncio.gather(*tasks)
    with pytest.raises(StoreUnavailable):
        await store.get(A)
    with pytest.raises(StoreUnavailable):
        await put(store, Put(A, Tally(value=1)))
    later = backend.open()
    for n in range(10):
        assert await later.get(TALLIES.key(ACME, f"n{n}")) == Tally(value=n)


async def test_a_body_that_outlives_its_store_writes_nothing_and_hears_of_it(
    backend: Backend,
) -> None:
    store = backend.open()
    go_on = asyncio.Event()

    async def body(reads: Reads) -> Commit[None]:
        await reads.get(A)
        await go_on.wait()
        return Commit(None, (Put(A, Tally(value=1)),))

    task = asyncio.ensure_future(store.transact(body))
    await QuickClock().sleep(0)
    await store.close()
    go_on.set()
    with pytest.raises(StoreUnavailable, match="this store is closed"):
        await task
    assert await value(backend.open()) is None
