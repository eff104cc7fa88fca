"""Approvals in the store: each decision by a person is one set of writes in the caller's commit.

Keeps INV-15: the membership is read in the same transaction, the vote is stored in the approval
itself, and the operation that waits for the decision becomes pending in the same commit. Nothing is
decided here: `runtime/domain/approval.py` decides.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from runtime.domain import approval as approvals
from runtime.domain.approval import (
    Approval,
    Decided,
    Requested,
    Superseded,
    Vote,
    VoteRefused,
    Voting,
)
from runtime.domain.effect import Terms
from runtime.domain.job import Job
from runtime.domain.operation import Operation, Waiting, wake
from runtime.domain.policy import Policy
from runtime.domain.revision import Revision
from runtime.domain.values import Scope
from runtime.engine.marks import dirty
from runtime.ports import Create, Put, Reads, Write
from runtime.stores.collections import APPROVALS, JOBS, MEMBERS, OPERATIONS, REVISIONS

MISSING = VoteRefused("decided", "This request is not known here.")


@dataclass(frozen=True, slots=True)
class At:
    """Where a decision happens: the transaction, the tenant, the time, and the tag of its marks."""

    reads: Reads
    scope: Scope
    now: datetime
    serial: str


async def vote(at: At, approval_id: str, cast: Vote) -> tuple[Voting, list[Write]]:
    """Count a vote by `cast.person`; a decision wakes the operation that waits for it."""
    stored = await at.reads.get(APPROVALS.key(at.scope, approval_id))
    if stored is None:
        return MISSING, []
    voter = await at.reads.get(MEMBERS.key(at.scope, cast.person))
    voting = approvals.vote(stored, voter, cast, at.now)
    if not isinstance(voting, Decided):
        return voting, []
    writes = _changed(at, voting.approval)
    if not isinstance(voting.approval.state, Requested):
        writes.extend(await _wake(at, voting.approval))
    return voting, writes


async def hold(at: At, approval_id: str, person: str, shown: str) -> tuple[Voting, list[Write]]:
    """Hold an approval for an edit by `person`."""
    stored = await at.reads.get(APPROVALS.key(at.scope, approval_id))
    if stored is None:
        return MISSING, []
    editor = await at.reads.get(MEMBERS.key(at.scope, person))
    voting = approvals.hold(stored, editor, shown, at.now)
    writes = _changed(at, voting.approval) if isinstance(voting, Decided) else []
    return voting, writes


async def unhold(at: At, approval_id: str, person: str) -> list[Write]:
    """Let go of an approval whose edit was abandoned."""
    stored = await at.reads.get(APPROVALS.key(at.scope, approval_id))
    if stored is None:
        return []
    freed = approvals.unhold(stored, person)
    return _changed(at, freed) if freed != stored else []


async def explain(at: At, approval_id: str, person: str, reason: str) -> list[Write]:
    """Add the reason for a rejection, given by the person who rejected."""
    stored = await at.reads.get(APPROVALS.key(at.scope, approval_id))
    if stored is None:
        return []
    explained = approvals.explain_rejection(stored, person, reason)
    return _changed(at, explained) if explained != stored else []


def request(
    job: Job,
    subject: Revision,
    policy: Policy,
    *,
    terms: Terms | None,
    operation: str,
    now: datetime,
) -> Approval:
    """A new request. Its ID follows from its subject, so that a repeated stage makes it once."""
    kind = "strategy" if terms is None else "effect"
    return Approval(
        id=f"{subject.id}:approval",
        job=job.id,
        kind=kind,
        subject=subject.ref,
        digest=subject.digest if terms is None else terms.digest,
        terms=terms,
        policy_version=policy.version,
        needed=policy.approvals_needed,
        operation=operation,
        requested_at=now,
        decide_by=now + policy.decide_within,
        valid_for=policy.valid_for,
    )


async def replace(
    at: At, approval_id: str, editor: tuple[str, str], revision: Revision, terms: Terms
) -> tuple[Voting, list[Write]]:
    """Finish an edit: a new revision with a new request supersedes the old one.

    Args:
        at: the transaction.
        approval_id: the request that `editor` holds.
        editor: the person's ID and display name.
        revision: the edited draft, made by `runtime.domain.revision.revise`.
        terms: the new terms, whose digest the new request carries.
    """
    person, display = editor
    stored = await at.reads.get(APPROVALS.key(at.scope, approval_id))
    if stored is None:
        return MISSING, []
    member = await at.reads.get(MEMBERS.key(at.scope, person))
    voting = approvals.hold(stored, member, stored.digest, at.now)
    job = await at.reads.get(JOBS.key(at.scope, stored.job))
    waiting = await at.reads.get(OPERATIONS.key(at.scope, stored.operation))
    if not isinstance(voting, Decided) or job is None or waiting is None:
        return (voting if isinstance(voting, VoteRefused) else MISSING), []
    if not isinstance(waiting.state, Waiting):
        return VoteRefused("decided", "The work has moved on since."), []
    successor = stored.model_copy(
        update={
            "id": f"{revision.id}:approval",
            "subject": revision.ref,
            "digest": terms.digest,
            "terms": terms,
            "votes": (),
            "requested_at": at.now,
            "state": Requested(),
        }
    )
    old = approvals.supersede(stored, person, display, successor.id, at.now)
    if not isinstance(old.state, Superseded):
        return VoteRefused("decided", "This request is closed."), []
    heads = {**job.heads, revision.kind: revision.ref}
    moved = job.model_copy(update={"heads": heads, "approval": successor.id, "updated_at": at.now})
    rewaiting = waiting.model_copy(
        update={"state": waiting.state.model_copy(update={"on": successor.id})}
    )
    return Decided(successor), [
        Create(REVISIONS.key(at.scope, revision.id), revision),
        Create(APPROVALS.key(at.scope, successor.id), successor),
        Put(JOBS.key(at.scope, job.id), moved),
        Put(OPERATIONS.key(at.scope, waiting.id), rewaiting),
        *_changed(at, old),
    ]


def _changed(at: At, approval: Approval) -> list[Write]:
    return [
        Put(APPROVALS.key(at.scope, approval.id), approval),
        dirty(at.scope, "job", approval.job, at.now, at.serial),
    ]


async def _wake(at: At, approval: Approval) -> list[Write]:
    """The operation that waits for this decision becomes pending, in the same commit."""
    waiting: Operation | None = await at.reads.get(OPERATIONS.key(at.scope, approval.operation))
    if waiting is None or not isinstance(waiting.state, Waiting):
        return []
    return [Put(OPERATIONS.key(at.scope, waiting.id), wake(waiting, at.now))]
