"""The inbox: the only way in. An event and its operation are created in one commit.

Keeps INV-1 (both exist or neither), INV-2 (a redelivery converges and is counted; another payload
under the same source ID is a conflict) and INV-16 (callers acknowledge their transport only after
`accept` returned).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

import structlog

from runtime.domain import event as events
from runtime.domain.event import Conflict, Envelope, Event, Fresh, Redelivery
from runtime.domain.operation import ATTEMPTS_MAX, Goal, Operation, Pending, Replay
from runtime.domain.values import Scope, identity
from runtime.engine.kit import Kit
from runtime.engine.marks import dirty
from runtime.ports import Commit, Create, Put, Reads, Store
from runtime.stores.collections import EVENTS, OPERATIONS

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Task:
    """The operation that an event asks for. `lane` keeps order among operations of one chat."""

    kind: str
    acceptance: tuple[str, ...]
    lane: str | None = None
    lane_order: int = 0
    subject: str | None = None
    job: str | None = None
    replay: Replay = "safe"
    attempts_max: int = ATTEMPTS_MAX


@dataclass(frozen=True, slots=True)
class Receipted:
    """What became of a delivery, after the commit."""

    verdict: Literal["fresh", "redelivery", "conflict", "rejected"]
    event: Event


async def accept(
    kit: Kit,
    scope: Scope,
    envelope: Envelope,
    task: Task | None,
    *,
    reason: str = "",
    store: Store | None = None,
) -> Receipted:
    """Store a delivery.

    Args:
        kit: the engine's ports.
        scope: the tenant whose event it is, or the directory for unbound chats.
        envelope: the wake.
        task: the operation to create, or None to store the event as rejected for `reason`.
        reason: why there is no operation.
        store: a scoped handle, if the caller has one.
    """
    first = kit.clock.now()
    delivery = kit.ids.new("delivery")
    said: Receipted | None = None

    async def body(reads: Reads) -> Commit[Receipted]:
        nonlocal said
        stored = await reads.get(EVENTS.key(scope, envelope.event_id))
        if said is not None and stored is not None and stored.last_delivery == delivery:
            return Commit(said)
        commit = _decide(scope, stored, envelope, task, reason=reason, delivery=delivery, now=first)
        said = commit.outcome
        return commit

    receipted = await kit.commit(body, store)
    if receipted.verdict == "conflict":
        log.warning("event_conflict", source=envelope.source, event_id=receipted.event.id)
    return receipted


def _decide(
    scope: Scope,
    stored: Event | None,
    envelope: Envelope,
    task: Task | None,
    *,
    reason: str,
    delivery: str,
    now: datetime,
) -> Commit[Receipted]:
    key = EVENTS.key(scope, envelope.event_id)
    operation = None if task is None else operation_id(envelope)
    match events.accept(stored, envelope, operation, delivery, now):
        case Redelivery(event=event):
            return Commit(Receipted("redelivery", event), (Put(key, event),))
        case Conflict(event=event):
            # Surfaced: somebody has to know that one source ID came with two contents.
            mark = dirty(scope, "event", event.id, now, delivery)
            return Commit(Receipted("conflict", event), (Put(key, event), mark))
        case Fresh(event=event) if task is None:
            rejected = events.reject(event, reason, now)
            return Commit(Receipted("rejected", rejected), (Create(key, rejected),))
        case Fresh(event=event):
            born = _born(envelope, event, task)
            return Commit(
                Receipted("fresh", event),
                (Create(key, event), Create(OPERATIONS.key(scope, born.id), born)),
            )


def operation_id(envelope: Envelope) -> str:
    """The operation of an event: derived, so that every delivery names the same one."""
    return f"event:{envelope.event_id}"


def _born(envelope: Envelope, event: Event, task: Task) -> Operation:
    goal = Goal(
        kind=task.kind,
        digest=identity(task.kind, event.id, event.payload_digest, *task.acceptance),
    )
    return Operation(
        id=operation_id(envelope),
        kind=task.kind,
        goal=goal,
        acceptance=task.acceptance,
        job=task.job,
        event=event.id,
        subject=task.subject,
        correlation=envelope.correlation,
        trace=envelope.trace,
        lane=task.lane,
        lane_order=task.lane_order,
        in_lane=task.lane,
        replay=task.replay,
        attempts_max=task.attempts_max,
        created_at=event.received_at,
        state=Pending(ready_at=event.received_at),
    )
