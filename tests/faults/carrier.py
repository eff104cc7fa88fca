"""A process that carries operations until it is killed: `python -m tests.faults.carrier FOLDER`.

Each operation does its work in two commits: the first counts that it was begun, the second counts
that it was done and ends it. It says each after its commit. It begins when it is sent a
line, so that its start-up costs nobody time.
"""

from __future__ import annotations

import asyncio
import sys
from datetime import timedelta
from pathlib import Path

import structlog

from runtime.domain import operation as operations
from runtime.domain.operation import Operation
from runtime.engine.kit import Kit
from runtime.engine.scanner import Scanner
from runtime.engine.services import Stop, loop
from runtime.engine.work import Step, Work
from runtime.engine.worker import Limits, Worker
from runtime.ports import Key, Put, Reads, Write
from runtime.stores.collections import ALL, COUNTERS, Counter
from runtime.stores.sqlite import SqliteStore
from runtime.system import SystemClock, SystemIds
from runtime.wakes.local import LocalWakes
from tests.world import ACME

LEASE = timedelta(seconds=0.3)
CONCURRENCY = 4


async def raised(reads: Reads, key: Key[Counter]) -> Write:
    known = await reads.get(key)
    return Put(key, Counter(id=key.id, value=(known.value if known else 0) + 1))


async def count(work: Work) -> None:
    async def begin(reads: Reads, current: Operation) -> Step[None]:
        return Step(None, (await raised(reads, COUNTERS.key(ACME, f"begun:{current.id}")),))

    async def finish(reads: Reads, current: Operation) -> Step[None]:
        write = await raised(reads, COUNTERS.key(ACME, f"done:{current.id}"))
        return Step(None, (write,), operations.succeed(current, work.now()))

    await work.commit(begin)
    print(f"begun {work.operation.id}", flush=True)
    await work.commit(finish)
    print(f"done {work.operation.id}", flush=True)


async def main(folder: Path) -> None:
    clock, ids = SystemClock(), SystemIds()
    store = SqliteStore.open(folder / "truth.sqlite", ALL, clock, ids)
    kit, stop = Kit(clock, ids, store, LocalWakes()), Stop()
    worker = Worker(kit, {"count": count}, Limits(CONCURRENCY, LEASE, poll_seconds=0.05))
    scanner = Scanner(kit)

    async def scan() -> bool:
        return (await scanner.once()).busy

    print("ready", flush=True)
    sys.stdin.readline()
    await asyncio.gather(worker.run(stop), loop(kit, stop, "scanner", scan, idle_seconds=0.1))


if __name__ == "__main__":
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    asyncio.run(main(Path(sys.argv[1])))
