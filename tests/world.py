"""A small world for tests: a clock moved by hand, seeded ids, a real SQLite store.

The clock's sleepers wake when the test moves time; nothing here waits for the wall clock.
"""

from __future__ import annotations

import asyncio
import random  # noqa: TID251 - the seeded source behind the Ids port in tests
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from runtime.domain.values import Tenant
from runtime.engine.kit import Kit
from runtime.ports import Hint, Store
from runtime.stores.collections import ALL
from runtime.stores.sqlite import SqliteStore
from runtime.wakes.local import LocalWakes

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
            asyncio.get_running_loop().call_soon(future.set_result, None)
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
    store: Store = SqliteStore.open(folder / "truth.sqlite", ALL, clock, ids)
    return Kit(clock, ids, wrap(store) if wrap else store, LocalWakes())
