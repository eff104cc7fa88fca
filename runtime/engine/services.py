"""Services: loops that a process runs, their leases, and one way to stop them.

A service that must be single holds a lease (`runtime/domain/lease.py`) and gives it back on the way
out. A failing round is reported and followed by a bounded pause: no fault ends a loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Final

import structlog

from runtime.domain import lease as leases
from runtime.domain.lease import SERVICE_LEASE
from runtime.domain.values import DIRECTORY, sha256
from runtime.engine.kit import Kit
from runtime.errors import HarmoniaError
from runtime.ports import Commit, Put, Reads
from runtime.stores.collections import LEASES

PAUSE_MAX_SECONDS: Final = 30.0

log = structlog.get_logger()


class Holder:
    """Holds one named lease for this process, renewing it while it is asked."""

    def __init__(self, kit: Kit, name: str, term: timedelta = SERVICE_LEASE) -> None:
        """Make a random owner; only its digest is stored."""
        self._kit = kit
        self._key = LEASES.key(DIRECTORY, name)
        self._owner = sha256(kit.ids.token().encode())
        self._term = term
        self._renew_at: float | None = None

    @property
    def owner(self) -> str:
        """The digest under which the lease is held."""
        return self._owner

    async def take(self) -> bool:
        """Take or renew the lease; whether it is held now. A third of the term is trusted."""
        if self._renew_at is not None and self._kit.clock.monotonic() < self._renew_at:
            return True

        async def body(reads: Reads) -> Commit[bool]:
            stored = await reads.get(self._key)
            now = self._kit.clock.now()
            taken = leases.take(stored, self._key.id, self._owner, now, self._term)
            return Commit(False) if taken is None else Commit(True, (Put(self._key, taken),))

        asked = self._kit.clock.monotonic()
        holds = await self._kit.commit(body)
        self._renew_at = asked + self._term.total_seconds() / 3 if holds else None
        return holds

    async def free(self) -> None:
        """Give the lease back, so that another process need not wait for its end."""
        self._renew_at = None

        async def body(reads: Reads) -> Commit[None]:
            stored = await reads.get(self._key)
            if stored is None:
                return Commit(None)
            now = self._kit.clock.now()
            return Commit(None, (Put(self._key, leases.free(stored, self._owner, now)),))

        await self._kit.commit(body)


class Stop:
    """Tells loops to end. `wait` doubles as an interruptible pause."""

    def __init__(self) -> None:
        """Not stopped yet."""
        self._event = asyncio.Event()

    @property
    def asked(self) -> bool:
        """Whether the process should end."""
        return self._event.is_set()

    def ask(self) -> None:
        """End every loop after its current round."""
        self._event.set()

    async def wait(self) -> None:
        """Return when asked to end."""
        await self._event.wait()

    async def pause(self, kit: Kit, seconds: float, signal: asyncio.Event | None = None) -> None:
        """Sleep through the clock port, or until `signal` or the wish to stop comes."""
        waits = {
            asyncio.ensure_future(kit.clock.sleep(seconds)),
            asyncio.ensure_future(self._event.wait()),
        }
        if signal is not None:
            waits.add(asyncio.ensure_future(signal.wait()))
        _, pending = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for task in pending:
            task.cancel()
        await asyncio.gather(*pending, return_exceptions=True)


async def loop(
    kit: Kit,
    stop: Stop,
    name: str,
    once: Callable[[], Awaitable[bool]],
    *,
    idle_seconds: float,
    single: bool = False,
    watch: str | None = None,
    term: timedelta = SERVICE_LEASE,
) -> None:
    """Run `once` until stopped. It says whether it did something (then it runs again at once).

    Args:
        kit: the engine's ports.
        stop: ends the loop.
        name: the service, as in its lease and in logs.
        once: one bounded round.
        idle_seconds: how long to pause after a round that found nothing.
        single: whether only one process may run it at a time.
        watch: a collection whose changes by this process end the pause.
        term: how long the lease of a killed process keeps others from running it.
    """
    signal = kit.signals.of(watch) if watch else None
    holder = Holder(kit, f"service:{name}", term) if single else None
    faults = 0
    while not stop.asked:
        try:
            if holder is not None and not await holder.take():
                await stop.pause(kit, term.total_seconds() / 3)
                continue
            if signal is not None:
                signal.clear()
            busy = await once()
            faults = 0
            if not busy:
                await stop.pause(kit, idle_seconds, signal)
        except HarmoniaError as error:
            faults += 1
            log.warning("service_round_failed", service=name, error=type(error).__name__)
            await stop.pause(kit, min(PAUSE_MAX_SECONDS, 0.2 * 2 ** min(faults, 10)))
        except Exception as error:  # noqa: BLE001 - a defect in one round must not end the loop; it is reported with its type
            faults += 1
            log.error("service_round_broke", service=name, error=type(error).__name__)  # noqa: TRY400 - a traceback may quote a draft (INV-20)
            await stop.pause(kit, min(PAUSE_MAX_SECONDS, 0.2 * 2 ** min(faults, 10)))
    if holder is not None:
        try:
            await holder.free()
        except HarmoniaError as error:
            # It runs out by itself; the other services still have to come to their end.
            log.info("lease_not_freed", service=name, error=type(error).__name__)
