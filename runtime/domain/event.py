"""Events: what arrived, exactly once per (source, source ID).

Keeps INV-2: one (source, source ID) is one event; another payload under it is a conflict.
An event has no lease: the operation born with it is the work, and both are created in one
commit (INV-1, `runtime/engine/inbox.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Final, Literal

from pydantic import Field

from runtime.domain.values import Digest, Id, Record, Text, Trust, UtcTime, identity, sha256

SCHEMA_VERSION: Final = 1


class Accepted(Record):
    """Stored with its operation; the operation is the work."""

    name: Literal["accepted"] = "accepted"


class Completed(Record):
    """Its operation succeeded."""

    name: Literal["completed"] = "completed"
    at: UtcTime


class Rejected(Record):
    """Stored so that the transport moves on, but never worked on."""

    name: Literal["rejected"] = "rejected"
    at: UtcTime
    reason: str


class DeadLettered(Record):
    """Its operation was given up; a person has been told."""

    name: Literal["dead_lettered"] = "dead_lettered"
    at: UtcTime
    reason: str


EventState = Annotated[Accepted | Completed | Rejected | DeadLettered, Field(discriminator="name")]

TRANSITIONS: Final[dict[str, tuple[str, ...]]] = {
    "accepted": ("completed", "rejected", "dead_lettered"),
    "completed": (),
    "rejected": (),
    "dead_lettered": (),
}


class Envelope(Record):
    """A wake as its transport hands it over.

    `payload` is text (JSON of the transport, or empty) and is hashed as bytes: free-form JSON from
    outside has no canonical form of ours.
    """

    schema_version: Literal[1] = 1
    source: Annotated[str, Field(min_length=1, max_length=100)]
    source_id: Annotated[str, Field(min_length=1, max_length=512)]
    type: Annotated[str, Field(min_length=1, max_length=100)]
    trust: Trust
    payload: Text
    correlation: Id
    causation: Id | None = None
    trace: Annotated[str, Field(max_length=64)] = ""

    @property
    def event_id(self) -> str:
        """The event's identity: it depends on source and source ID only."""
        return identity(self.source, self.source_id)

    @property
    def payload_digest(self) -> str:
        """SHA-256 of the payload's bytes."""
        return sha256(self.payload.encode())


class Event(Record):
    """A stored wake. `deliveries` counts how often its transport brought it."""

    id: Id
    source: str
    source_id: str
    type: str
    trust: Trust
    payload: Text
    payload_digest: Digest
    correlation: Id
    causation: Id | None
    trace: str
    operation: Id | None
    received_at: UtcTime
    deliveries: int
    conflicts: int = 0
    last_delivery: str
    state: EventState


@dataclass(frozen=True, slots=True)
class Fresh:
    """First delivery: create the event and its operation."""

    event: Event


@dataclass(frozen=True, slots=True)
class Redelivery:
    """The same event again: count it, do nothing else."""

    event: Event


@dataclass(frozen=True, slots=True)
class Conflict:
    """The same source ID with another payload: counted, surfaced, never worked on."""

    event: Event
    offered_digest: str


Acceptance = Fresh | Redelivery | Conflict


def accept(
    existing: Event | None, envelope: Envelope, operation: str | None, delivery: str, now: datetime
) -> Acceptance:
    """Decide what a delivery is.

    Args:
        existing: the event stored under the same identity.
        envelope: what the transport brought.
        operation: the operation to be born with it, or None for an event to be rejected.
        delivery: a tag unique to this delivery, so that it is counted once even if the reply to
            its commit was lost.
        now: when it arrived.
    """
    if existing is None:
        return Fresh(
            Event(
                id=envelope.event_id,
                source=envelope.source,
                source_id=envelope.source_id,
                type=envelope.type,
                trust=envelope.trust,
                payload=envelope.payload,
                payload_digest=envelope.payload_digest,
                correlation=envelope.correlation,
                causation=envelope.causation,
                trace=envelope.trace,
                operation=operation,
                received_at=now,
                deliveries=1,
                last_delivery=delivery,
                state=Accepted(),
            )
        )
    if existing.payload_digest != envelope.payload_digest or existing.type != envelope.type:
        counted = existing.model_copy(
            update={"conflicts": existing.conflicts + 1, "last_delivery": delivery}
        )
        return Conflict(counted, envelope.payload_digest)
    return Redelivery(
        existing.model_copy(
            update={"deliveries": existing.deliveries + 1, "last_delivery": delivery}
        )
    )


def complete(event: Event, now: datetime) -> Event:
    """The event's work is done. Terminal states absorb."""
    return _end(event, Completed(at=now))


def reject(event: Event, reason: str, now: datetime) -> Event:
    """The event is kept but will never be worked on."""
    return _end(event, Rejected(at=now, reason=reason))


def dead_letter(event: Event, reason: str, now: datetime) -> Event:
    """The event's work was given up in front of a person."""
    return _end(event, DeadLettered(at=now, reason=reason))


def _end(event: Event, state: Completed | Rejected | DeadLettered) -> Event:
    if not isinstance(event.state, Accepted):
        return event
    return event.model_copy(update={"state": state})
