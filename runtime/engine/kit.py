"""The kit: the ports that every engine part shares, and the one way to commit.

After a commit, every operation that it made claimable is announced as a hint. A hint is a signal
only: the pending operation itself is the durable wake (it is found by the query `ready`), so that
losing or repeating hints changes no outcome.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import structlog

from runtime.domain.operation import Operation, Pending
from runtime.domain.values import Scope
from runtime.ports import Body, Clock, Commit, Create, Hint, Ids, Put, Reads, Store, Wakes, Write

T = TypeVar("T")

log = structlog.get_logger()


class Signals:
    """Tells this process's loops that a collection changed. Losing a signal only costs a pause."""

    def __init__(self) -> None:
        """Nobody watches yet."""
        self._events: dict[str, asyncio.Event] = {}

    def of(self, collection: str) -> asyncio.Event:
        """The event that is set when a commit of this process writes to `collection`."""
        return self._events.setdefault(collection, asyncio.Event())

    def touch(self, writes: Sequence[Write]) -> None:
        """Set the events of the collections that were written."""
        if not self._events:
            return
        for write in writes:
            event = self._events.get(write.key.collection.name)
            if event is not None:
                event.set()


@dataclass(frozen=True, slots=True)
class Kit:
    """Ports shared by the engine. `store` is the raw store; handlers get scoped ones."""

    clock: Clock
    ids: Ids
    store: Store
    wakes: Wakes
    signals: Signals = field(default_factory=Signals)

    async def commit(self, body: Body[T], store: Store | None = None) -> T:
        """Run one transaction and announce the operations that it made claimable."""
        writes: Sequence[Write] = ()

        async def remembering(reads: Reads) -> Commit[T]:
            nonlocal writes
            commit = await body(reads)
            writes = commit.writes
            return commit

        outcome = await (store or self.store).transact(remembering)
        self.signals.touch(writes)
        hints = claimable(writes)
        if hints:
            try:
                await self.wakes.announce(hints)
            except Exception as error:  # noqa: BLE001 - the commit stands; a hint is only a hint
                log.warning("announcing_failed", error=type(error).__name__)
        return outcome


def claimable(writes: Sequence[Write]) -> tuple[Hint, ...]:
    """Hints for the pending operations among `writes`."""
    hints: list[tuple[Scope, str]] = []
    for write in writes:
        if isinstance(write, Create | Put):
            record = write.record
            if isinstance(record, Operation) and isinstance(record.state, Pending):
                hints.append((write.key.scope, record.id))
    return tuple(Hint(scope, operation) for scope, operation in hints)
