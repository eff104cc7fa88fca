"""Receipts, verifications and late answers: what happened, how we know, and a second look.

Keeps INV-7: a receipt is made only from an observation or a human resolution, says which, and never
changes (stores only ever `Create` it).
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Final, Literal

from pydantic import Field

from runtime.domain.effect import Answer, AnswerApplied, Command, Finding, Observed
from runtime.domain.operation import Refused
from runtime.domain.values import Digest, Fence, Id, Record, UtcTime

EVIDENCE_CHARS_MAX: Final = 2_000


class Receipt(Record):
    """Immutable. `origin` says how we know."""

    id: Id
    job: Id
    command: Id
    effect: str
    terms_digest: Digest
    outcome: Literal["applied", "rejected"]
    origin: Literal["observation", "reconciliation", "human"]
    reference: str
    content_digest: Digest | None
    detail: str
    operation: Id
    epoch: int
    observed_at: UtcTime
    at: UtcTime


class Verification(Record):
    """A second look by another path. `id` carries the look's number: a repeat is a new record.

    `digest` is of what the look found; it must equal the receipt's `content_digest`, if both exist.
    """

    id: Id
    receipt: Id
    job: Id
    verified: bool
    method: str
    evidence: str
    digest: Digest | None = None
    operation: Id
    at: UtcTime


def receipt_id(command: str) -> str:
    """One command has at most one receipt."""
    return f"{command}:receipt"


def receive(command: Command, now: datetime) -> Receipt | Refused:
    """The receipt that follows from an observed command."""
    state = command.state
    if not isinstance(state, Observed):
        return Refused("a receipt comes only from an observation", state.name)
    answer = state.answer
    return Receipt(
        id=receipt_id(command.id),
        job=command.job,
        command=command.id,
        effect=command.terms.effect,
        terms_digest=command.terms_digest,
        outcome=answer.name,
        origin="reconciliation" if state.reconciled else "observation",
        reference=answer.reference if isinstance(answer, AnswerApplied) else "",
        content_digest=answer.digest if isinstance(answer, AnswerApplied) else None,
        detail=answer.detail if isinstance(answer, AnswerApplied) else answer.reason,
        operation=command.holder.operation,
        epoch=command.holder.epoch,
        observed_at=state.at,
        at=now,
    )


def verify(
    receipt: Receipt, finding: Finding, operation: str, look: int, now: datetime
) -> Verification:
    """The stored result of a second look.

    The look is compared with the receipt here, so that no connector judges itself: another digest
    than the receipt's is a failed verification, whatever the connector says.
    """
    differs = (
        receipt.content_digest is not None
        and finding.digest is not None
        and finding.digest != receipt.content_digest
    )
    evidence = finding.evidence
    if differs:
        evidence = f"The digest differs from the receipt's. {evidence}"[:EVIDENCE_CHARS_MAX]
    return Verification(
        id=f"{receipt.id}:look:{look}",
        receipt=receipt.id,
        job=receipt.job,
        verified=finding.ok and not differs and receipt.outcome == "applied",
        method=finding.method,
        evidence=evidence,
        digest=finding.digest,
        operation=operation,
        at=now,
    )


class LateAnswer(Record):
    """What a stale worker still received: evidence for the reconciler, never an outcome."""

    id: Id
    command: Id
    attempt: int
    answer: Annotated[Answer, Field(discriminator="name")]
    operation: Id
    epoch: int
    at: UtcTime


def late_answer(command: Command, fence: Fence, answer: Answer, now: datetime) -> LateAnswer:
    """The evidence that a worker leaves whose fence was lost while it sent."""
    return LateAnswer(
        id=f"{command.id}:late:{command.attempt}:{fence.epoch}",
        command=command.id,
        attempt=command.attempt,
        answer=answer,
        operation=fence.operation,
        epoch=fence.epoch,
        at=now,
    )
