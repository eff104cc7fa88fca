"""Effects in the store: the commits that several parts must make alike.

A dispatch may be lost under a living worker or found by a recovery scan, and an observation may
come from a send or from a reconciliation. Whoever notices makes the same writes with the same IDs,
by these functions. Keeps INV-6 (a lost dispatch becomes unknown, held by its reconciler) and INV-7
(this is the only place that creates a receipt).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from runtime.domain import effect as effects
from runtime.domain import job as jobs
from runtime.domain import operation as operations
from runtime.domain import receipt as receipts
from runtime.domain.effect import Command, Dispatched
from runtime.domain.job import Job, NeedsPerson
from runtime.domain.operation import Goal, Operation, Pending, Refused
from runtime.domain.receipt import Receipt
from runtime.domain.values import Fence, identity
from runtime.engine.approvals import At
from runtime.engine.marks import dirty
from runtime.engine.stages import ACCEPTANCE
from runtime.errors import InvariantBroken
from runtime.ports import Create, Put, Write
from runtime.stores.collections import COMMANDS, JOBS, OPERATIONS, RECEIPTS

EXPORT: Final = "stage.export"
VERIFY: Final = "stage.verify"
RECONCILE: Final = "effect.reconcile"

WAIT_AT_MOST: Final = timedelta(days=1)
"""How long an operation waits for its unknown command before it looks at it again by itself."""
LOOKS_MAX: Final = 5
"""How often a reconciler looks before a person is asked."""
VERIFY_ATTEMPTS_MAX: Final = 5
INTERRUPTED: Final = "The worker that sent it ended before an answer was stored."


def command_id(approval: str) -> str:
    """One approval has at most one command."""
    return f"{approval}:command"


def reconcile_id(command: Command) -> str:
    """One reconciliation per attempt: the same crash once, the next crash afresh."""
    return f"reconcile:{command.id}:{command.attempt}"


def verify_id(receipt: str) -> str:
    """One verify operation per receipt, whoever creates it."""
    return f"verify:{receipt}"


def command_writes(at: At, command: Command) -> list[Write]:
    """The command, with the marks of everything that shows it."""
    return [
        Put(COMMANDS.key(at.scope, command.id), command),
        dirty(at.scope, "job", command.job, at.now, at.serial),
    ]


def job_writes(at: At, job: Job) -> list[Write]:
    """The job and its mark."""
    return [
        Put(JOBS.key(at.scope, job.id), job),
        dirty(at.scope, "job", job.id, at.now, at.serial),
    ]


# --- a lost dispatch ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Lost:
    """What follows from a lost dispatch. `writes` hold all but `operation`'s own record."""

    command: Command
    operation: Operation
    reconcile: Operation
    writes: tuple[Write, ...]


def lost_dispatch(at: At, command: Command, operation: Operation, reason: str) -> Lost:
    """The commit of a dispatch without an answer, for the live path and for the scanner.

    Args:
        at: the transaction.
        command: as stored, dispatched.
        operation: the one that dispatched it, as stored, claimed.
        reason: in words for the operator.
    """
    lost = effects.lose(command, reason, at.now)
    reconcile = reconcile_operation(at, lost, operation)
    held = effects.hand_over(lost, Fence(operation=reconcile.id, epoch=reconcile.epoch))
    waiting = operations.wait(operation, command.id, at.now + WAIT_AT_MOST)
    writes = (
        *command_writes(at, held),
        Create(OPERATIONS.key(at.scope, reconcile.id), reconcile),
    )
    return Lost(held, waiting, reconcile, writes)


async def lost_of(at: At, operation: Operation) -> Lost | None:
    """The lost dispatch of an operation that nobody will claim again by itself, if it has one.

    Whoever parks a claimed export (its retries are spent) asks this first: a command that stayed
    dispatched behind a parked operation would be looked for by nobody (INV-19).
    """
    if operation.kind != EXPORT or operation.job is None:
        return None
    job = await at.reads.get(JOBS.key(at.scope, operation.job))
    if job is None or job.command is None:
        return None
    command = await at.reads.get(COMMANDS.key(at.scope, job.command))
    if command is None or not isinstance(command.state, Dispatched):
        return None
    mine = effects.take_over(command, operation.fence)
    return None if isinstance(mine, Refused) else lost_dispatch(at, mine, operation, INTERRUPTED)


def reconcile_operation(at: At, command: Command, cause: Operation) -> Operation:
    """The operation that finds out what became of a lost dispatch. It never executes."""
    return Operation(
        id=reconcile_id(command),
        kind=RECONCILE,
        goal=Goal(
            kind=RECONCILE,
            digest=identity(RECONCILE, command.id, str(command.attempt), command.terms_digest),
        ),
        acceptance=("it is known whether the effect happened, or a person is asked",),
        job=command.job,
        cause=cause.id,
        subject=command.id,
        correlation=cause.correlation,
        trace=cause.trace,
        replay="safe",
        attempts_max=LOOKS_MAX,
        created_at=at.now,
        state=Pending(ready_at=at.now),
    )


# --- an observation -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Settled:
    """What follows from an observation; the caller ends its own operation in the same commit."""

    receipt: Receipt
    command: Command
    job: Job
    writes: tuple[Write, ...]

    @property
    def applied(self) -> bool:
        """Whether the receipt says that it happened."""
        return self.receipt.outcome == "applied"


def settle_writes(at: At, command: Command, holder: Operation, job: Job) -> Settled:
    """Receipt, settled command, the job's next stage and the verify operation: one commit.

    Args:
        at: the transaction.
        command: as stored, observed, held by `holder`.
        holder: the operation whose fence holds the command.
        job: as stored.
    """
    receipt = receipts.receive(command, at.now)
    settled = effects.settle(command, holder.fence, receipts.receipt_id(command.id), at.now)
    if isinstance(receipt, Refused) or isinstance(settled, Refused):
        raise InvariantBroken(invariant="INV-7", detail=f"{command.id} is {command.state.name}")
    after = job.model_copy(update={"command": command.id, "receipt": receipt.id})
    writes: list[Write] = [Create(RECEIPTS.key(at.scope, receipt.id), receipt)]
    if receipt.outcome == "applied":
        verify = verify_operation(at, receipt, holder)
        writes.append(Create(OPERATIONS.key(at.scope, verify.id), verify))
        after = _exported(after, verify, receipt, at)
    else:
        after = jobs.need_person(after, f"The effect was refused: {receipt.detail}", at.now)
    # The job's mark stands for the command too.
    writes.extend([Put(COMMANDS.key(at.scope, settled.id), settled), *job_writes(at, after)])
    return Settled(receipt, settled, after, tuple(writes))


def verify_operation(at: At, receipt: Receipt, cause: Operation) -> Operation:
    """The second look at a receipt, by another path."""
    return Operation(
        id=verify_id(receipt.id),
        kind=VERIFY,
        goal=Goal(kind=VERIFY, digest=identity(VERIFY, receipt.id, receipt.terms_digest)),
        acceptance=ACCEPTANCE["verify"],
        job=receipt.job,
        cause=cause.id,
        subject=receipt.id,
        correlation=cause.correlation,
        trace=cause.trace,
        replay="safe",
        attempts_max=VERIFY_ATTEMPTS_MAX,
        created_at=at.now,
        state=Pending(ready_at=at.now),
    )


def _exported(job: Job, verify: Operation, receipt: Receipt, at: At) -> Job:
    """The export stage became true, unless the job has ended or moved meanwhile."""
    if isinstance(job.state, NeedsPerson) and job.state.stage == "export":
        job = jobs.go_on(job, at.now)
    if job.stage != "export" or job.state.name != "running":
        return job.model_copy(update={"updated_at": at.now})
    return jobs.advance(job, receipt.reference, at.now).model_copy(update={"operation": verify.id})
