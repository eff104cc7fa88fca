"""One worker process: `python -m tests.faults.process FOLDER stale|taker`.

`stale` claims an operation in the data of every mutation, says so, waits for a line, and then tries
every mutation. `taker` waits until those claims have run out, takes all of them over, says so, and
holds them until it is told to end.
"""

from __future__ import annotations

import asyncio
import sys
from datetime import timedelta
from pathlib import Path

from runtime.engine.kit import Kit
from runtime.engine.scanner import Scanner
from runtime.engine.work import Work
from runtime.engine.worker import Limits, Worker
from runtime.ports import Hint
from runtime.system import SystemClock
from tests.faults.mutations import MUTATIONS
from tests.runtime.engine.playing import Play, play
from tests.world import ACME

LEASE = timedelta(seconds=0.3)
LOOK_SECONDS = 0.02


async def opened(folder: Path, seed: int) -> Play:
    """A process's parts over one mutation's data, on the real clock."""
    one = await play(folder, seed=seed)
    clock = SystemClock()
    one.kit = Kit(clock, one.kit.ids, one.kit.store, one.kit.wakes)
    one.spill._kit = one.kit
    return one


async def stale(folder: Path) -> None:
    held: dict[str, tuple[Play, Work]] = {}
    for name, mutation in MUTATIONS.items():
        one = await opened(folder / name, 1)
        # What is done before the freeze takes its time; the claim that counts comes at the end.
        work = await Worker(one.kit, one.handlers, Limits(lease=LEASE)).claim(
            Hint(ACME, mutation.at[1])
        )
        assert work is not None, name
        if mutation.before is not None:
            await mutation.before(one, work)
        held[name] = (one, work)
    print("claimed", flush=True)
    sys.stdin.readline()
    for name, (one, work) in held.items():
        try:
            await MUTATIONS[name].after(one, work)
            ended = "returned"
        except Exception as error:  # noqa: BLE001 - whatever it is, the test is told
            ended = type(error).__name__
        print(f"{name}={ended}={len(one.provider.calls)}", flush=True)


async def taker(folder: Path) -> None:
    for name, mutation in MUTATIONS.items():
        one = await opened(folder / name, 2)
        worker = Worker(one.kit, one.handlers)
        while (work := await worker.claim(Hint(ACME, mutation.at[1]))) is None:
            await Scanner(one.kit).once()
            await one.kit.clock.sleep(LOOK_SECONDS)
        assert work.operation.epoch == 2, name
    print("taken", flush=True)
    sys.stdin.readline()


if __name__ == "__main__":
    asyncio.run({"stale": stale, "taker": taker}[sys.argv[2]](Path(sys.argv[1])))
