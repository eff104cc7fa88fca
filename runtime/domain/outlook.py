"""The outlook: what people are told about a job, as a pure function of its records.

Keeps INV-17's source: shells and needs-you items are computed from stored records only, each with
the digest of everything its card shows (`view`), so that a card converges exactly when something
that it shows has changed. The lifecycle word is biased to safety: uncertain > needs you > paused or
cancelled > failed > scheduled > settled > active.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from runtime.domain import effect
from runtime.domain.approval import Approval, Requested
from runtime.domain.canonical import canonical_digest
from runtime.domain.card import Card, CardUnreachable
from runtime.domain.effect import Command
from runtime.domain.event import Event
from runtime.domain.feed import ItemKind, JobShell, Lifecycle, NeedsYouItem, item_id, rank
from runtime.domain.job import STAGES, Done, Job, NeedsPerson, Running, Stopped
from runtime.domain.operation import Claimed, Failed, Operation, OperatorRequired, Pending
from runtime.domain.receipt import Receipt, Verification
from runtime.domain.values import Record

WORDS: Final = {
    "telegram.intake": "A message",
    "telegram.press": "A press of a button",
    "chat.answer": "An answer to a message",
}
"""What people are told of operations without a job."""


@dataclass(frozen=True, slots=True)
class JobRecords:
    """Everything that decides what is said about one job."""

    job: Job
    approvals: tuple[Approval, ...]
    """The current one, and those that changed and still have a card."""
    command: Command | None
    operation: Operation | None
    receipt: Receipt | None
    verification: Verification | None
    holder: Operation | None = None
    """What holds the command: for an unknown one, whoever finds out what became of it."""


@dataclass(frozen=True, slots=True)
class Outlook:
    """What the feed should hold for one job."""

    shell: JobShell
    items: tuple[NeedsYouItem, ...]
    home: str


def outlook(records: JobRecords) -> Outlook:
    """Compute shell and items. Items that no longer need anybody come out closed."""
    items = [_decision(records, approval) for approval in records.approvals]
    if trouble := _trouble(records):
        items.append(trouble)
    waiting = sum(1 for item in items if item.open)
    return Outlook(_shell(records, waiting), tuple(items), records.job.home)


def _shell(records: JobRecords, waiting: int) -> JobShell:
    job = records.job
    return JobShell(
        id=job.id,
        number=job.number,
        title=job.title,
        lifecycle=_lifecycle(records, waiting),
        stage=job.stage,
        completed_steps=len(job.steps),
        total_steps=len(STAGES) - 1,
        attention=waiting,
        last_progress_at=job.steps[-1].at if job.steps else job.created_at,
        order=job.updated_at,
        open=not isinstance(job.state, Done | Stopped),
        view=_view(job, records.command, _standing(records.operation), records.verification),
    )


def _lifecycle(records: JobRecords, waiting: int) -> Lifecycle:
    command = records.command
    if command is not None and isinstance(command.state, effect.Unknown):
        return "uncertain"
    if waiting:
        return "needs_you"
    match records.job.state:
        case Stopped(how="cancelled"):
            return "cancelled"
        case Stopped(how="failed") | NeedsPerson():
            return "failed"
        case Stopped() | Done():
            return "settled"
        case Running():
            return "active"


def _decision(records: JobRecords, approval: Approval) -> NeedsYouItem:
    """The item of one approval. Its view follows the effect, so that its card does."""
    job = records.job
    kind: ItemKind = "approval" if approval.kind == "effect" else "strategy_decision"
    current = approval.id == job.approval
    what = "the draft" if approval.kind == "effect" else "the strategy"
    return NeedsYouItem(
        id=item_id(kind, approval.id),
        kind=kind,
        job=job.id,
        subject=approval.id,
        title=f"Job {job.number}: decide about {what}",
        reason=job.title,
        created_at=approval.requested_at,
        due_at=approval.decide_by,
        rank=rank(kind, approval.requested_at),
        open=isinstance(approval.state, Requested) and current and isinstance(job.state, Running),
        destination=job.home,
        view=_view(
            approval.model_copy(update={"terms": None}),  # the digest stands for them
            records.command if current else None,
            records.verification if current else None,
            job.state if current else None,
        ),
    )


def _trouble(records: JobRecords) -> NeedsYouItem | None:
    """An item for what cannot go on by itself. One per operation and epoch."""
    job, operation, command = records.job, records.operation, records.command
    if command is not None and isinstance(command.state, effect.Unknown):
        if records.holder is not None and isinstance(records.holder.state, Pending | Claimed):
            return None  # it is being looked up; a person is asked if that does not tell
        return _item(
            records, "uncertain_effect", command.id, command.state.reason, command.state.at
        )
    if isinstance(job.state, NeedsPerson):
        kind: ItemKind = "escalation" if job.state.reason.startswith("agent:") else "failed_stage"
        subject = operation.id if operation is not None else job.id
        return _item(records, kind, subject, job.state.reason, job.state.at)
    if operation is not None and isinstance(operation.state, OperatorRequired | Failed):
        if isinstance(job.state, Done | Stopped):
            return None
        state = operation.state
        return _item(records, "failed_stage", operation.id, state.reason, state.at)
    return None


def _item(
    records: JobRecords, kind: ItemKind, subject: str, reason: str, at: datetime
) -> NeedsYouItem:
    job = records.job
    return NeedsYouItem(
        id=item_id(kind, subject),
        kind=kind,
        job=job.id,
        subject=subject,
        title=f"Job {job.number} cannot go on by itself",
        reason=reason[:2_000],
        created_at=at,
        rank=rank(kind, at),
        open=True,
        destination=job.home,
        view=_view(job.state, _standing(records.operation), records.command),
    )


def parked(operation: Operation) -> NeedsYouItem:
    """The item of an operation without a job: open while only a person can move it on."""
    state = operation.state
    stuck = isinstance(state, OperatorRequired)
    return NeedsYouItem(
        id=item_id("failed_stage", operation.id),
        kind="failed_stage",
        job=None,
        subject=operation.id,
        title=f"{WORDS.get(operation.kind, operation.kind)} could not be carried out",
        reason=getattr(state, "reason", "")[:2_000],
        created_at=operation.created_at,
        rank=rank("failed_stage", operation.created_at),
        open=stuck,
        destination=None,
        view=_view(_standing(operation)),
    )


def conflicted(event: Event) -> NeedsYouItem:
    """The item of a source ID that came with two contents: only the first was worked on."""
    return NeedsYouItem(
        id=item_id("conflict", event.id),
        kind="conflict",
        job=None,
        subject=event.id,
        title=f"{event.source} {event.source_id[:200]} came again with other content",
        reason="Only the first content was worked on. If the other matters, send it anew.",
        created_at=event.received_at,
        rank=rank("conflict", event.received_at),
        open=event.conflicts > 0,
        destination=None,
        view=_view(str(event.conflicts)),
    )


def undelivered(card: Card) -> NeedsYouItem:
    """The item of a card that its chat does not accept; closed once it is shown after all."""
    state = card.state
    return NeedsYouItem(
        id=item_id("undelivered", card.id),
        kind="undelivered",
        job=None,
        subject=card.id,
        title=f"A message for {card.destination} was not delivered",
        reason=getattr(state, "reason", "")[:2_000],
        created_at=card.created_at,
        rank=rank("undelivered", card.created_at),
        open=isinstance(state, CardUnreachable),
        destination=None,
        view=_view(f"{state.name} {getattr(state, 'reason', '')}"),
    )


def closed(item: NeedsYouItem) -> NeedsYouItem:
    """The item once nothing about it needs a person any more."""
    view = canonical_digest({"closed": item.view}) if item.open else item.view
    return item.model_copy(update={"open": False, "view": view})


def _standing(operation: Operation | None) -> str | None:
    """What a card shows of an operation: not its lease, owner or tags."""
    if operation is None:
        return None
    reason = getattr(operation.state, "reason", "")
    return f"{operation.kind} {operation.state.name} {reason}"


def _view(*shown: Record | str | None) -> str:
    return canonical_digest(
        [part.model_dump(mode="json") if isinstance(part, Record) else part for part in shown]
    )
