"""Another process on the same data: `python -m tests.conformance.store_process PATH WHAT ...`."""

from __future__ import annotations

import asyncio
import sys
from functools import partial
from pathlib import Path

from runtime.ports import Commit, Create, Put, Reads
from runtime.stores.sqlite import SqliteStore
from runtime.system import SystemClock, SystemIds
from tests.conformance.records import ACME, OTHER, SUITE, TALLIES, Tally


async def count(store: SqliteStore, times: int, tasks: int) -> None:
    """Raise one shared number, `times` times from each of `tasks` tasks."""
    key = TALLIES.key(ACME, "shared")

    async def raise_it(reads: Reads) -> Commit[None]:
        tally = await reads.get(key) or Tally(value=0)
        return Commit(None, (Put(key, Tally(value=tally.value + 1)),))

    async def work() -> None:
        for _ in range(times):
            await store.transact(raise_it)

    await asyncio.gather(*[work() for _ in range(tasks)])


async def stream(store: SqliteStore, name: str) -> None:
    """Write pairs until killed: say each number once its commit is durable."""
    number = 0
    while True:
        number += 1
        await store.transact(partial(pair, f"{name}-{number}", number))
        print(number, flush=True)


async def pair(name: str, number: int, reads: Reads) -> Commit[None]:
    """Two records in two scopes, of one number."""
    left, right = TALLIES.key(ACME, name), TALLIES.key(OTHER, name)
    await reads.get(left)
    tally = Tally(value=number)
    return Commit(None, (Create(left, tally), Create(right, tally)))


async def main() -> None:
    path, what, *rest = sys.argv[1:]
    store = SqliteStore.open(
        Path(path),
        SUITE,
        SystemClock(),
        SystemIds(),
        deadline_seconds=60,  # the machine may be busy
    )
    print("ready", flush=True)
    if what == "count":
        await count(store, int(rest[0]), int(rest[1]))
    elif what == "stream":
        await stream(store, rest[0])
    elif what == "open":
        await store.get(TALLIES.key(ACME, "none"))
    await store.close()


if __name__ == "__main__":
    asyncio.run(main())
