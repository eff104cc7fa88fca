"""Work: what a handler holds while it works on one claimed operation.

Keeps INV-3: every write of a handler goes through `commit`, which reads the operation in the
same transaction and raises `FenceLost` unless it is still claimed at this epoch. A commit whose
reply was lost recognises itself by its tag. Finishing an operation and creating the next one are
one commit.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Generic, TypeVar

from runtime.domain import event as events
from runtime.domain.operation import (
    Cancelled,
    Failed,
    Operation,
    OperatorRequired,
    Refused,
    Succeeded,
    fenced,
)
from runtime.domain.values import Scope
from runtime.engine.kit import Kit
from runtime.errors import FenceLost
from runtime.ports import Commit, Create, Put, Reads, Store, Write
from runtime.stores.collections import EVENTS, OPERATIONS
from runtime.stores.scoped import Scoped

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Step(Generic[T]):
    """What a fenced body decided. `operation` is its next state, or None to stay claimed."""

    outcome: T
    writes: Sequence[Write] = field(default_factory=tuple)
    operation: Operation | None = None


Onward = Callable[[Operation], Operation | None]
"""The operation claimed by the asking worker, or None if it must not or cannot take it now."""

FencedBody = Callable[[Reads, Operation], Awaitable[Step[T]]]


class Work:
    """One claimed operation in one worker. `operation` is as it was claimed."""

    def __init__(
        self, kit: Kit, scope: Scope, operation: Operation, onward: Onward | None = None
    ) -> None:
        """Hold the claim; `store` is scoped to the operation's own tenant (or the directory).

        `onward` claims a following operation for the same worker, in the commit that creates it.
        """
        self.kit = kit
        self.scope = scope
        self.operation = operation
        self.store: Store = Scoped(kit.store, (scope,))
        self.settled = False
        self.following: Operation | None = None
        """The operation that the ending commit created and claimed, if it did."""
        self._onward = onward
        self._fence = operation.fence
        self._tag = kit.ids.new("commit")
        self._commits = 0
        # One commit at a time: a renewal between a lost reply and its re-run would hide the tag.
        self._turn = asyncio.Lock()

    def now(self) -> datetime:
        """The current time, from the clock port."""
        return self.kit.clock.now()

    async def commit(self, body: FencedBody[T], store: Store | None = None) -> T:
        """Run a fenced transaction.

        Args:
            body: reads what it needs and returns its writes and the operation's next state. It is
                given the operation as stored now. It may be run several times.
            store: another scoped handle, for the few commits that need two scopes.

        Raises:
            FenceLost: a newer claim exists, or the operation is not claimed any more.
        """
        self._commits += 1
        tag = f"{self._tag}.{self._commits}"
        tried: dict[str, tuple[T, bool, Operation | None]] = {}
        key = OPERATIONS.key(self.scope, self.operation.id)

        async def run(reads: Reads) -> Commit[tuple[T, bool, Operation | None]]:
            stored = await reads.get(key)
            if stored is not None and stored.last_commit in tried:
                return Commit(tried[stored.last_commit])
            current = fenced(stored, self._fence)
            if isinstance(current, Refused):
                raise FenceLost(
                    operation=self.operation.id, epoch=self.operation.epoch, found=current.found
                )
            step = await body(reads, current)
            mine = f"{tag}.{len(tried)}"
            after = (step.operation or current).model_copy(update={"last_commit": mine})
            left = after.state.name != "claimed"
            writes, following = self._go_on(step.writes) if left else (list(step.writes), None)
            tried[mine] = (step.outcome, left, following)
            writes.append(Put(key, after))
            writes.extend(await event_writes(reads, self.scope, after, self.now()))
            return Commit(tried[mine], tuple(writes))

        async with self._turn:
            outcome, left, following = await self.kit.commit(run, store or self.store)
            self.settled = self.settled or left
            self.following = following or self.following
        return outcome

    def _go_on(self, writes: Sequence[Write]) -> tuple[list[Write], Operation | None]:
        """The writes, with the first operation that this worker can go on with claimed at once."""
        made, following = list(writes), None
        if self._onward is None:
            return made, None
        for place, write in enumerate(made):
            if isinstance(write, Create) and isinstance(write.record, Operation):
                following = self._onward(write.record)
                if following is not None:
                    made[place] = Create(write.key, following)
                    break
        return made, following


async def event_writes(reads: Reads, scope: Scope, after: Operation, now: datetime) -> list[Write]:
    """An event ends with its operation, in the same commit, whoever makes it (INV-1)."""
    if after.event is None:
        return []
    key = EVENTS.key(scope, after.event)
    match after.state:
        case Succeeded():
            event = await reads.get(key)
            return [] if event is None else [Put(key, events.complete(event, now))]
        case Failed(reason=reason) | OperatorRequired(reason=reason):
            event = await reads.get(key)
            return [] if event is None else [Put(key, events.dead_letter(event, reason, now))]
        case Cancelled(reason=reason):
            event = await reads.get(key)
            return [] if event is None else [Put(key, events.reject(event, reason, now))]
        case _:
            return []


Handler = Callable[[Work], Awaitable[None]]
"""Carries one operation as far as it goes now, ending in a commit that leaves `claimed`."""
