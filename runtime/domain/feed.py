"""The operational feed: job shells, needs-you items, dirty markers and contiguous changes.

A projection over durable state, never a second workflow engine. Keeps INV-13's records: the head
counts sequences; every change carries the next one.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Final, Literal

from pydantic import Field

from runtime.domain.values import Digest, Id, Record, UtcTime

ItemKind = Literal[
    "uncertain_effect",
    "policy_block",
    "credential_required",
    "approval",
    "strategy_decision",
    "failed_stage",
    "escalation",
    "missing_asset",
    "undelivered",
    "conflict",
]

PRIORITY: Final[dict[ItemKind, int]] = {
    "uncertain_effect": 100,
    "policy_block": 90,
    "credential_required": 80,
    "undelivered": 75,
    "approval": 60,
    "strategy_decision": 55,
    "escalation": 52,
    "failed_stage": 50,
    "conflict": 45,
    "missing_asset": 40,
}

Lifecycle = Literal[
    "uncertain", "needs_you", "paused", "cancelled", "failed", "scheduled", "settled", "active"
]


class DirtyMarker(Record):
    """Subject `kind:id` changed and must be projected. Written with the change itself."""

    id: Id
    kind: Literal["job", "operation", "card", "event"]
    subject: Id
    at: UtcTime
    serial: str
    """Which write left it. The store itself sees that only the version that was read is deleted."""


class JobShell(Record):
    """One job in a line. `view` is the digest of everything its card shows."""

    id: Id
    number: int
    title: str
    lifecycle: Lifecycle
    stage: str
    completed_steps: int
    total_steps: int
    attention: int
    last_progress_at: UtcTime
    order: UtcTime
    """Last change, by which lists are ordered."""
    open: bool
    view: Digest


class NeedsYouItem(Record):
    """Something that waits for a person. `rank` orders: priority first, then age."""

    id: Id
    kind: ItemKind
    job: Id | None
    subject: Id
    title: Annotated[str, Field(max_length=500)]
    reason: Annotated[str, Field(max_length=2_000)]
    created_at: UtcTime
    due_at: UtcTime | None = None
    rank: str
    open: bool
    destination: Id | None
    """Where its card goes; without one it is only listed."""
    view: Digest


class FeedHead(Record):
    """The last sequence given out."""

    id: str = "head"
    sequence: int


class FeedChange(Record):
    """One change, `sequence` zero-padded in `id`."""

    id: Id
    sequence: int
    kind: Literal["job_upserted", "item_upserted", "item_closed"]
    subject: Id
    view: Digest
    at: UtcTime


def item_id(kind: str, subject: str) -> str:
    """One item per kind and subject."""
    return f"{kind}:{subject}"


def rank(kind: ItemKind, created_at: datetime) -> str:
    """Sorts ascending by priority (highest first), then age (oldest first)."""
    return f"{999 - PRIORITY[kind]:03d}:{created_at.timestamp():018.6f}"


def change_id(sequence: int) -> str:
    """Zero-padded so that text order is sequence order."""
    return f"{sequence:016d}"
