"""Processes that carry operations are killed (SIGKILL) at seeded points; everything ends once.

INV-3, INV-4 and INV-19: what a killed process had claimed is taken over with the next epoch, and
each operation's work is counted exactly once, whatever was killed in the middle of it.
"""

from __future__ import annotations

import asyncio
import random  # noqa: TID251 - seeded points of death
import signal
import sys
from pathlib import Path

import pytest

from runtime.domain.event import Envelope
from runtime.domain.operation import Operation
from runtime.domain.values import Trust
from runtime.engine import inbox
from runtime.engine.inbox import Task
from runtime.engine.kit import Kit
from runtime.stores.collections import ALL, COUNTERS, OPERATIONS
from runtime.stores.sqlite import SqliteStore
from runtime.system import SystemClock, SystemIds
from runtime.wakes.local import LocalWakes
from tests.world import ACME

pytestmark = pytest.mark.processes

ROUNDS = 10
ADDED = 20
LINES_MAX = 24


async def carrier(folder: Path) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.faults.carrier", str(folder)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )


async def heard(process: asyncio.subprocess.Process, words: tuple[str, ...]) -> None:
    """Read until a line begins with one of these."""
    assert process.stdout is not None
    while True:
        said = (await process.stdout.readline()).decode()
        assert said, "the process ended by itself"
        if said.startswith(words):
            return


async def fill(kit: Kit, round_: int) -> list[str]:
    """More work than one process is given time for."""
    names = []
    for number in range(ADDED):
        envelope = Envelope(
            source="test",
            source_id=f"{round_}-{number}",
            type="t",
            trust=Trust.OPERATOR,
            payload="{}",
            correlation="c",
        )
        await inbox.accept(kit, ACME, envelope, Task("count", ("counted",), attempts_max=1_000))
        names.append(inbox.operation_id(envelope))
    return names


def begin(process: asyncio.subprocess.Process) -> None:
    assert process.stdin is not None
    process.stdin.write(b"\n")


async def test_everything_that_killed_processes_left_is_done_exactly_once(tmp_path: Path) -> None:
    dice = random.Random(2027)
    clock, ids = SystemClock(), SystemIds()
    store = SqliteStore.open(tmp_path / "truth.sqlite", ALL, clock, ids)
    kit = Kit(clock, ids, store, LocalWakes())
    names: list[str] = []
    present = await carrier(tmp_path)
    for round_ in range(ROUNDS):
        names += await fill(kit, round_)
        following = await carrier(tmp_path)
        await heard(present, ("ready",))
        begin(present)
        for _ in range(dice.randrange(LINES_MAX)):
            await heard(present, ("begun", "done"))
        present.send_signal(signal.SIGKILL)
        await present.communicate()
        assert present.returncode == -signal.SIGKILL
        present = following
    begin(present)
    await ended(store, names, present)


async def ended(
    store: SqliteStore,
    names: list[str],
    last: asyncio.subprocess.Process,
) -> None:
    """Wait for the last process to finish the rest, then count."""
    while True:
        found = [await store.get(OPERATIONS.key(ACME, name)) for name in names]
        if all(isinstance(each, Operation) and each.finished for each in found):
            break
        await heard(last, ("done",))
    last.send_signal(signal.SIGKILL)
    await last.communicate()
    begun = 0
    for name, operation in zip(names, found, strict=True):
        assert operation is not None
        assert operation.state.name == "succeeded"
        done = await store.get(COUNTERS.key(ACME, f"done:{name}"))
        tried = await store.get(COUNTERS.key(ACME, f"begun:{name}"))
        assert done is not None
        assert tried is not None
        assert done.value == 1, name
        assert tried.value <= operation.epoch == operation.attempt
        begun += tried.value
    assert begun > len(names), "no kill came between the two commits of an operation"
    await store.close()
