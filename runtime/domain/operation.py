"""Operations: one unit of fenced work, its lease and its epochs.

Keeps INV-3 (a fenced write happens only while the operation is claimed at that epoch: `fenced`),
INV-4 (epochs only rise: only `claim` changes the epoch, always by one) and its half of INV-19
(each unfinished state says what moves it on). Clocks decide liveness only: an expired lease makes
an operation claimable again, but what a slow worker may write is decided by the epoch alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated, Final, Literal

from pydantic import Field

from runtime.domain.values import Digest, Fence, Id, Record, UtcTime

LEASE: Final = timedelta(seconds=60)
ATTEMPTS_MAX: Final = 5
RETRY_BASE: Final = timedelta(seconds=1)
RETRY_CEILING: Final = timedelta(minutes=5)

Replay = Literal["safe", "reconcile", "never"]


class Goal(Record):
    """What the operation is for; the digest covers everything that makes it this goal."""

    kind: Id
    version: int = 1
    digest: Digest


class Pending(Record):
    """Claimable from `ready_at` on."""

    name: Literal["pending"] = "pending"
    ready_at: UtcTime


class Claimed(Record):
    """A worker has it until `until`, unless it renews."""

    name: Literal["claimed"] = "claimed"
    owner: Digest
    claimed_at: UtcTime
    until: UtcTime


class Waiting(Record):
    """Stands until `on` happens or `until` passes; either makes it pending."""

    name: Literal["waiting"] = "waiting"
    on: Id
    until: UtcTime


class Succeeded(Record):
    """The work is done and stored."""

    name: Literal["succeeded"] = "succeeded"
    at: UtcTime


class Failed(Record):
    """The work ended without its result."""

    name: Literal["failed"] = "failed"
    at: UtcTime
    reason: str


class Cancelled(Record):
    """A person ended the work."""

    name: Literal["cancelled"] = "cancelled"
    at: UtcTime
    reason: str


class OperatorRequired(Record):
    """Only a person can move it on; a needs-you item says so."""

    name: Literal["operator_required"] = "operator_required"
    at: UtcTime
    reason: str


OperationState = Annotated[
    Pending | Claimed | Waiting | Succeeded | Failed | Cancelled | OperatorRequired,
    Field(discriminator="name"),
]

TRANSITIONS: Final[dict[str, tuple[str, ...]]] = {
    "pending": ("claimed", "failed", "cancelled"),
    "claimed": ("succeeded", "failed", "cancelled", "waiting", "operator_required", "pending"),
    "waiting": ("pending", "cancelled"),
    "operator_required": ("pending", "failed", "cancelled"),
    "succeeded": (),
    "failed": (),
    "cancelled": (),
}


class Operation(Record):
    """One unit of fenced work.

    `subject` is the record worked on. `lane` keeps order: while pending or claimed, an operation
    holds its lane (`in_lane`), and only the first in the lane is claimable. `last_commit` is the
    tag of the newest fenced commit, by which a commit whose reply was lost recognises itself.
    """

    id: Id
    kind: Id
    goal: Goal
    acceptance: tuple[str, ...]
    job: Id | None = None
    event: Id | None = None
    cause: Id | None = None
    subject: Id | None = None
    correlation: Id
    trace: str = ""
    lane: Id | None = None
    lane_order: int = 0
    in_lane: Id | None = None
    replay: Replay = "safe"
    attempts_max: int = ATTEMPTS_MAX
    attempt: int = 0
    rescues: int = 0
    """How often a person let it try again."""
    epoch: int = 0
    deadline: UtcTime | None = None
    last_commit: str = ""
    created_at: UtcTime
    state: OperationState

    @property
    def fence(self) -> Fence:
        """The fence of the newest claim."""
        return Fence(operation=self.id, epoch=self.epoch)

    @property
    def finished(self) -> bool:
        """Whether nothing can move it any more."""
        return isinstance(self.state, Succeeded | Failed | Cancelled)


@dataclass(frozen=True, slots=True)
class Refused:
    """Why a transition does not apply; nothing changes."""

    rule: str
    found: str


def claim(
    operation: Operation, owner: str, now: datetime, lease: timedelta = LEASE
) -> Operation | Refused:
    """Take the operation for one attempt: epoch and attempt rise by one.

    An expired claim of another worker is not taken here: the scanner decides by its replay policy
    and returns it to pending first.
    """
    state = operation.state
    if not isinstance(state, Pending):
        return Refused("only a pending operation can be claimed", state.name)
    if now < state.ready_at:
        return Refused("a pending operation is claimable from its ready time on", "not ready")
    if operation.deadline is not None and now >= operation.deadline:
        return Refused("an operation past its deadline is not started", "deadline passed")
    if operation.attempt >= operation.attempts_max:
        return Refused("the retry budget bounds the attempts", "attempts spent")
    return operation.model_copy(
        update={
            "epoch": operation.epoch + 1,
            "attempt": operation.attempt + 1,
            "state": Claimed(owner=owner, claimed_at=now, until=now + lease),
        }
    )


def exhausted(operation: Operation, now: datetime) -> str | None:
    """Why a pending operation can never be claimed again, or None; at its deadline it is late."""
    if not isinstance(operation.state, Pending):
        return None
    if operation.deadline is not None and now >= operation.deadline:
        return "its deadline passed before it was done"
    if operation.attempt >= operation.attempts_max:
        return f"it did not succeed in {operation.attempts_max} attempts"
    return None


def fenced(operation: Operation | None, fence: Fence) -> Operation | Refused:
    """The operation, if `fence` may still write for it. The lease's clock plays no part."""
    if operation is None:
        return Refused("a fence names an existing operation", "missing")
    if operation.epoch != fence.epoch:
        return Refused("only the newest epoch writes", f"epoch {operation.epoch}")
    if not isinstance(operation.state, Claimed):
        return Refused("a fenced write needs a claimed operation", operation.state.name)
    return operation


def renew(operation: Operation, now: datetime, lease: timedelta = LEASE) -> Operation:
    """Extend the lease of a claimed operation. The lease never shrinks."""
    state = operation.state
    if not isinstance(state, Claimed):
        return operation
    until = max(state.until, now + lease)
    return operation.model_copy(update={"state": state.model_copy(update={"until": until})})


def succeed(operation: Operation, now: datetime) -> Operation:
    """Claimed → succeeded."""
    return _leave(operation, Succeeded(at=now))


def fail(operation: Operation, reason: str, now: datetime) -> Operation:
    """Claimed, pending or operator_required → failed."""
    return _leave(operation, Failed(at=now, reason=reason))


def cancel(operation: Operation, reason: str, now: datetime) -> Operation:
    """Any unfinished state → cancelled."""
    return _leave(operation, Cancelled(at=now, reason=reason))


def require_operator(operation: Operation, reason: str, now: datetime) -> Operation:
    """Claimed → operator_required. It leaves its lane: a stuck decision never blocks a chat."""
    return _leave(operation, OperatorRequired(at=now, reason=reason))


def wait(operation: Operation, on: str, until: datetime) -> Operation:
    """Claimed → waiting. It leaves its lane."""
    return _leave(operation, Waiting(on=on, until=until))


def release(operation: Operation, ready_at: datetime) -> Operation:
    """Claimed → pending again from `ready_at` on, in its lane; the attempt stays spent."""
    if not isinstance(operation.state, Claimed):
        return operation
    return operation.model_copy(update={"state": Pending(ready_at=ready_at)})


def wake(operation: Operation, now: datetime) -> Operation:
    """Waiting or operator_required → pending with a fresh retry budget; others stay."""
    if not isinstance(operation.state, Waiting | OperatorRequired):
        return operation
    return operation.model_copy(update={"attempt": 0, "state": Pending(ready_at=now)})


def rescue(operation: Operation, now: datetime) -> Operation:
    """Operator_required → pending by a person, who may expect another answer from an agent."""
    if not isinstance(operation.state, OperatorRequired):
        return operation
    woken = wake(operation, now)
    return woken.model_copy(update={"rescues": operation.rescues + 1})


def retry_delay(attempt: int) -> timedelta:
    """Exponential delay before attempt `attempt + 1`, under a ceiling."""
    doublings: int = min(max(attempt - 1, 0), 30)
    return min(RETRY_CEILING, RETRY_BASE * (1 << doublings))


def lease_expired(operation: Operation, now: datetime) -> bool:
    """Whether a claim has run out: at its `until` and later."""
    return isinstance(operation.state, Claimed) and now >= operation.state.until


def _leave(operation: Operation, state: OperationState) -> Operation:
    if state.name not in TRANSITIONS[operation.state.name]:
        return operation
    return operation.model_copy(update={"in_lane": None, "state": state})
