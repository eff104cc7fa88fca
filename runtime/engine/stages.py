"""Stages in the store: what every stage handler shares.

Finishing a stage's operation and creating the next one are one commit; IDs follow from the job and
the stage, so that a repeated stage creates nothing twice. A stage whose job has stopped meanwhile
ends its operation without doing anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from runtime.domain import job as jobs
from runtime.domain import operation as operations
from runtime.domain.approval import Approval
from runtime.domain.job import Job, Running, Stage
from runtime.domain.operation import Goal, Operation, OperationState, Pending, Replay, Waiting
from runtime.domain.values import Scope, identity
from runtime.engine.marks import dirty
from runtime.engine.work import Step, Work
from runtime.errors import InvariantBroken
from runtime.ports import Create, Put, Reads, Write
from runtime.stores.collections import JOBS, OPERATIONS

ACCEPTANCE: Final[dict[Stage, tuple[str, ...]]] = {
    "read": ("the whole source is stored as text", "what could not be read is refused in words"),
    "analyse": ("each quote is in the source at its position", "what was not read is listed"),
    "strategise": ("each point rests on a quote of the analysis",),
    "write": ("the strategy is approved", "each section rests on quotes of the analysis"),
    "review": ("the draft is checked against the source",),
    "export": (
        "exactly the approved draft is exported, once",
        "a receipt says how we know",
    ),
    "verify": ("a second look finds what the receipt says",),
}

REPLAY: Final[dict[Stage, Replay]] = {"export": "reconcile"}


def stage_operation(
    job: Job, stage: Stage, cause: Operation | None, now: datetime, waits: Approval | None = None
) -> Operation:
    """The operation of one stage of one job; waiting if a decision has to come first."""
    state: OperationState = (
        Pending(ready_at=now) if waits is None else Waiting(on=waits.id, until=waits.decide_by)
    )
    kind = f"stage.{stage}"
    heads = [job.heads[name].digest for name in sorted(job.heads)]
    acceptance = ACCEPTANCE[stage]
    return Operation(
        id=f"{job.id}:{stage}",
        kind=kind,
        goal=Goal(
            kind=kind,
            digest=identity(kind, job.id, job.source.text_digest or "", *heads, *acceptance),
        ),
        acceptance=acceptance,
        job=job.id,
        cause=None if cause is None else cause.id,
        subject=job.id,
        correlation=job.correlation,
        trace="" if cause is None else cause.trace,
        replay=REPLAY.get(stage, "safe"),
        created_at=now,
        state=state,
    )


async def current_job(reads: Reads, scope: Scope, operation: Operation) -> Job:
    """The operation's job.

    Raises:
        InvariantBroken: a stage operation without its job.
    """
    job = None if operation.job is None else await reads.get(JOBS.key(scope, operation.job))
    if job is None:
        raise InvariantBroken(invariant="INV-1", detail=f"{operation.id} has no job")
    return job


def on_stage(job: Job, stage: Stage) -> bool:
    """Whether the job still stands at this stage and runs."""
    return job.stage == stage and isinstance(job.state, Running)


def nothing_to_do(operation: Operation, job: Job, now: datetime) -> Step[None]:
    """End an operation whose stage is over or whose job has stopped."""
    return Step(None, (), operations.cancel(operation, f"the job is at {job.stage}", now))


def moved(
    scope: Scope, current: Operation, job: Job, following: Operation, now: datetime
) -> Step[None]:
    """The writes that end `current` and begin `following`, with the job as it is after."""
    carried = job.model_copy(update={"operation": following.id})
    return Step(
        None,
        (
            Put(JOBS.key(scope, job.id), carried),
            Create(OPERATIONS.key(scope, following.id), following),
            dirty(scope, "job", job.id, now, f"{current.id}:{current.epoch}:moved"),
        ),
        operations.succeed(current, now),
    )


async def stop_job(work: Work, reason: str) -> None:
    """The source or its result was refused for good: the job stops and says why."""

    async def body(reads: Reads, current: Operation) -> Step[None]:
        now = work.now()
        job = await current_job(reads, work.scope, current)
        stopped = jobs.stop(job, "failed", reason, now)
        return Step(
            None,
            put_job(work.scope, stopped, current, now),
            operations.fail(current, reason[:1_000], now),
        )

    await work.commit(body)


async def ask_person(work: Work, reason: str) -> None:
    """The stage needs a person: the job says so and the operation waits for one."""

    async def body(reads: Reads, current: Operation) -> Step[None]:
        now = work.now()
        job = await current_job(reads, work.scope, current)
        needy = jobs.need_person(job, reason, now)
        return Step(
            None,
            put_job(work.scope, needy, current, now),
            operations.require_operator(current, reason[:1_000], now),
        )

    await work.commit(body)


def put_job(scope: Scope, job: Job, current: Operation, now: datetime) -> Sequence[Write]:
    """Store the job and mark it."""
    return (
        Put(JOBS.key(scope, job.id), job),
        dirty(scope, "job", job.id, now, f"{current.id}:{current.epoch}:{job.state.name}"),
    )
