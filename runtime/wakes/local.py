"""Wakes inside one process: a bounded queue of hints.

A full queue drops hints: the work itself is stored, and workers look by themselves every now and
then (`Worker.poll_seconds`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from runtime.ports import Hint

HINTS_MAX: Final = 10_000


class LocalWakes:
    """Hands hints from whoever committed to whoever waits."""

    def __init__(self) -> None:
        """Start with nothing to say."""
        self._hints: list[Hint] = []
        self._arrived = asyncio.Event()

    async def announce(self, hints: Sequence[Hint]) -> None:
        """Pass hints on to one waiter."""
        room = HINTS_MAX - len(self._hints)
        self._hints.extend(hints[:room])
        self._arrived.set()

    async def next(self, timeout_seconds: float) -> Sequence[Hint]:
        """Hints that arrived, or none after `timeout_seconds`."""
        if not self._hints:
            # Whether hints or the end of the wait came is told by the hints themselves.
            ending = asyncio.get_running_loop().call_later(timeout_seconds, self._arrived.set)
            try:
                await self._arrived.wait()
            finally:
                ending.cancel()
        hints, self._hints = self._hints, []
        self._arrived.clear()
        return tuple(hints)

    def wake(self) -> None:
        """Let a waiter look without a hint (used to stop)."""
        self._arrived.set()
