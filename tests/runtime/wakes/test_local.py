"""Wakes inside a process: handed over once, bounded, and never needed for correctness."""

from __future__ import annotations

import asyncio

from runtime.ports import Hint
from runtime.wakes.local import HINTS_MAX, LocalWakes
from tests.world import ACME


def hints(count: int) -> list[Hint]:
    return [Hint(ACME, f"op-{number}") for number in range(count)]


async def test_what_was_announced_is_handed_over_once_and_in_order() -> None:
    wakes = LocalWakes()
    await wakes.announce(hints(2))
    await wakes.announce([Hint(ACME, "last")])
    assert [hint.operation for hint in await wakes.next(1)] == ["op-0", "op-1", "last"]
    assert await wakes.next(0) == ()


async def test_a_waiter_is_woken_by_a_hint() -> None:
    wakes = LocalWakes()
    waiting = asyncio.create_task(wakes.next(60))
    await asyncio.wait({waiting}, timeout=0)
    assert not waiting.done()
    await wakes.announce(hints(1))
    assert await waiting == tuple(hints(1))


async def test_a_waiter_may_be_woken_without_a_hint() -> None:
    wakes = LocalWakes()
    waiting = asyncio.create_task(wakes.next(60))
    await asyncio.wait({waiting}, timeout=0)
    wakes.wake()
    assert await waiting == ()


async def test_nothing_is_waited_for_when_there_is_no_time() -> None:
    assert await LocalWakes().next(0) == ()


async def test_a_full_queue_drops_what_the_ready_query_finds_anyway() -> None:
    for count, kept in ((HINTS_MAX - 1, -1), (HINTS_MAX, 0), (HINTS_MAX + 1, 0)):
        wakes = LocalWakes()
        await wakes.announce(hints(count))
        await wakes.announce([])
        assert len(await wakes.next(0)) == HINTS_MAX + kept
