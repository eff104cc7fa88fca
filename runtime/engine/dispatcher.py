"""The dispatcher: carries one approved effect from intent to receipt. Handler of `stage.export`.

Each turn is one fenced commit that reads what is stored and makes the one transition that follows,
so a first run, a retry and a new epoch after a crash are the same code:

    no command   → prepared (the approval is consumed)      observed → receipt, next stage, done
    prepared     → dispatched, then execute, once           unknown  → wait for the reconciler
    dispatched   → unknown: another claim sent it           settled  → done

Keeps INV-5 (admission is asked in the commits that prepare and that dispatch), INV-6 (`execute`
follows only from this worker's own commit of `dispatched`, once) and INV-7. An answer that arrives
after the fence was lost is stored as evidence, never as an outcome.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Protocol

import structlog

from runtime.domain import approval as approvals
from runtime.domain import effect as effects
from runtime.domain import job as jobs
from runtime.domain import operation as operations
from runtime.domain.admission import Admitted, Blocked, Case, Ended, admit
from runtime.domain.approval import Approval, VoteRefused
from runtime.domain.effect import (
    Answer,
    AnswerNotEntered,
    AnswerUnknown,
    Applied,
    ClosedUnproven,
    Command,
    CommandCancelled,
    Dispatched,
    Failed,
    Finding,
    Observed,
    Prepared,
    Unknown,
)
from runtime.domain.job import Job
from runtime.domain.operation import Operation, OperatorRequired, Refused
from runtime.domain.policy import Policy
from runtime.domain.receipt import late_answer
from runtime.engine.approvals import At
from runtime.engine.effects import (
    INTERRUPTED,
    WAIT_AT_MOST,
    command_id,
    command_writes,
    job_writes,
    lost_dispatch,
    reconcile_operation,
    settle_writes,
)
from runtime.engine.marks import dirty, dirty_operation
from runtime.engine.work import Step, Work
from runtime.errors import FenceLost
from runtime.ports import Commit, Connector, Create, Put, Reads, Write
from runtime.stores.collections import (
    APPROVALS,
    COMMANDS,
    JOBS,
    LATE_ANSWERS,
    MEMBERS,
    OPERATIONS,
    POLICIES,
)

TRIES_MAX: Final = 3
"""Tries in a row proved not entered, after which a person is asked; each resumption opens more."""
TURNS_MAX: Final = 8
"""Commits of one claim. The longest way has four."""

log = structlog.get_logger()


class Connectors(Protocol):
    """Which connector carries an effect, or why none does."""

    def for_effect(self, effect: str) -> Connector | Finding:
        """The active connector of an effect type."""
        ...


@dataclass(frozen=True, slots=True)
class Sending:
    """This worker committed `dispatched`: it, and only it, executes now."""

    command: Command
    connector: Connector


@dataclass(frozen=True, slots=True)
class _Turn:
    """What one commit is about: everything as read in it."""

    at: At
    operation: Operation
    job: Job
    approval: Approval


Turned = Step[Sending | None]


class Dispatcher:
    """Carries effects through their connectors."""

    def __init__(self, connectors: Connectors) -> None:
        """Keep the way to find connectors."""
        self._connectors = connectors

    async def __call__(self, work: Work) -> None:
        """One claim of one export operation."""
        for _ in range(TURNS_MAX):
            if work.settled:
                return
            sending = await self._advance(work)
            if sending is not None:
                sent = sending.command
                log.info("effect_dispatched", command=sent.id, attempt=sent.attempt)
                answer = await execute(sending)
                await self._observe(work, sending.command, answer)

    # --- one turn --------------------------------------------------------------------------------

    async def _advance(self, work: Work) -> Sending | None:
        serial = work.kit.ids.new("turn")

        async def body(reads: Reads, operation: Operation) -> Turned:
            at = At(reads, work.scope, work.now(), serial)
            turn = await _read(at, operation)
            if isinstance(turn, str):
                parked = operations.require_operator(operation, turn, at.now)
                mark = dirty_operation(at.scope, operation, at.now, serial)
                return Step(None, (mark,), parked)
            key = COMMANDS.key(at.scope, command_id(turn.approval.id))
            return await self._follow(turn, await reads.get(key))

        return await work.commit(body)

    async def _follow(self, turn: _Turn, command: Command | None) -> Turned:
        """The transition that follows from the command's state."""
        at, operation = turn.at, turn.operation
        if command is None:
            return await self._prepare(turn)
        match command.state:
            case Unknown():
                return await _wait(at, operation, command)
            case Applied():
                return Step(None, (), operations.succeed(operation, at.now))
            case Failed(reason=reason) | CommandCancelled(reason=reason):
                return Step(None, (), operations.fail(operation, reason, at.now))
            case ClosedUnproven(reason=reason):
                return Step(None, (), operations.fail(operation, reason, at.now))
            case Prepared() | Dispatched() | Observed():
                return await self._go_on(turn, command)

    async def _go_on(self, turn: _Turn, command: Command) -> Turned:
        """Take the command over from an earlier claim of this operation, then move it."""
        at, operation = turn.at, turn.operation
        mine = effects.take_over(command, operation.fence)
        if isinstance(mine, Refused):
            return Step(None, (), operations.wait(operation, command.id, at.now + WAIT_AT_MOST))
        if isinstance(mine.state, Prepared):
            return await self._dispatch(turn, mine)
        if isinstance(mine.state, Observed):
            return _settle(turn, mine)
        lost = lost_dispatch(at, mine, operation, INTERRUPTED)
        return Step(None, lost.writes, lost.operation)

    async def _prepare(self, turn: _Turn) -> Turned:
        """Consume the approval and store the intent."""
        at, operation, approval = turn.at, turn.operation, turn.approval
        id_ = command_id(approval.id)
        admission = admit(await _case(turn, None), at.now)
        if not isinstance(admission, Admitted):
            return _refuse(turn, admission, None)
        if isinstance(found := self._connectors.for_effect(admission.terms.effect), Finding):
            return _refuse(turn, Blocked(found.evidence), None)
        consumed = approvals.consume(approval, id_, at.now)
        if isinstance(consumed, VoteRefused):
            return _refuse(turn, Blocked(consumed.sentence), None)
        command = effects.prepare(
            id_,
            turn.job.id,
            approval.id,
            approved_digest=approval.digest,
            terms=admission.terms,
            policy_version=admission.policy.version,
            holder=operation.fence,
            now=at.now,
        )
        if isinstance(command, Refused):
            return _refuse(turn, Blocked(command.rule), None)
        job = turn.job.model_copy(update={"command": id_, "updated_at": at.now})
        writes = (
            Put(APPROVALS.key(at.scope, approval.id), consumed),
            Create(COMMANDS.key(at.scope, id_), command),
            *job_writes(at, job),
        )
        return Step(None, writes)

    async def _dispatch(self, turn: _Turn, command: Command) -> Turned:
        """Ask everything once more, then say durably that sending may begin."""
        at, operation = turn.at, turn.operation
        admission = admit(await _case(turn, command), at.now)
        if not isinstance(admission, Admitted):
            return _refuse(turn, admission, command)
        connector = self._connectors.for_effect(command.terms.effect)
        if isinstance(connector, Finding):
            return _refuse(turn, Blocked(connector.evidence), command)
        ready = effects.ready_at(command)
        if ready is not None and at.now < ready:
            return Step(None, command_writes(at, command), operations.release(operation, ready))
        sent = effects.dispatch(
            command, operation.fence, at.now, policy_version=admission.policy.version
        )
        if isinstance(sent, Refused):
            return _refuse(turn, Blocked(sent.rule), command)
        return Step(Sending(sent, connector), command_writes(at, sent))

    # --- the answer ------------------------------------------------------------------------------

    async def _observe(self, work: Work, sent: Command, answer: Answer) -> None:
        """Store what the answer means, or keep it as evidence if this worker may not any more."""
        serial = work.kit.ids.new("turn")

        async def body(reads: Reads, operation: Operation) -> Step[bool]:
            at = At(reads, work.scope, work.now(), serial)
            command = await reads.get(COMMANDS.key(at.scope, sent.id))
            job = await reads.get(JOBS.key(at.scope, sent.job))
            if command is None or job is None or command.attempt != sent.attempt:
                return Step(False)
            observed = effects.observe(command, operation.fence, answer, at.now)
            if isinstance(observed, Refused):
                return Step(False)
            match observed.state:
                case Unknown(reason=reason):
                    lost = lost_dispatch(at, command, operation, reason)
                    return Step(True, lost.writes, lost.operation)
                case Prepared():
                    return _not_entered(_Sent(at, operation, job), observed, answer)
                case _:
                    return Step(True, command_writes(at, observed))

        try:
            stored = await work.commit(body)
        except FenceLost:
            await _keep(work, sent, answer)
            raise
        if not stored:
            await _keep(work, sent, answer)


async def begun(work: Work) -> bool:
    """Whether the effect of the job's approval has its command already.

    From then on only the dispatcher ends the export, whatever became of the job: work past
    dispatch is never called cancelled.
    """
    if work.operation.job is None:
        return False
    job = await work.store.get(JOBS.key(work.scope, work.operation.job))
    if job is None or job.approval is None:
        return False
    key = COMMANDS.key(work.scope, command_id(job.approval))
    return await work.store.get(key) is not None


async def execute(sending: Sending) -> Answer:
    """Call the connector, once. What a connector did not classify is unknown, never a failure."""
    try:
        answer: object = await sending.connector.execute(sending.command)
    except Exception as error:  # noqa: BLE001 - whatever broke, the provider may have acted
        return AnswerUnknown(reason=f"The connector broke ({type(error).__name__}).")
    if isinstance(answer, Answer):
        return answer
    return AnswerUnknown(reason=f"The connector gave no answer ({type(answer).__name__}).")


# --- parts of a turn ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Sent:
    """What the commit after a send is about."""

    at: At
    operation: Operation
    job: Job


async def _read(at: At, operation: Operation) -> _Turn | str:
    """The job and its approval, or why there is nothing to carry."""
    if operation.job is None:
        return "the operation names no job"
    job = await at.reads.get(JOBS.key(at.scope, operation.job))
    if job is None or job.approval is None:
        return "the job or its approval is missing"
    approval = await at.reads.get(APPROVALS.key(at.scope, job.approval))
    if approval is None:
        return "the job's approval is missing"
    return _Turn(at, operation, job, approval)


async def _case(turn: _Turn, command: Command | None) -> Case:
    """Everything that admission asks about, read in this transaction."""
    at = turn.at
    people = {vote.person for vote in turn.approval.votes}
    members = {
        person: await at.reads.get(MEMBERS.key(at.scope, person)) for person in sorted(people)
    }
    stored = await at.reads.get(POLICIES.key(at.scope, "current"))
    policy = stored or Policy(since=at.now)
    return Case(turn.job, turn.approval, policy, members, command)


def _refuse(turn: _Turn, admission: Ended | Blocked, command: Command | None) -> Turned:
    """Nothing goes out: the work has ended, or a person is asked. The command stays unsent."""
    at, operation = turn.at, turn.operation
    writes: list[Write] = []
    expired = approvals.expire(turn.approval, at.now)
    if expired != turn.approval:
        writes.append(Put(APPROVALS.key(at.scope, expired.id), expired))
        writes.append(dirty(at.scope, "job", expired.job, at.now, at.serial))
    if isinstance(admission, Ended):
        if command is not None:
            withdrawn = effects.withdraw(command, admission.reason, at.now)
            if not isinstance(withdrawn, Refused):
                writes.extend(command_writes(at, withdrawn))
        return Step(None, writes, operations.cancel(operation, admission.reason, at.now))
    if command is not None:
        writes.extend(command_writes(at, command))
    writes.extend(job_writes(at, jobs.need_person(turn.job, admission.reason, at.now)))
    parked = operations.require_operator(operation, admission.reason, at.now)
    return Step(None, writes, parked)


async def _wait(at: At, operation: Operation, command: Command) -> Turned:
    """An unknown command is never sent again: its reconciler or a person moves it on.

    A reconciler that has given up looks once more each time the wait is over: what hid the effect
    (a disk, a lock, a network) may be gone, and looking changes nothing.
    """
    waiting = operations.wait(operation, command.id, at.now + WAIT_AT_MOST)
    reconcile = reconcile_operation(at, command, operation)
    for id_ in (command.holder.operation, reconcile.id):
        key = OPERATIONS.key(at.scope, id_)
        known = None if id_ == operation.id else await at.reads.get(key)
        if known is not None and isinstance(known.state, OperatorRequired):
            mark = dirty_operation(at.scope, known, at.now, at.serial)
            return Step(None, (Put(key, operations.wake(known, at.now)), mark), waiting)
        if known is not None:
            return Step(None, (), waiting)
    held = effects.hand_over(command, reconcile.fence)
    create = Create(OPERATIONS.key(at.scope, reconcile.id), reconcile)
    return Step(None, (*command_writes(at, held), create), waiting)


def _settle(turn: _Turn, command: Command) -> Turned:
    """The receipt, and the end of this operation."""
    at, operation = turn.at, turn.operation
    settled = settle_writes(at, command, operation, turn.job)
    if settled.applied:
        return Step(None, settled.writes, operations.succeed(operation, at.now))
    ended = operations.fail(operation, settled.receipt.detail, at.now)
    return Step(None, settled.writes, ended)


def _not_entered(turn: _Sent, command: Command, answer: Answer) -> Step[bool]:
    """Try again at the time given, a bounded number of times; then a person is asked."""
    at, operation = turn.at, turn.operation
    gap = isinstance(answer, AnswerNotEntered) and answer.credential_gap
    spent = command.tries % TRIES_MAX == 0 or operation.attempt >= operation.attempts_max
    writes = command_writes(at, command)
    if gap or spent:
        reason = f"Nothing was sent. {getattr(answer, 'reason', '')}".strip()
        writes.extend(job_writes(at, jobs.need_person(turn.job, reason, at.now)))
        return Step(True, writes, operations.require_operator(operation, reason, at.now))
    delayed = at.now + operations.retry_delay(command.tries)
    ready = max(delayed, effects.ready_at(command) or delayed)
    return Step(True, writes, operations.release(operation, ready))


async def _keep(work: Work, sent: Command, answer: Answer) -> None:
    """Store a late answer as evidence for the reconciler; unfenced, and never an outcome."""
    late = late_answer(sent, work.operation.fence, answer, work.now())
    key = LATE_ANSWERS.key(work.scope, late.id)

    async def body(reads: Reads) -> Commit[None]:
        known = await reads.get(key)
        return Commit(None, () if known is not None else (Create(key, late),))

    await work.kit.commit(body, work.store)
    log.info("late_answer_kept", command=sent.id, attempt=sent.attempt, answer=answer.name)
