"""What the store suite runs on: the stores under test, a clock that never waits, lossy replies."""

from __future__ import annotations

import asyncio
import random  # noqa: TID251 - the seeded source behind the Ids port in tests
import sqlite3
import sys
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal, Protocol, TypeVar

from runtime.domain.values import Record
from runtime.ports import Ask, Body, Commit, Key, Page, Reads, Store
from runtime.stores.sqlite import SqliteStore
from runtime.stores.sqlite_bodies import SqliteBodies
from runtime.stores.sqlite_commits import Outcome, Prepared
from runtime.stores.sqlite_core import open_core
from runtime.stores.sqlite_files import Turn
from runtime.stores.sqlite_schema import Table
from runtime.stores.transactions import Ambiguous, Transactions
from tests.conformance.records import SUITE

ROOT = Path(__file__).resolve().parents[2]

R = TypeVar("R", bound=Record)
T = TypeVar("T")


class QuickClock:
    """Sleeping moves time at once and lets others run: no test waits for the wall clock."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def now(self) -> datetime:
        return datetime(2027, 1, 4, 9, tzinfo=UTC) + timedelta(seconds=self.seconds)

    def monotonic(self) -> float:
        return self.seconds

    async def sleep(self, seconds: float) -> None:
        self.seconds += seconds
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_soon(_wake, turn)
        await turn


def _wake(turn: asyncio.Future[None]) -> None:
    if not turn.done():
        turn.set_result(None)


class SeededIds:
    """IDs and fractions that repeat with the seed."""

    def __init__(self, seed: int = 0) -> None:
        self._random = random.Random(seed)

    def new(self, prefix: str) -> str:
        return f"{prefix}-{self._random.getrandbits(80):020x}"

    def token(self) -> str:
        return f"{self._random.getrandbits(192):048x}"

    def fraction(self) -> float:
        return self._random.random()


class Attempts(Store, Protocol):
    """A store under test: it also tells single attempts, so that their replies can be lost."""

    async def attempt(self, body: Body[T]) -> T: ...


class Lossy:
    """A store whose first reply of each transaction is lost, before or after the commit."""

    def __init__(self, store: Attempts, when: Literal["before", "after"]) -> None:
        self._store = store
        self._when = when
        self._transactions = Transactions(QuickClock(), SeededIds())

    async def transact(self, body: Body[T]) -> T:
        lost = False

        async def attempt(again: Body[T]) -> T:
            nonlocal lost
            if lost:
                return await self._store.attempt(again)
            lost = True

            async def and_no_commit(reads: Reads) -> Commit[T]:
                await again(reads)
                raise Ambiguous

            await self._store.attempt(again if self._when == "after" else and_no_commit)
            raise Ambiguous

        return await self._transactions.run(body, attempt)

    async def get(self, key: Key[R]) -> R | None:
        return await self._store.get(key)

    async def find(self, ask: Ask[R]) -> Page[R]:
        return await self._store.find(ask)

    async def close(self) -> None:
        await self._store.close()


class ThreadlessStore(SqliteBodies):
    """The SQLite core driven on the loop itself, as a simulation drives it."""

    async def _submit(self, prepared: Prepared) -> Outcome | BaseException:
        (outcome,) = self._core.committer.commit_batch([prepared])
        self._settle(prepared, outcome)
        await QuickClock().sleep(0)  # the reply takes its time, so that others run and tasks end
        return outcome

    async def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._core.close()


class Backend:
    """One kind of store, over one set of data: opens handles on it and can spoil a row."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "data" / "truth.sqlite"
        self.clock = QuickClock()
        self._opened: list[Attempts] = []

    def open(self, *, deadline_seconds: float = 10.0) -> Attempts:
        """Another handle on the same data, as another process would have."""
        store = self._open(SeededIds(len(self._opened)), deadline_seconds)
        self._opened.append(store)
        return store

    def _open(self, ids: SeededIds, deadline_seconds: float) -> Attempts:
        return SqliteStore.open(
            self.path, SUITE, self.clock, ids, deadline_seconds=deadline_seconds
        )

    def spoil(self, key: Key[R], body: bytes, codec: int = 1) -> None:
        """Put bytes into a stored row behind the store's back, as a new version of it."""
        connection = sqlite3.connect(self.path)
        with connection:
            changed = connection.execute(
                f'UPDATE "r_{key.collection.name}" SET body = ?, codec = ?, version = -version '  # noqa: S608 - a declared name
                "WHERE scope = ? AND id = ?",
                (body, codec, key.scope.path, key.id),
            ).rowcount
        connection.close()
        assert changed == 1

    async def process(self, *arguments: str) -> asyncio.subprocess.Process:
        """Run `tests/conformance/store_process.py` on the same data in another process."""
        return await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "tests.conformance.store_process",
            str(self.path),
            *arguments,
            cwd=ROOT,
            stdout=asyncio.subprocess.PIPE,
        )

    async def close(self) -> None:
        for store in self._opened:
            await store.close()


class ThreadlessBackend(Backend):
    """The same data through `ThreadlessStore`."""

    def _open(self, ids: SeededIds, deadline_seconds: float) -> Attempts:
        tables = [Table(collection) for collection in SUITE]
        core = open_core(str(self.path), tables, Turn(pause=lambda _: None))
        return ThreadlessStore(core, Transactions(self.clock, ids, deadline_seconds))


async def together(*steps: Awaitable[T]) -> list[T]:
    """Run all at once; all must succeed."""
    return list(await asyncio.gather(*steps))


def gate(parties: int) -> Callable[[], Awaitable[None]]:
    """Where `parties` bodies meet: none goes on before all have arrived. Later visits pass."""
    arrived = 0
    opened = asyncio.Event()

    async def meet() -> None:
        nonlocal arrived
        arrived += 1
        if arrived >= parties:
            opened.set()
        await opened.wait()

    return meet
