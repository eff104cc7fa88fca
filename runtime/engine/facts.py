"""The consequential facts of a snapshot, as the compiler's inputs name them. Pure.

Leases, attempts and times of work stay out: they may differ between two compilations of one state.
"""

from __future__ import annotations

from typing import Any

from runtime.domain.canonical import canonical_digest
from runtime.domain.effect import unresolved
from runtime.domain.inputs import (
    ApprovalFacts,
    EffectFacts,
    JobFacts,
    OperationFacts,
    PolicyFacts,
    ReceiptFacts,
    VerificationFacts,
)
from runtime.domain.job import Job
from runtime.domain.operation import Operation
from runtime.domain.policy import Policy
from runtime.domain.values import Tenant
from runtime.engine.snapshot import Snapshot


def facts_of(taken: Snapshot, tenant: Tenant) -> dict[str, Any]:
    """The authority fields of `Inputs`."""
    job = taken.job
    return {
        "tenant": tenant,
        "operation": _operation(taken.operation),
        "job": None if job is None else _job(job),
        "policy": None if taken.policy is None else _policy(taken.policy),
        "approvals": _approvals(taken),
        "effects": _effects(taken),
        "revisions": () if job is None else tuple(job.heads[kind] for kind in sorted(job.heads)),
        "receipts": _receipts(taken),
        "verifications": _verifications(taken),
    }


def _operation(operation: Operation) -> OperationFacts:
    return OperationFacts(
        id=operation.id,
        epoch=operation.epoch,
        kind=operation.kind,
        goal_kind=operation.goal.kind,
        goal_version=operation.goal.version,
        goal_digest=operation.goal.digest,
        acceptance=operation.acceptance,
    )


def _job(job: Job) -> JobFacts:
    return JobFacts(
        id=job.id,
        number=job.number,
        stage=job.stage,
        state=job.state.name,
        source=job.source.text,
        source_digest=job.source.text_digest,
    )


def _policy(policy: Policy) -> PolicyFacts:
    return PolicyFacts(
        version=policy.version,
        digest=canonical_digest(policy),
        allowed_effects=policy.allowed_effects,
        approvals_needed=policy.approvals_needed,
        blocked_terms=policy.blocked_terms,
    )


def _approvals(taken: Snapshot) -> tuple[ApprovalFacts, ...]:
    return tuple(
        ApprovalFacts(
            id=approval.id,
            kind=approval.kind,
            state=approval.state.name,
            digest=approval.digest,
            subject=approval.subject.id,
            needed=approval.needed,
            policy_version=approval.policy_version,
        )
        for approval in taken.approvals
    )


def _effects(taken: Snapshot) -> tuple[EffectFacts, ...]:
    return tuple(
        EffectFacts(
            id=command.id,
            effect=command.terms.effect,
            state=command.state.name,
            attempt=command.attempt,
            terms_digest=command.terms_digest,
        )
        for command in taken.commands
        if unresolved(command)
    )


def _receipts(taken: Snapshot) -> tuple[ReceiptFacts, ...]:
    return tuple(
        ReceiptFacts(
            id=receipt.id,
            command=receipt.command,
            effect=receipt.effect,
            outcome=receipt.outcome,
            origin=receipt.origin,
            content_digest=receipt.content_digest,
        )
        for receipt in taken.receipts
    )


def _verifications(taken: Snapshot) -> tuple[VerificationFacts, ...]:
    return tuple(
        VerificationFacts(
            id=look.id, receipt=look.receipt, verified=look.verified, method=look.method
        )
        for look in taken.verifications
    )
