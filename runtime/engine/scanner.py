"""The scanner: finds what stopped moving and sets it going again. Model-free, no provider calls.

Keeps INV-19's other half: an expired claim becomes claimable again (or reaches a person, by its
replay policy and retry budget), and a wait whose time is over becomes pending. Pages are bounded
and ordered by deadline; one transaction per finding, so that a broken row blocks nothing; a scan
that is repeated finds nothing new, since every finding changes the state that it was found by.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

import structlog

from runtime.domain import operation as operations
from runtime.domain.operation import Operation, OperatorRequired, Waiting
from runtime.engine.approvals import At
from runtime.engine.effects import lost_of
from runtime.engine.kit import Kit
from runtime.engine.marks import dirty_operation
from runtime.engine.work import event_writes
from runtime.ports import Ask, Commit, Found, Put, Reads
from runtime.stores.collections import OPERATIONS

PAGE: Final = 100
TICK: Final = timedelta(microseconds=1)

log = structlog.get_logger()

Decide = Callable[[Operation, datetime], Operation]


@dataclass(frozen=True, slots=True)
class Scan:
    """What one scan did: counts only."""

    released: int = 0
    woken: int = 0
    parked: int = 0
    unreadable: int = 0
    failed: int = 0

    @property
    def busy(self) -> bool:
        """Whether another page may be waiting."""
        return self.released + self.woken + self.parked > 0


def expired_claim(operation: Operation, now: datetime) -> Operation:
    """What becomes of an operation whose claim ran out; anything else stays as it is.

    `safe` and `reconcile` operations become pending: their handlers look at what is stored before
    they act, and a dispatched command is never dispatched again by them. `never`, and spent retry
    budgets, need a person.
    """
    if not operations.lease_expired(operation, now):
        return operation
    if operation.replay == "never":
        reason = "its worker stopped, and it must not be repeated without a person"
        return operations.require_operator(operation, reason, now)
    if operation.attempt >= operation.attempts_max:
        reason = f"its workers stopped {operation.attempt} times"
        return operations.require_operator(operation, reason, now)
    return operations.release(operation, now)


def overdue_wait(operation: Operation, now: datetime) -> Operation:
    """A wait whose time is over becomes pending: its handler decides what that means."""
    if isinstance(operation.state, Waiting) and now >= operation.state.until:
        return operations.wake(operation, now)
    return operation


class Scanner:
    """Scans operations across tenants."""

    def __init__(self, kit: Kit) -> None:
        """Read and write through the kit's store."""
        self._kit = kit
        self._after: dict[str, str | None] = {}

    async def once(self) -> Scan:
        """One bounded page of each finding."""
        claims = await self._sweep("claimed", expired_claim)
        waits = await self._sweep("waiting", overdue_wait)
        return Scan(
            released=claims[0],
            parked=claims[1],
            woken=waits[0],
            unreadable=claims[2] + waits[2],
            failed=claims[3] + waits[3],
        )

    async def _sweep(self, state: str, decide: Decide) -> tuple[int, int, int, int]:
        before = self._kit.clock.now() + TICK
        after_ = self._after.get(state)
        page = await self._kit.store.find(
            Ask(OPERATIONS, "leases", None, (state,), before=before, after=after_, limit=PAGE)
        )
        for path, cause in page.unreadable:
            log.error("operation_unreadable", key=path, cause=cause)
        moved = parked = failed = 0
        for found in page.rows:
            try:
                after = await self._move(found, decide)
            except Exception as error:  # noqa: BLE001 - one bad row never blocks the others
                failed += 1
                log.error(  # noqa: TRY400 - fields are enough, a traceback may quote a draft (INV-20)
                    "finding_failed", operation=found.record.id, error=type(error).__name__
                )
                continue
            moved += after == "pending"
            parked += after == "operator_required"
        # A page of broken rows alone is passed over, so that it hides nothing behind it.
        self._after[state] = None if moved + parked else page.cursor
        return moved, parked, len(page.unreadable), failed

    async def _move(self, found: Found[Operation], decide: Decide) -> str:
        async def body(reads: Reads) -> Commit[str]:
            stored = await reads.get(found.key)
            if stored is None:
                return Commit("gone")
            now = self._kit.clock.now()
            after = decide(stored, now)
            if after == stored:
                return Commit("unchanged")
            serial = f"{after.id}:{after.epoch}:scan"
            if isinstance(after.state, OperatorRequired):
                lost = await lost_of(At(reads, found.key.scope, now, serial), stored)
                if lost is not None:
                    writes = (*lost.writes, Put(found.key, lost.operation))
                    return Commit(lost.operation.state.name, writes)
            mark = dirty_operation(found.key.scope, after, now, serial)
            ended = await event_writes(reads, found.key.scope, after, now)
            return Commit(after.state.name, (Put(found.key, after), mark, *ended))

        return await self._kit.commit(body)
