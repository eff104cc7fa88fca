"""Rescue: what a person may do about work that cannot go on by itself.

Trying again gives the operation a fresh retry budget; its handler looks at what is stored before it
acts, so nothing that happened is repeated. Stopping ends the job without its result, and is refused
once something may have been sent: that is never called cancelled.
"""

from __future__ import annotations

from dataclasses import dataclass

from runtime.domain import effect
from runtime.domain import job as jobs
from runtime.domain import operation as operations
from runtime.domain.job import Job, NeedsPerson
from runtime.domain.operation import Operation, OperatorRequired
from runtime.domain.people import Member, Role, may
from runtime.engine.approvals import At
from runtime.engine.marks import dirty_operation
from runtime.ports import Put, Write
from runtime.stores.collections import COMMANDS, JOBS, OPERATIONS


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
    writes: list[Write] = [
        Put(OPERATIONS.key(at.scope, operation.id), operations.wake(operation, at.now))
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
    reason = f"stopped by {by.display if by else 'a person'}"
    writes: list[Write] = []
    if job is not None and job.command is not None:
        command = await at.reads.get(COMMANDS.key(at.scope, job.command))
        if command is not None and isinstance(command.state, effect.Prepared):
            withdrawn = effect.withdraw(command, reason, at.now)
            if not isinstance(withdrawn, operations.Refused):
                writes.append(Put(COMMANDS.key(at.scope, command.id), withdrawn))
        elif command is not None and not isinstance(command.state, effect.Failed):
            sentence = "It was sent already; what was sent is never called cancelled."
            return Rescued(done=False, sentence=sentence)
    writes.append(
        Put(OPERATIONS.key(at.scope, operation.id), operations.cancel(operation, reason, at.now))
    )
    if job is not None:
        stopped = jobs.stop(job, "cancelled", reason, at.now)
        writes.append(Put(JOBS.key(at.scope, job.id), stopped))
    return _marked(at, operation, "It is stopped. Nothing more is done.", writes)


async def _stuck(
    at: At, operation_id: str, by: Member | None
) -> tuple[Operation, Job | None] | Rescued:
    """The operation that waits for a person, and its job; or why there is nothing to do."""
    if not may(by, Role.APPROVER):
        return Rescued(done=False, sentence="Only approvers can decide this.")
    operation = await at.reads.get(OPERATIONS.key(at.scope, operation_id))
    if operation is None or not isinstance(operation.state, OperatorRequired):
        return SETTLED
    if operation.job is None:
        return operation, None
    job = await at.reads.get(JOBS.key(at.scope, operation.job))
    if job is None or not isinstance(job.state, jobs.Running | NeedsPerson):
        return SETTLED
    return operation, job


def _marked(at: At, operation: Operation, sentence: str, writes: list[Write]) -> Rescued:
    mark = dirty_operation(at.scope, operation, at.now, at.serial)
    return Rescued(done=True, sentence=sentence, writes=(*writes, mark))
