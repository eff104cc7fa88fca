"""Lineage: from the tap to the receipt, rebuilt from records alone.

Each line cites the record that it comes from: an ID or the beginning of a digest. Nothing is
remembered between calls and nothing is asked of a model.
"""

from __future__ import annotations

from typing import Final

from bot.telegram.html import escape, one_line
from bot.telegram.states import clock
from runtime.domain.approval import Approval, Rejected
from runtime.domain.effect import Command, Observed, Unknown
from runtime.domain.event import Event
from runtime.domain.job import Job
from runtime.domain.operation import Operation
from runtime.domain.revision import RevisionKind
from runtime.domain.values import Scope, short
from runtime.ports import Ask, Reads
from runtime.stores.collections import (
    APPROVALS,
    ARTIFACTS,
    COMMANDS,
    EVENTS,
    MODEL_CALLS,
    OPERATIONS,
    RECEIPTS,
    REVISIONS,
    VERIFICATIONS,
)

OPERATIONS_MAX: Final = 60
CALLS_MAX: Final = 30
REVISIONS_MAX: Final = 20
RECORDS_MAX: Final = 20
CAUSES_MAX: Final = 8
KINDS: Final[tuple[RevisionKind, ...]] = ("analysis", "strategy", "draft", "review")


async def lineage(reads: Reads, scope: Scope, job: Job) -> list[str]:
    """The lines of a job's lineage, oldest first."""
    lines = [f"<b>Why · job {job.number}</b> <code>{escape(job.id)}</code>"]
    page = await reads.find(
        Ask(OPERATIONS, "of_job", scope, equals=(job.id,), limit=OPERATIONS_MAX)
    )
    operations = [row.record for row in page.rows]
    lines += await _birth(reads, scope, operations[0] if operations else None)
    lines += await _source(reads, scope, job)
    for operation in operations:
        lines.append(_operation(operation))
        lines += await _calls(reads, scope, operation)
    if page.cursor is not None:
        lines.append(f"… more than {OPERATIONS_MAX} operations")
    lines += await _revisions(reads, scope, job)
    lines += await _decisions(reads, scope, job)
    lines += await _effects(reads, scope, job)
    return lines


async def _birth(reads: Reads, scope: Scope, first: Operation | None) -> list[str]:
    """The event and the operations that led to the job's first operation."""
    chain: list[str] = []
    cause = None if first is None else first.cause
    for _ in range(CAUSES_MAX):
        operation = None if cause is None else await reads.get(OPERATIONS.key(scope, cause))
        if operation is None:
            break
        chain.insert(0, _operation(operation))
        if operation.event is not None:
            event = await reads.get(EVENTS.key(scope, operation.event))
            chain.insert(0, _event(event) if event else "Event: not here any more")
            break
        cause = operation.cause
    return chain


def _event(event: Event) -> str:
    return (
        f"Event {escape(event.source)} {escape(event.source_id)} · {clock(event.received_at)} · "
        f"payload {short(event.payload_digest)} · delivered {event.deliveries} times · "
        f"{event.state.name}"
    )


def _operation(operation: Operation) -> str:
    return (
        f"Operation {escape(operation.kind)} · goal {short(operation.goal.digest)} · "
        f"epoch {operation.epoch} · {operation.state.name}"
    )


async def _source(reads: Reads, scope: Scope, job: Job) -> list[str]:
    lines = []
    for word, id_ in (("source", job.source.raw), ("text", job.source.text)):
        artifact = None if id_ is None else await reads.get(ARTIFACTS.key(scope, id_))
        if artifact is not None:
            digest = short(artifact.sha256) if artifact.sha256 else "none yet"
            lines.append(
                f"Artifact {word} · {artifact.bytes:,} bytes · sha256 {digest} · "
                f"{artifact.state.name}"
            )
    return lines


async def _calls(reads: Reads, scope: Scope, operation: Operation) -> list[str]:
    page = await reads.find(
        Ask(MODEL_CALLS, "of_operation", scope, equals=(operation.id,), limit=CALLS_MAX)
    )
    lines = [
        f"  model call {escape(row.record.step)} · {escape(row.record.thought.model)} · "
        f"projection {short(row.record.projection)} · epoch {row.record.epoch}"
        for row in page.rows
    ]
    return [*lines, "  … more model calls"] if page.cursor is not None else lines


async def _revisions(reads: Reads, scope: Scope, job: Job) -> list[str]:
    lines: list[str] = []
    for kind in KINDS:
        head = job.heads.get(kind)
        last = 0 if head is None else head.number
        for number in range(max(1, last - REVISIONS_MAX + 1), last + 1):
            found = await reads.get(REVISIONS.key(scope, f"{job.id}:{kind}:{number}"))
            if found is not None:
                lines.append(
                    f"Revision {kind} {number} · digest {short(found.digest)} · "
                    f"by {escape(found.author)} · {found.trust.value}"
                )
    return lines


async def _decisions(reads: Reads, scope: Scope, job: Job) -> list[str]:
    page = await reads.find(Ask(APPROVALS, "of_job", scope, equals=(job.id,), limit=RECORDS_MAX))
    return [line for row in page.rows for line in _approval(row.record)]


def _approval(approval: Approval) -> list[str]:
    subject = f"{approval.subject.kind} {approval.subject.number}"
    asked = f"digest {short(approval.digest)} · policy {approval.policy_version}"
    lines = [f"Approval of {approval.kind} · {subject} · {asked} · {approval.state.name}"]
    lines += [
        f"  vote {vote.verdict} by {escape(vote.display)} ({escape(vote.person)}) · "
        f"{clock(vote.at)} · for {short(vote.digest)} · event {short(vote.id)}"
        for vote in approval.votes
    ]
    if isinstance(approval.state, Rejected) and approval.state.reason:
        lines.append(f"  reason: {escape(one_line(approval.state.reason, 300))}")
    return lines


async def _effects(reads: Reads, scope: Scope, job: Job) -> list[str]:
    commands = await reads.find(Ask(COMMANDS, "of_job", scope, equals=(job.id,), limit=RECORDS_MAX))
    lines = [_command(row.record) for row in commands.rows]
    receipts = await reads.find(Ask(RECEIPTS, "of_job", scope, equals=(job.id,), limit=RECORDS_MAX))
    for row in receipts.rows:
        receipt = row.record
        content = f" · content {short(receipt.content_digest)}" if receipt.content_digest else ""
        lines.append(
            f"Receipt · {receipt.outcome} by {receipt.origin} · {clock(receipt.observed_at)} · "
            f"terms {short(receipt.terms_digest)}{content} · "
            f"{escape(one_line(receipt.reference, 200))}"
        )
    looks = await reads.find(
        Ask(VERIFICATIONS, "of_job", scope, equals=(job.id,), limit=RECORDS_MAX)
    )
    for found in looks.rows:
        look = found.record
        word = "verified" if look.verified else "NOT verified"
        lines.append(
            f"Verification · {word} · {clock(look.at)} · {escape(look.method)} · "
            f"{escape(one_line(look.evidence, 300))}"
        )
    return lines


def _command(command: Command) -> str:
    state = command.state
    detail = ""
    if isinstance(state, Observed):
        detail = " by reconciliation" if state.reconciled else " directly"
    elif isinstance(state, Unknown):
        detail = f" since {clock(state.at)}"
    return (
        f"Command {escape(command.terms.effect)} · terms {short(command.terms_digest)} · "
        f"attempt {command.attempt} · policy {command.policy_version} · {state.name}{detail}"
    )
