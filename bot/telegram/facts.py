"""Facts: the stored records behind one card, read in one transaction.

Keeps INV-17's first half: rendering is given records and nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass

from runtime.domain.approval import Approval
from runtime.domain.effect import Command
from runtime.domain.feed import NeedsYouItem
from runtime.domain.job import Job
from runtime.domain.operation import Operation
from runtime.domain.proposal import Analysis, Draft, Review, Strategy
from runtime.domain.receipt import Receipt, Verification
from runtime.domain.revision import Revision, RevisionKind, RevisionRef
from runtime.domain.values import Scope
from runtime.ports import Ask, Reads, Store
from runtime.stores.collections import (
    APPROVALS,
    COMMANDS,
    ITEMS,
    JOBS,
    OPERATIONS,
    RECEIPTS,
    REVISIONS,
    VERIFICATIONS,
)

ITEMS_MAX = 20


@dataclass(frozen=True, slots=True)
class JobFacts:
    """One job and what stands around it. `approval` is its current one."""

    job: Job
    analysis: Revision | None
    strategy: Revision | None
    draft: Revision | None
    review: Revision | None
    approval: Approval | None
    command: Command | None
    receipt: Receipt | None
    verification: Verification | None
    operation: Operation | None
    items: tuple[NeedsYouItem, ...]


@dataclass(frozen=True, slots=True)
class DecisionFacts:
    """One approval with exactly the revision it was given for. `successor` replaced it, if any."""

    around: JobFacts
    approval: Approval
    subject: Revision
    successor: Revision | None

    @property
    def command(self) -> Command | None:
        """The command that this approval allowed."""
        command = self.around.command
        return command if command is not None and command.approval == self.approval.id else None


async def job_facts(reads: Reads | Store, scope: Scope, job_id: str) -> JobFacts | None:
    """Everything a job's card shows; None if there is no such job."""
    job = await reads.get(JOBS.key(scope, job_id))
    if job is None:
        return None
    command = await reads.get(COMMANDS.key(scope, job.command)) if job.command else None
    items = await reads.find(Ask(ITEMS, "of_job", scope, equals=(job.id, True), limit=ITEMS_MAX))
    verification = None
    if job.verification:
        verification = await reads.get(VERIFICATIONS.key(scope, job.verification))
    return JobFacts(
        job=job,
        analysis=await _head(reads, scope, job, "analysis"),
        strategy=await _head(reads, scope, job, "strategy"),
        draft=await _head(reads, scope, job, "draft"),
        review=await _head(reads, scope, job, "review"),
        approval=await reads.get(APPROVALS.key(scope, job.approval)) if job.approval else None,
        command=command,
        receipt=await reads.get(RECEIPTS.key(scope, job.receipt)) if job.receipt else None,
        verification=verification,
        operation=await reads.get(OPERATIONS.key(scope, job.operation)) if job.operation else None,
        items=tuple(row.record for row in items.rows),
    )


async def decision_facts(
    reads: Reads | Store, scope: Scope, approval_id: str
) -> DecisionFacts | None:
    """Everything an approval's card shows; None if a record of it is missing."""
    approval = await reads.get(APPROVALS.key(scope, approval_id))
    if approval is None:
        return None
    around = await job_facts(reads, scope, approval.job)
    subject = await revision(reads, scope, approval.subject)
    if around is None or subject is None:
        return None
    current = around.draft if approval.kind == "effect" else around.strategy
    newer = current is not None and current.number > subject.number
    return DecisionFacts(around, approval, subject, current if newer else None)


async def revision(reads: Reads | Store, scope: Scope, ref: RevisionRef) -> Revision | None:
    """The revision that a reference names, if it is exactly that one."""
    found = await reads.get(REVISIONS.key(scope, ref.id))
    return found if found is not None and found.digest == ref.digest else None


async def _head(
    reads: Reads | Store, scope: Scope, job: Job, kind: RevisionKind
) -> Revision | None:
    ref = job.heads.get(kind)
    return None if ref is None else await revision(reads, scope, ref)


def analysis_of(facts: JobFacts) -> Analysis | None:
    """The analysis, typed."""
    body = facts.analysis.body if facts.analysis else None
    return body if isinstance(body, Analysis) else None


def strategy_of(facts: JobFacts) -> Strategy | None:
    """The strategy, typed."""
    body = facts.strategy.body if facts.strategy else None
    return body if isinstance(body, Strategy) else None


def review_of(facts: JobFacts) -> Review | None:
    """The review, typed, if it is about the current draft."""
    revision_ = facts.review
    if revision_ is None or facts.draft is None or facts.draft.ref not in revision_.based_on:
        return None
    return revision_.body if isinstance(revision_.body, Review) else None


def draft_of(found: Revision | None) -> Draft | None:
    """A revision's draft, typed."""
    return found.body if found is not None and isinstance(found.body, Draft) else None
