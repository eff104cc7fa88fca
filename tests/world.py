"""A small world for tests: a clock moved by hand, seeded ids, a real SQLite store.

The clock's sleepers wake when the test moves time; nothing here waits for the wall clock.
"""

from __future__ import annotations

import asyncio
import random  # noqa: TID251 - the seeded source behind the Ids port in tests
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TypeVar

from runtime.domain.values import Record, Tenant
from runtime.engine.kit import Kit
from runtime.ports import Ask, Body, Commit, Hint, Key, Page, Reads, Store
from runtime.stores.collections import ALL
from runtime.stores.sqlite import SqliteStore
from runtime.system import SystemClock
from runtime.wakes.local import LocalWakes

T = TypeVar("T")
R = TypeVar("R", bound=Record)

ACME = Tenant(workspace="acme", brand="main")
OTHER = Tenant(workspace="acme", brand="other")
START = datetime(2027, 1, 4, 9, 0, tzinfo=UTC)


class ManualClock:
    """Time moves only when told to. `advance` wakes the sleepers that are due."""

    def __init__(self, start: datetime = START) -> None:
        self._now = start
        self._sleepers: list[tuple[datetime, asyncio.Future[None]]] = []

    def now(self) -> datetime:
        return self._now

    def monotonic(self) -> float:
        return (self._now - START).total_seconds()

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            future = asyncio.get_running_loop().create_future()
            asyncio.get_running_loop().call_soon(_arrive, future)
            await future
            return
        due: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._sleepers.append((self._now + timedelta(seconds=seconds), due))
        await due

    def advance(self, by: timedelta) -> None:
        self._now += by
        kept = []
        for at, future in self._sleepers:
            if at <= self._now and not future.done():
                future.set_result(None)
            elif not future.done():
                kept.append((at, future))
        self._sleepers = kept


def _arrive(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


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


class NoWakes:
    """Keeps the hints it was given, for tests that drive the worker themselves."""

    def __init__(self) -> None:
        self.hints: list[Hint] = []

    async def announce(self, hints: Sequence[Hint]) -> None:
        self.hints.extend(hints)

    async def next(self, timeout_seconds: float) -> tuple[Hint, ...]:
        del timeout_seconds
        hints, self.hints = tuple(self.hints), []
        return hints


async def make_kit(
    folder: Path,
    *,
    clock: ManualClock | None = None,
    seed: int = 0,
    wrap: Callable[[Store], Store] | None = None,
) -> Kit:
    """A kit over a real SQLite file in `folder`. Several kits may share a folder."""
    clock = clock or ManualClock()
    ids = SeededIds(seed)
    # The store's own pauses between re-runs are real: nobody advances a clock for them.
    store: Store = SqliteStore.open(folder / "truth.sqlite", ALL, SystemClock(), ids)
    return Kit(clock, ids, wrap(store) if wrap else store, LocalWakes())


class ReplyLosing:
    """A store that loses the reply of every commit, once before and once after it was made.

    Each body therefore runs for an attempt that never happened, then for the one that stands, then
    again when it stands already; it must recognise its own success and say the same.
    """

    def __init__(self, inner: Store) -> None:
        self._inner = inner

    async def transact(self, body: Body[T]) -> T:
        async def lost_before(reads: Reads) -> Commit[T]:
            commit = await body(reads)
            return Commit(commit.outcome)

        await self._inner.transact(lost_before)
        first = await self._inner.transact(body)
        again = await self._inner.transact(body)
        assert again == first, "a body did not recognise its own earlier success"
        return again

    async def get(self, key: Key[R]) -> R | None:
        return await self._inner.get(key)

    async def find(self, ask: Ask[R]) -> Page[R]:
        return await self._inner.find(ask)

    async def close(self) -> None:
        await self._inner.close()


class Counting:
    """A store that counts what is read and committed."""

    def __init__(self, inner: Store) -> None:
        self._inner = inner
        self.gets = 0
        self.rows = 0
        self.commits = 0

    async def transact(self, body: Body[T]) -> T:
        self.commits += 1

        async def counted(reads: Reads) -> Commit[T]:
            return await body(_CountingReads(reads, self))

        return await self._inner.transact(counted)

    async def get(self, key: Key[R]) -> R | None:
        self.gets += 1
        return await self._inner.get(key)

    async def find(self, ask: Ask[R]) -> Page[R]:
        page = await self._inner.find(ask)
        self.rows += len(page.rows)
        return page

    async def close(self) -> None:
        await self._inner.close()


class _CountingReads:
    def __init__(self, reads: Reads, counts: Counting) -> None:
        self._reads = reads
        self._counts = counts

    async def get(self, key: Key[R]) -> R | None:
        self._counts.gets += 1
        return await self._reads.get(key)

    async def find(self, ask: Ask[R]) -> Page[R]:
        page = await self._reads.find(ask)
        self._counts.rows += len(page.rows)
        return page
