"""What a decision means for the operation that waited for it.

Keeps INV-15's last step: a stage goes on only from an approval that is approved, unexpired and the
job's current one, read in the same transaction; a rejection or an expiry stops the job, and
expiry is never yes.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from runtime.domain import approval as approvals
from runtime.domain import job as jobs
from runtime.domain import operation as operations
from runtime.domain.approval import (
    Approval,
    Approved,
    Consumed,
    Expired,
    Lapsed,
    Rejected,
    Requested,
    Revoked,
    Superseded,
    VoteRefused,
)
from runtime.domain.job import Job, Stage
from runtime.domain.operation import Operation
from runtime.engine.stages import current_job, nothing_to_do, on_stage, put_job
from runtime.engine.work import Step, Work
from runtime.errors import InvariantBroken
from runtime.ports import Put, Reads, Write
from runtime.stores.collections import APPROVALS

_UNUSED = {
    "expired": "nobody decided in time; nothing was done",
    "lapsed": "the approval was not used while it was valid; nothing was done",
    "revoked": "the approval was taken back; nothing was done",
}


async def decided(work: Work, stage: Stage) -> bool:
    """Whether the work goes on now. Otherwise the operation waits again or has ended.

    `stage` is the deciding one; a job that is past it was decided by an earlier attempt.
    """

    async def body(reads: Reads, current: Operation) -> Step[bool]:
        now = work.now()
        job = await current_job(reads, work.scope, current)
        if not on_stage(job, stage):
            if job.operation == current.id and isinstance(job.state, jobs.Running):
                return Step(True)
            ended = nothing_to_do(current, job, now)
            return Step(False, ended.writes, ended.operation)
        key = None if job.approval is None else APPROVALS.key(work.scope, job.approval)
        approval = None if key is None else await reads.get(key)
        if approval is None:
            raise InvariantBroken(invariant="INV-15", detail=f"{job.id} has no approval")
        return _follow(work, current, job, approvals.expire(approval, now), now)

    return await work.commit(body)


def _follow(
    work: Work, current: Operation, job: Job, approval: Approval, now: datetime
) -> Step[bool]:
    state = approval.state
    match state:
        case Requested():
            return Step(False, (), operations.wait(current, approval.id, approval.decide_by))
        case Approved() | Consumed():
            return _go_on(work, current, job, approval, now)
        case Rejected(display=display):
            reason = f"rejected by {display}"
            return _stop(work, current, jobs.stop(job, "rejected", reason, now), approval, now)
        case Expired() | Lapsed() | Revoked():
            stopped = jobs.stop(job, "expired", _UNUSED[state.name], now)
            return _stop(work, current, stopped, approval, now)
        case Superseded():
            raise InvariantBroken(
                invariant="INV-15", detail=f"{job.id} points at a superseded approval"
            )


def _go_on(
    work: Work, current: Operation, job: Job, approval: Approval, now: datetime
) -> Step[bool]:
    """Deciding is over. A strategy's approval is used here, an effect's at dispatch."""
    names = ", ".join(vote.display for vote in approval.votes if vote.verdict == "approve")
    writes: list[Write] = []
    if approval.kind == "strategy":
        used = approvals.consume(approval, current.id, now)
        if isinstance(used, VoteRefused):
            return _stop(
                work, current, jobs.stop(job, "expired", used.sentence, now), approval, now
            )
        writes.append(Put(APPROVALS.key(work.scope, approval.id), used))
    advanced = jobs.advance(job, f"by {names}", now)
    writes.extend(put_job(work.scope, advanced, current, now))
    return Step(True, tuple(writes))


def _stop(
    work: Work, current: Operation, stopped: Job, approval: Approval, now: datetime
) -> Step[bool]:
    writes: Sequence[Write] = (
        *put_job(work.scope, stopped, current, now),
        Put(APPROVALS.key(work.scope, approval.id), approval),
    )
    return Step(False, writes, operations.cancel(current, f"approval {approval.state.name}", now))
