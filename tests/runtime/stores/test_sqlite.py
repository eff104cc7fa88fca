"""The SQLite store: its file, its plans, its group commit and its faults."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import stat
import threading
from pathlib import Path

import pytest

from runtime.errors import StoreUnavailable, UndeclaredQuery
from runtime.ports import Ask, Collection, Commit, Create, Put, Query, Reads, Value
from runtime.stores.sqlite import INLINE_SECONDS_MAX, SqliteStore
from runtime.stores.sqlite_commits import Seen
from runtime.stores.sqlite_core import open_core
from runtime.stores.sqlite_files import Turn
from runtime.stores.sqlite_schema import Table
from tests.conformance.records import ACME, SUITE, TALLIES, TASKS, Open, Tally, Task
from tests.conformance.stores import QuickClock, SeededIds, together

NOW = QuickClock().now()
KEY = TALLIES.key(ACME, "a")


def opened(
    path: Path, collections: tuple[Collection[Task] | Collection[Tally], ...] = (TALLIES, TASKS)
) -> SqliteStore:
    return SqliteStore.open(path, collections, QuickClock(), SeededIds(), lock_seconds=0.01)


async def raise_it(reads: Reads) -> Commit[int]:
    tally = await reads.get(KEY) or Tally(value=0)
    return Commit(tally.value + 1, (Put(KEY, Tally(value=tally.value + 1)),))


def column(path: Path, sql: str) -> list[object]:
    connection = sqlite3.connect(path)
    found = [row[0] for row in connection.execute(sql)]
    connection.close()
    return found


# --- the file ------------------------------------------------------------------------------------


async def test_the_file_and_its_folder_are_the_owners_alone(tmp_path: Path) -> None:
    path = tmp_path / "new" / "truth.sqlite"
    before = os.umask(0)
    try:
        store = opened(path)
        await store.transact(raise_it)
    finally:
        os.umask(before)
    names = sorted(file.name for file in path.parent.iterdir())
    assert names == ["truth.sqlite", "truth.sqlite-shm", "truth.sqlite-wal"]
    for file in path.parent.iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    await store.close()


async def test_commits_are_written_through_to_the_disk(tmp_path: Path) -> None:
    store = opened(tmp_path / "t")
    for connection in (store._core._writer, store._core._reader):
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert connection.execute("PRAGMA synchronous").fetchone() == (2,)
    await store.close()


async def test_a_newer_file_another_programs_and_no_database_are_refused_in_a_sentence(
    tmp_path: Path,
) -> None:
    newer = tmp_path / "newer"
    await opened(newer).close()
    connection = sqlite3.connect(newer)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    foreign = tmp_path / "foreign"
    connection = sqlite3.connect(foreign)
    connection.execute("CREATE TABLE theirs (x)")
    connection.close()
    text = tmp_path / "text"
    text.write_text("not a database, but long enough to be read as one" * 100)
    for path, words in (
        (newer, "a newer version wrote this file"),
        (foreign, "a database of another program"),
        (text, "SQLITE_NOTADB"),
        (tmp_path, "unable to open"),
    ):
        before = None if path.is_dir() else path.read_bytes()
        with pytest.raises(StoreUnavailable, match=words):
            opened(path)
        assert path.is_dir() or path.read_bytes() == before


async def test_a_new_query_is_filled_from_old_records_and_a_dropped_one_goes(
    tmp_path: Path,
) -> None:
    path = tmp_path / "t"
    bare, by_kind = Collection("tasks", Task), Query("by_kind", ("kind",), "state.ready_at")
    store = opened(path, (bare,))
    for n in range(450):
        task = Task(id=f"t{n}", kind="post" if n % 3 else "mail", rank=n, state=Open(ready_at=NOW))

        async def body(reads: Reads, task: Task = task) -> Commit[None]:
            return Commit(None, (Create(bare.key(ACME, task.id), task),))

        await store.transact(body)
    await store.close()
    with_query = Collection("tasks", Task, (by_kind,))
    store = opened(path, (with_query,))
    page = await store.find(Ask(with_query, "by_kind", ACME, ("mail",), limit=500))
    assert len(page.rows) == 150
    await store.close()
    indexes = "SELECT name FROM sqlite_master WHERE type = 'index' AND name LIKE 'i%'"
    assert column(path, indexes) == ["i_tasks.by_kind(kind,state.ready_at)"]
    store = opened(path, (bare,))
    with pytest.raises(UndeclaredQuery):
        await store.find(Ask(with_query, "by_kind", ACME, ("mail",)))
    await store.close()
    assert column(path, indexes) == []
    assert column(path, "SELECT name FROM pragma_table_info('r_tasks')")[5:] == []


async def test_a_new_codec_fills_the_queried_columns_again(tmp_path: Path) -> None:
    path = tmp_path / "t"
    query = Query("by_value", (), "value")
    first = Collection("tallies", Tally, (query,))
    second = Collection("tallies", Tally, (query,), codec=2)
    store = opened(path, (first,))
    await store.transact(raise_it)
    await store.close()
    store = SqliteStore.open(
        path,
        (second,),
        QuickClock(),
        SeededIds(),
        upgrades={"tallies": {1: lambda old: old | {"value": old["value"] * 100}}},
    )
    page = await store.find(Ask(second, "by_value", ACME, since=100))
    assert [row.record for row in page.rows] == [Tally(value=100)]
    await store.close()


async def test_a_query_of_a_field_that_no_state_has_is_refused_at_open(tmp_path: Path) -> None:
    wrong = Collection("tasks", Task, (Query("typo", (), "state.raedy_at"),))
    with pytest.raises(UndeclaredQuery, match=r"state\.raedy_at"):
        opened(tmp_path / "t", (wrong,))


# --- plans ---------------------------------------------------------------------------------------


async def test_every_declared_query_walks_its_index_and_sorts_nothing(tmp_path: Path) -> None:
    core = open_core(str(tmp_path / "t"), [Table(each) for each in SUITE], Turn(lambda _: None))
    plans = 0
    values: dict[str, Value] = {
        "ready": NOW,
        "ranked": 1,
        "of_owner": "x",
        "all": 1,
        "by_time": NOW,
    }
    said: list[str] = []
    for each in SUITE:
        for query in each.queries:
            for scope in (ACME, None) if query.across else (ACME,):
                for since in (None, values[query.name]):
                    for before in (None, values[query.name]):
                        seen = Seen()
                        equals = ("x",) * len(query.equals)
                        core.find(Ask(each, query.name, scope, equals, since, before), seen)
                        sql, bound, _ = seen.finds[0]
                        core._reader.execute(sql, bound)
                        rows = core._reader.execute(f"EXPLAIN QUERY PLAN {sql}", bound).fetchall()
                        said += [row[3] for row in rows]
                        plans += 1
    assert plans == 32
    for line in said:
        assert line.startswith("SEARCH "), line
        assert " USING INDEX i_" in line, line
    core.close()


async def test_a_later_page_starts_at_its_cursor_not_at_the_first_row(tmp_path: Path) -> None:
    store = opened(tmp_path / "t")
    tasks = [Task(id=f"t{n}", kind="k", rank=n, state=Open(ready_at=NOW)) for n in range(3)]

    async def body(reads: Reads) -> Commit[None]:
        return Commit(None, [Put(TASKS.key(ACME, task.id), task) for task in tasks])

    await store.transact(body)
    for scope in (ACME, None):
        first = await store.find(Ask(TASKS, "all", scope, since=0, limit=1))
        seen = Seen()
        ask = Ask(TASKS, "all", scope, since=0, before=9, after=first.cursor, limit=1)
        assert [row.key.id for row in store._core.find(ask, seen).rows] == ["t1"]
        sql, bound, _ = seen.finds[0]
        (plan,) = store._core._reader.execute(f"EXPLAIN QUERY PLAN {sql}", bound).fetchall()
        assert "f_rank,id" in plan[3]
        assert "TEMP B-TREE" not in plan[3]
    await store.close()


# --- group commit --------------------------------------------------------------------------------


async def test_commits_that_are_ready_together_share_one_transaction(tmp_path: Path) -> None:
    store = opened(tmp_path / "t")
    commits: list[str] = []
    store._core._writer.set_trace_callback(lambda sql: commits.append(sql[:6]))

    async def write(number: int) -> None:
        async def body(reads: Reads) -> Commit[None]:
            return Commit(None, (Put(TALLIES.key(ACME, f"n{number}"), Tally(value=number)),))

        await store.transact(body)

    await together(*[write(number) for number in range(16)])
    assert commits.count("COMMIT") == 1
    await store.close()


class SlowClock(QuickClock):
    """Each look at the time finds it a step later: so long does every commit seem to take."""

    step = 0.0

    def monotonic(self) -> float:
        self.seconds += self.step
        return self.seconds


@pytest.mark.parametrize(("share", "inline"), [(0.9, 5), (1.1, 1)])
async def test_a_lone_commit_is_made_inline_only_while_the_disk_is_quick(
    tmp_path: Path, share: float, inline: int
) -> None:
    clock = SlowClock()
    clock.step = INLINE_SECONDS_MAX * share
    store = SqliteStore.open(tmp_path / "t", (TALLIES,), clock, SeededIds())
    threads: list[int] = []
    store._core._writer.set_trace_callback(
        lambda sql: threads.append(threading.get_ident()) if sql == "COMMIT" else None
    )
    for n in range(5):
        assert await store.transact(raise_it) == n + 1
    assert threads.count(threading.get_ident()) == inline
    assert len(threads) == 5
    await store.close()


async def test_a_lone_commit_never_blocks_the_loop_for_another_process(tmp_path: Path) -> None:
    path = tmp_path / "t"
    store = SqliteStore.open(path, (TALLIES,), QuickClock(), SeededIds(), lock_seconds=60)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    task = asyncio.ensure_future(store.transact(raise_it))
    for _ in range(20):
        await QuickClock().sleep(0)
    assert not task.done()
    other.execute("ROLLBACK")
    other.close()
    assert await task == 1
    await store.close()


async def test_a_read_only_commit_writes_nothing_to_the_disk(tmp_path: Path) -> None:
    store = opened(tmp_path / "t")
    said: list[str] = []
    store._core._writer.set_trace_callback(said.append)

    async def body(reads: Reads) -> Commit[int]:
        await reads.get(KEY)
        await reads.find(Ask(TASKS, "all", ACME))
        return Commit(5)

    assert await store.transact(body) == 5
    assert said == []
    await store.close()


async def test_a_record_read_again_needs_no_query(tmp_path: Path) -> None:
    store = opened(tmp_path / "t")
    await store.transact(raise_it)
    said: list[str] = []
    store._core._reader.set_trace_callback(said.append)
    assert await store.transact(raise_it) == 2
    assert said == []
    await store.close()


# --- faults --------------------------------------------------------------------------------------


async def test_a_file_locked_beyond_the_deadline_is_unavailable_and_then_works_again(
    tmp_path: Path,
) -> None:
    path = tmp_path / "t"
    store = opened(path)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreUnavailable, match="another process held the data file"):
        await store.transact(raise_it)
    assert await store.get(KEY) is None
    other.execute("ROLLBACK")
    other.close()
    assert await store.transact(raise_it) == 1
    await store.close()


async def test_a_full_disk_is_unavailable_for_the_commit_that_hit_it_only(tmp_path: Path) -> None:
    store = opened(tmp_path / "t")
    await store.transact(raise_it)
    pages = store._core._writer.execute("PRAGMA page_count").fetchone()[0]
    store._core._writer.execute(f"PRAGMA max_page_count = {pages + 1}")

    async def huge(reads: Reads) -> Commit[int]:
        keys = [TALLIES.key(ACME, f"h{n}") for n in range(4)]
        return Commit(0, [Create(key, Tally(value=0, token="x" * 9000)) for key in keys])

    outcomes = await asyncio.gather(
        store.transact(huge), store.transact(raise_it), return_exceptions=True
    )
    assert isinstance(outcomes[0], StoreUnavailable)
    assert "SQLITE_FULL" in str(outcomes[0])
    assert outcomes[1] == 2
    assert await store.get(TALLIES.key(ACME, "h0")) is None
    store._core._writer.execute("PRAGMA max_page_count = 100000")
    assert await store.transact(huge) == 0
    assert await store.transact(raise_it) == 3
    await store.close()


async def test_versions_go_on_above_every_version_ever_given(tmp_path: Path) -> None:
    path = tmp_path / "t"
    given: list[object] = []
    for _ in range(3):
        store, other = opened(path), opened(path)
        for each in (store, other, store):
            await each.transact(raise_it)
            given += column(path, 'SELECT version FROM "r_tallies"')
        await store.close()
        await other.close()
    assert len(set(given)) == 9


async def test_versions_of_a_commit_that_was_rolled_back_are_not_given_to_others(
    tmp_path: Path,
) -> None:
    path = tmp_path / "t"
    store, other = opened(path), opened(path)
    pages = store._core._writer.execute("PRAGMA page_count").fetchone()[0]
    store._core._writer.execute(f"PRAGMA max_page_count = {pages}")

    async def huge(reads: Reads) -> Commit[None]:
        return Commit(None, (Put(KEY, Tally(value=0, token="x" * 9000)),))

    with pytest.raises(StoreUnavailable, match="SQLITE_FULL"):
        await store.transact(huge)
    store._core._writer.execute("PRAGMA max_page_count = 100000")
    given: list[object] = []
    for each in (store, other, store, other):
        await each.transact(raise_it)
        given += column(path, 'SELECT version FROM "r_tallies"')
    assert len(set(given)) == 4
    await store.close()
    await other.close()


async def test_a_cancelled_task_waits_while_its_commit_waits(tmp_path: Path) -> None:
    path = tmp_path / "t"
    store = SqliteStore.open(path, (TALLIES,), QuickClock(), SeededIds(), lock_seconds=60)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    task = asyncio.ensure_future(store.transact(raise_it))
    for _ in range(10):
        await QuickClock().sleep(0)
        task.cancel()
    assert not task.done()
    other.execute("ROLLBACK")
    other.close()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await store.get(KEY) == Tally(value=1)
    await store.close()


async def test_a_row_that_another_connection_changed_is_never_taken_for_the_known_one(
    tmp_path: Path,
) -> None:
    store, other = opened(tmp_path / "t"), opened(tmp_path / "t")
    for n in range(6):
        assert await (store if n % 2 else other).transact(raise_it) == n + 1
    assert await store.get(KEY) == await other.get(KEY) == Tally(value=6)
    await store.close()
    await other.close()
