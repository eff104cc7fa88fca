"""The kit: the ports that every engine part shares, and the one way to commit.

After a commit, every operation that it made claimable is announced as a hint. A hint is a signal
only: the pending operation itself is the durable wake (it is found by the query `ready`), so that
losing or repeating hints changes no outcome.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from runtime.domain.operation import Operation, Pending
from runtime.domain.values import Scope
from runtime.ports import Body, Clock, Commit, Create, Hint, Ids, Put, Reads, Store, Wakes, Write

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Kit:
    """Ports shared by the engine. `store` is the raw store; handlers get scoped ones."""

    clock: Clock
    ids: Ids
    store: Store
    wakes: Wakes

    async def commit(self, body: Body[T], store: Store | None = None) -> T:
        """Run one transaction and announce the operations that it made claimable."""
        writes: Sequence[Write] = ()

        async def remembering(reads: Reads) -> Commit[T]:
            nonlocal writes
            commit = await body(reads)
            writes = commit.writes
            return commit

        outcome = await (store or self.store).transact(remembering)
        hints = claimable(writes)
        if hints:
            await self.wakes.announce(hints)
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
