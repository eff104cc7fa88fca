"""A counter that others can wait on.

Keeps: whoever waits for "beyond N" is woken by the first beat after N, also when that beat came
before the wait began; waiting costs no polling; time comes from the Clock port; once closed, no
wait lasts.
"""

from __future__ import annotations

import asyncio

from runtime.ports import Clock


class Pulse:
    """Counts changes and wakes those who wait for the next one."""

    def __init__(self) -> None:
        self.version = 0
        self.closed = False
        self._waiting: set[asyncio.Future[None]] = set()

    def beat(self) -> None:
        """Something changed."""
        self.version += 1
        for future in self._waiting:
            if not future.done():
                future.set_result(None)
        self._waiting.clear()

    def close(self) -> None:
        """The server stops: nobody waits any longer."""
        self.closed = True
        self.beat()

    async def beyond(self, version: int, clock: Clock, seconds: float) -> bool:
        """Wait until the version is beyond the given one; False when the time is up first."""
        if self.version > version:
            return True
        if seconds <= 0 or self.closed:
            return False
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.add(future)
        timer = asyncio.ensure_future(clock.sleep(seconds))
        try:
            await asyncio.wait({future, timer}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._waiting.discard(future)
            timer.cancel()
        return self.version > version
