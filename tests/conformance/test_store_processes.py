"""Store conformance: several real processes on one set of data, and real SIGKILL."""

from __future__ import annotations

import asyncio
import signal

import pytest

from runtime.ports import Commit, Put, Reads
from tests.conformance.records import ACME, OTHER, TALLIES, Tally
from tests.conformance.stores import Backend

pytestmark = pytest.mark.processes


async def lines(process: asyncio.subprocess.Process) -> list[str]:
    output, _ = await process.communicate()
    assert process.returncode == 0
    return output.decode().split()


async def test_two_processes_that_raise_one_number_lose_no_update(backend: Backend) -> None:
    processes = [await backend.process("count", "40", "3") for _ in range(2)]
    await asyncio.gather(*[lines(process) for process in processes])
    assert await backend.open().get(TALLIES.key(ACME, "shared")) == Tally(value=240)


async def test_processes_that_open_a_new_file_at_once_all_succeed(backend: Backend) -> None:
    processes = [await backend.process("open") for _ in range(3)]
    said = await asyncio.gather(*[lines(process) for process in processes])
    assert said == [["ready"]] * 3


async def test_a_killed_process_leaves_only_whole_commits_and_all_it_heard_of(
    backend: Backend,
) -> None:
    writer, survivor = await backend.process("stream", "k"), backend.open()
    assert writer.stdout is not None
    heard = 0
    while heard < 150:
        line = await writer.stdout.readline()
        heard = int(line) if line.strip().isdigit() else 0
    writer.send_signal(signal.SIGKILL)
    rest = (await writer.communicate())[0].decode().split("\n")
    # The last line may be torn by the kill; the others were said after their commit.
    heard = max([heard, *[int(line) for line in rest[:-1] if line.isdigit()]])
    number = 0
    while (left := await survivor.get(TALLIES.key(ACME, f"k-{number + 1}"))) is not None:
        number += 1
        assert left == await survivor.get(TALLIES.key(OTHER, f"k-{number}")) == Tally(value=number)
    assert number in {heard, heard + 1}
    assert await survivor.get(TALLIES.key(OTHER, f"k-{number + 1}")) is None


async def test_a_process_sees_what_another_has_written_and_overwrites_nothing(
    backend: Backend,
) -> None:
    store = backend.open()
    key = TALLIES.key(ACME, "shared")
    assert await store.get(key) is None
    await lines(await backend.process("count", "3", "1"))
    assert await store.get(key) == Tally(value=3)
    await lines(await backend.process("count", "3", "1"))

    async def body(reads: Reads) -> Commit[int]:
        tally = await reads.get(key)
        assert tally is not None
        return Commit(tally.value, (Put(key, Tally(value=tally.value + 1)),))

    assert await store.transact(body) == 6
    await lines(await backend.process("count", "1", "1"))
    assert await store.transact(body) == 8
