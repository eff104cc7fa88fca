"""Rescue: what a person may do about work that cannot go on by itself.

Trying again gives the operation a fresh retry budget; its handler looks at what is stored before
it acts, so nothing that happened is repeated. An export whose approval is spent, past its validity
or not enough any more (a voter lost the role, the policy asks for more people) needs a new decision
first: it is asked for, and nothing is sent without it (INV-6).
Stopping ends the job without its result, and is refused once something may have been sent: that is
never called cancelled.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal

from runtime.domain import approval as approvals
from runtime.domain import effect
from runtime.domain import job as jobs
from runtime.domain import operation as operations
from runtime.domain.admission import Case, insufficient
from runtime.domain.approval import Approval, Requested
from runtime.domain.job import Job, NeedsPerson
from runtime.domain.operation import Failed, Operation, OperatorRequired
from runtime.domain.people import Member, Role, may
from runtime.domain.policy import Policy
from runtime.engine.approvals import At
from runtime.engine.effects import EXPORT
from runtime.engine.marks import dirty_operation
from runtime.engine.stages import stage_operation
from runtime.ports import Create, Put, Write
from runtime.stores.collections import (
    APPROVALS,
    COMMANDS,
    JOBS,
    MEMBERS,
    OPERATIONS,
    POLICIES,
)


@dataclass(frozen=True, slots=True)
class Rescued:
    """What was done about it, in words for the person, with its writes."""

    done: bool
    sentence: str
    writes: tuple[Write, ...] = ()


SETTLED = Rescued(done=False, sentence="Nothing waits here any more.")


async def retry(at: At, operation_id: str, by: Member | None) -> Rescued:
    """Let the operation try again."""
    found = await _stuck(at, operation_id, by)
    if isinstance(found, Rescued):
        return found
    operation, job = found
    if job is not None and operation.kind == EXPORT:
        asked = await _ask_again(at, operation, job, by)
        if asked is not None:
            return asked
    if isinstance(operation.state, Failed):
        return SETTLED
    writes: list[Write] = [
        Put(OPERATIONS.key(at.scope, operation.id), operations.rescue(operation, at.now))
    ]
    if job is not None:
        writes.append(Put(JOBS.key(at.scope, job.id), jobs.go_on(job, at.now)))
    return _marked(at, operation, "It is tried again.", writes)


async def give_up(at: At, operation_id: str, by: Member | None) -> Rescued:
    """Stop the job (or the operation that has none) without a result."""
    found = await _stuck(at, operation_id, by)
    if isinstance(found, Rescued):
        return found
    operation, job = found
    who = by.display if by else "a person"
    reason, sentence = f"stopped by {who}", "It is stopped. Nothing more is done."
    how: Literal["cancelled", "failed"] = "cancelled"
    writes: list[Write] = []
    if job is not None and job.command is not None:
        command = await at.reads.get(COMMANDS.key(at.scope, job.command))
        if command is not None and isinstance(command.state, effect.Prepared):
            withdrawn = effect.withdraw(command, reason, at.now)
            if not isinstance(withdrawn, operations.Refused):
                writes.append(Put(COMMANDS.key(at.scope, command.id), withdrawn))
        elif command is not None and isinstance(command.state, effect.Applied):
            reason, how = f"it was exported, but not verified; closed by {who}", "failed"
            sentence = "The job is closed. What was exported stays exported, and not verified."
        elif command is not None and not isinstance(command.state, effect.Failed):
            unknown = "It may have been sent; what was sent is never called cancelled."
            return Rescued(done=False, sentence=unknown)
    if isinstance(operation.state, OperatorRequired):
        ended = operations.cancel(operation, reason, at.now)
        writes.append(Put(OPERATIONS.key(at.scope, operation.id), ended))
    if job is not None:
        stopped = jobs.stop(job, how, reason, at.now)
        writes.append(Put(JOBS.key(at.scope, job.id), stopped))
    return _marked(at, operation, sentence, writes)


async def _ask_again(at: At, operation: Operation, job: Job, by: Member | None) -> Rescued | None:
    """A new request for the same draft and terms, if the old decision cannot carry the effect."""
    old = await at.reads.get(APPROVALS.key(at.scope, job.approval or ""))
    if old is None or isinstance(old.state, Requested):
        return None
    command = None
    if job.command is not None:
        command = await at.reads.get(COMMANDS.key(at.scope, job.command))
    policy = await at.reads.get(POLICIES.key(at.scope, "current")) or Policy(since=at.now)
    writes: list[Write] = []
    if command is None or isinstance(command.state, effect.Prepared):
        reason = await _insufficient(at, Case(job, old, policy, {}, command))
        if reason is None:
            return None
        withdrawn = None if command is None else effect.withdraw(command, reason, at.now)
        if isinstance(withdrawn, effect.Command):
            writes.append(Put(COMMANDS.key(at.scope, withdrawn.id), withdrawn))
    elif not isinstance(command.state, effect.Failed):
        return None
    asked = _asked(old, operation, policy, at.now)
    if by is not None:
        closed = approvals.supersede(old, by.id, by.display, asked.id, at.now)
        writes.append(Put(APPROVALS.key(at.scope, old.id), closed))
    back = jobs.return_to(jobs.go_on(job, at.now), "decide_draft", at.now)
    back = back.model_copy(
        update={
            "approval": asked.id,
            "command": None,
            "receipt": None,
            "operation": asked.operation,
        }
    )
    waiting = stage_operation(back, "export", operation, at.now, asked)
    waiting = waiting.model_copy(update={"id": asked.operation})
    writes += [
        Create(APPROVALS.key(at.scope, asked.id), asked),
        Create(OPERATIONS.key(at.scope, waiting.id), waiting),
        Put(JOBS.key(at.scope, back.id), back),
    ]
    if isinstance(operation.state, OperatorRequired):
        ended = operations.cancel(operation, "decided anew", at.now)
        writes.append(Put(OPERATIONS.key(at.scope, operation.id), ended))
    return _marked(at, operation, "It needs a new decision; the card follows.", writes)


async def _insufficient(at: At, case: Case) -> str | None:
    """Why the decision does not suffice now, with the voters' roles as they are."""
    people = sorted({vote.person for vote in case.approval.votes})
    members = {person: await at.reads.get(MEMBERS.key(at.scope, person)) for person in people}
    return insufficient(replace(case, members=members), at.now)


def _asked(old: Approval, operation: Operation, policy: Policy, now: datetime) -> Approval:
    """The same question once more, under the policy of now."""
    return old.model_copy(
        update={
            "id": f"{old.id}:again",
            "operation": f"{operation.id}:again",
            "policy_version": policy.version,
            "needed": max(old.needed, policy.approvals_needed),
            "votes": (),
            "requested_at": now,
            "decide_by": now + (old.decide_by - old.requested_at),
            "state": Requested(),
        }
    )


async def _stuck(
    at: At, operation_id: str, by: Member | None
) -> tuple[Operation, Job | None] | Rescued:
    """The operation that waits for a person, and its job; or why there is nothing to do."""
    if not may(by, Role.APPROVER):
        return Rescued(done=False, sentence="Only approvers can decide this.")
    operation = await at.reads.get(OPERATIONS.key(at.scope, operation_id))
    if operation is None or not isinstance(operation.state, OperatorRequired | Failed):
        return SETTLED
    if operation.job is None:
        return operation, None
    job = await at.reads.get(JOBS.key(at.scope, operation.job))
    if job is None or not isinstance(job.state, jobs.Running | NeedsPerson):
        return SETTLED
    if isinstance(operation.state, Failed) and job.operation != operation.id:
        return SETTLED
    return operation, job


def _marked(at: At, operation: Operation, sentence: str, writes: list[Write]) -> Rescued:
    mark = dirty_operation(at.scope, operation, at.now, at.serial)
    return Rescued(done=True, sentence=sentence, writes=(*writes, mark))
