"""Transactions: running a body until its commit stands. The one re-run loop of every store.

A body runs again when what it read has changed, and when the reply of its commit was lost; in the
second case the body recognises its own earlier success. Re-runs are bounded in number and by an
overall deadline, with jitter between them; then it is `Contention`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from runtime.errors import Contention
from runtime.ports import Body, Clock, Ids

ATTEMPTS_MAX: Final = 1000
DEADLINE_SECONDS: Final = 10.0
PAUSE_SECONDS: Final = 0.001
AT_ONCE_MAX: Final = 3
"""So many re-runs come without a pause: most conflicts are over by then."""
PAUSE_SECONDS_MAX: Final = 0.064

T = TypeVar("T")


class Stale(Exception):
    """Something the commit read has changed."""


class Ambiguous(Exception):
    """The reply of the commit was lost: it stands or it does not."""


class Transactions:
    """Runs bodies by a store's single attempts."""

    def __init__(self, clock: Clock, ids: Ids, deadline_seconds: float = DEADLINE_SECONDS) -> None:
        self._clock = clock
        self._ids = ids
        self._deadline_seconds = deadline_seconds

    async def run(self, body: Body[T], attempt: Callable[[Body[T]], Awaitable[T]]) -> T:
        """The outcome of the attempt that stood.

        Raises:
            Contention: no attempt stood before the deadline.
        """
        started = self._clock.monotonic()
        try:
            return await attempt(body)
        except (Stale, Ambiguous):
            return await self._again(body, attempt, started)

    async def _again(
        self, body: Body[T], attempt: Callable[[Body[T]], Awaitable[T]], started: float
    ) -> T:
        pause = PAUSE_SECONDS
        attempts = 1
        while attempts < ATTEMPTS_MAX:
            if attempts > AT_ONCE_MAX:
                await self._clock.sleep(pause * self._ids.fraction())
                pause = min(2 * pause, PAUSE_SECONDS_MAX)
            if self._clock.monotonic() - started >= self._deadline_seconds:
                break
            attempts += 1
            with contextlib.suppress(Stale, Ambiguous):
                return await attempt(body)
        seconds = round(self._clock.monotonic() - started, 3)
        raise Contention(attempts=attempts, seconds=seconds)
