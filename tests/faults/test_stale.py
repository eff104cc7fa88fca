"""A stale worker's every mutation is refused: two real processes, one frozen past its lease.

The frozen one (SIGSTOP) is thawed after the other has taken everything over, and then tries each
kind of fenced mutation by the real functions. INV-3 and INV-4: each is refused, and nothing of it
is stored.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sqlite3
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest
import pytest_asyncio

from runtime.system import SystemClock
from tests.faults.mutations import EXPORT, MUTATIONS, RECONCILE
from tests.runtime.engine.playing import at_stage
from tests.world import ManualClock

pytestmark = [pytest.mark.processes, pytest.mark.asyncio(loop_scope="module")]

Rows = dict[str, set[tuple[object, ...]]]
READY = {
    "decided strategy": "decide_strategy",
    "decided draft": "decide_draft",
    "unknown": "decide_draft",
}


def dump(folder: Path) -> Rows:
    """Every row of every table of the store."""
    with sqlite3.connect(folder / "truth.sqlite") as file:
        tables = [
            row[0]
            for row in file.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            if row[0].startswith("r_")
        ]
        assert len(tables) > 20
        return {table: set(file.execute(f'SELECT * FROM "{table}"')) for table in tables}  # noqa: S608 - our own tables


@dataclass(frozen=True)
class Told:
    """What became of one mutation."""

    ended: str
    provider_calls: int
    before: Rows
    after: Rows


async def prepare(folder: Path) -> None:
    """The data of every mutation: its job at its stage, copied from one that was played there."""
    for stage in {mutation.at[0] for mutation in MUTATIONS.values()}:
        place = folder / f"stage {stage}"
        clock = ManualClock(SystemClock().now() - timedelta(minutes=1))
        one = await at_stage(place, READY.get(stage, stage), clock)
        if stage in READY:
            await one.approve()
        if stage == RECONCILE[0]:
            one.provider.script = ["apply, reply lost"]
            await one.carry(EXPORT[1])
        await one.kit.store.close()
        for name, mutation in MUTATIONS.items():
            if mutation.at[0] == stage:
                shutil.copytree(place, folder / name)


async def start(folder: Path, role: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.faults.process", str(folder), role),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )


async def line(process: asyncio.subprocess.Process, prefix: str = "") -> str:
    """The next line that begins so; logs go to the same place."""
    assert process.stdout is not None
    while True:
        said = (await process.stdout.readline()).decode()
        assert said, "the process ended"
        if said.partition("=")[0].strip() == prefix:
            return said.strip()


async def end(process: asyncio.subprocess.Process) -> None:
    await process.communicate(b"\n")
    assert process.returncode == 0


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def told(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[dict[str, Told]]:
    folder = tmp_path_factory.mktemp("stale")
    await prepare(folder)
    stale = await start(folder, "stale")
    await line(stale, "claimed")
    os.kill(stale.pid, signal.SIGSTOP)
    taker = await start(folder, "taker")
    await line(taker, "taken")
    before = {name: dump(folder / name) for name in MUTATIONS}
    os.kill(stale.pid, signal.SIGCONT)
    assert stale.stdin is not None
    stale.stdin.write(b"\n")
    found: dict[str, Told] = {}
    for name in MUTATIONS:
        _, ended, calls = (await line(stale, name)).split("=")
        found[name] = Told(ended, int(calls), before[name], dump(folder / name))
    await end(stale)
    await end(taker)
    yield found


@pytest.mark.parametrize("name", MUTATIONS)
async def test_a_stale_worker_cannot(told: dict[str, Told], name: str) -> None:
    found, mutation = told[name], MUTATIONS[name]
    assert found.ended == mutation.ends
    assert found.provider_calls == 0
    for table, rows in found.after.items():
        gone, new = found.before[table] - rows, rows - found.before[table]
        assert not gone, f"{table} lost a row"
        if table in mutation.leaves:
            assert len(new) == 1, f"{table} keeps the evidence"
        else:
            assert not new, f"{table} gained a row"
