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
class Moment:
    """When, and under which tag the writes mark what they change."""

    now: datetime
    serial: str


async def vote(
    reads: Reads, scope: Scope, approval_id: str, cast: Vote, moment: Moment
) -> tuple[Voting, list[Write]]:
    """Count a vote by `cast.person`; a decision wakes the operation that waits for it."""
    stored = await reads.get(APPROVALS.key(scope, approval_id))
    if stored is None:
        return MISSING, []
    voter = await reads.get(MEMBERS.key(scope, cast.person))
    voting = approvals.vote(stored, voter, cast, moment.now)
    if not isinstance(voting, Decided):
        return voting, []
    writes = _changed(scope, voting.approval, moment)
    if not isinstance(voting.approval.state, Requested):
        writes.extend(await _wake(reads, scope, voting.approval, moment.now))
    return voting, writes


async def hold(
    reads: Reads, scope: Scope, approval_id: str, person: str, shown: str, moment: Moment
) -> tuple[Voting, list[Write]]:
    """Hold an approval for an edit by `person`."""
    stored = await reads.get(APPROVALS.key(scope, approval_id))
    if stored is None:
        return MISSING, []
    editor = await reads.get(MEMBERS.key(scope, person))
    voting = approvals.hold(stored, editor, shown, moment.now)
    writes = _changed(scope, voting.approval, moment) if isinstance(voting, Decided) else []
    return voting, writes


async def unhold(
    reads: Reads, scope: Scope, approval_id: str, person: str, moment: Moment
) -> list[Write]:
    """Let go of an approval whose edit was abandoned."""
    stored = await reads.get(APPROVALS.key(scope, approval_id))
    if stored is None:
        return []
    freed = approvals.unhold(stored, person)
    return _changed(scope, freed, moment) if freed != stored else []


async def explain(
    reads: Reads, scope: Scope, approval_id: str, person: str, reason: str, moment: Moment
) -> list[Write]:
    """Add the reason for a rejection, given by the person who rejected."""
    stored = await reads.get(APPROVALS.key(scope, approval_id))
    if stored is None:
        return []
    explained = approvals.explain_rejection(stored, person, reason)
    return _changed(scope, explained, moment) if explained != stored else []


def request(
    job: Job,
    subject: Revision,
    terms: Terms | None,
    policy: Policy,
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
    reads: Reads,
    scope: Scope,
    approval_id: str,
    editor: tuple[str, str],
    revision: Revision,
    terms: Terms,
    moment: Moment,
) -> tuple[Voting, list[Write]]:
    """Finish an edit: a new revision with a new request supersedes the old one.

    Args:
        reads: the transaction.
        scope: the tenant.
        approval_id: the request that `editor` holds.
        editor: the person's ID and display name.
        revision: the edited draft, made by `runtime.domain.revision.revise`.
        terms: the new terms, whose digest the new request carries.
        moment: when.
    """
    person, display = editor
    stored = await reads.get(APPROVALS.key(scope, approval_id))
    if stored is None:
        return MISSING, []
    member = await reads.get(MEMBERS.key(scope, person))
    voting = approvals.hold(stored, member, stored.digest, moment.now)
    job = await reads.get(JOBS.key(scope, stored.job))
    waiting = await reads.get(OPERATIONS.key(scope, stored.operation))
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
            "requested_at": moment.now,
            "state": Requested(),
        }
    )
    old = approvals.supersede(stored, person, display, successor.id, moment.now)
    if not isinstance(old.state, Superseded):
        return VoteRefused("decided", "This request is closed."), []
    heads = {**job.heads, revision.kind: revision.ref}
    moved = job.model_copy(
        update={"heads": heads, "approval": successor.id, "updated_at": moment.now}
    )
    rewaiting = waiting.model_copy(
        update={"state": waiting.state.model_copy(update={"on": successor.id})}
    )
    return Decided(successor), [
        Create(REVISIONS.key(scope, revision.id), revision),
        Create(APPROVALS.key(scope, successor.id), successor),
        Put(JOBS.key(scope, job.id), moved),
        Put(OPERATIONS.key(scope, waiting.id), rewaiting),
        *_changed(scope, old, moment),
        dirty(scope, "approval", successor.id, moment.now, moment.serial),
    ]


def _changed(scope: Scope, approval: Approval, moment: Moment) -> list[Write]:
    return [
        Put(APPROVALS.key(scope, approval.id), approval),
        dirty(scope, "approval", approval.id, moment.now, moment.serial),
        dirty(scope, "job", approval.job, moment.now, moment.serial),
    ]


async def _wake(reads: Reads, scope: Scope, approval: Approval, now: datetime) -> list[Write]:
    """The operation that waits for this decision becomes pending, in the same commit."""
    waiting: Operation | None = await reads.get(OPERATIONS.key(scope, approval.operation))
    if waiting is None or not isinstance(waiting.state, Waiting):
        return []
    return [Put(OPERATIONS.key(scope, waiting.id), wake(waiting, now))]
