"""The reconciler: finds out what became of a lost dispatch. Handler of `effect.reconcile`.

It asks the connector to look and never to act (INV-6). What it finds goes back to the export
operation in one commit: an observation, from which that operation writes the receipt; or proof of
absence, which opens a new attempt. Finding nothing out is tried a bounded number of times; then the
command stays unknown, and a person is asked.
"""

from __future__ import annotations

from typing import Final

import structlog

from runtime.domain import effect as effects
from runtime.domain import operation as operations
from runtime.domain.effect import (
    Answer,
    AnswerAbsent,
    AnswerApplied,
    AnswerUnknown,
    Command,
    Finding,
    Observed,
    Prepared,
    Unknown,
)
from runtime.domain.operation import Operation, Refused
from runtime.domain.receipt import LateAnswer
from runtime.domain.values import Scope
from runtime.engine.approvals import At
from runtime.engine.dispatcher import Connectors
from runtime.engine.effects import command_writes, settle_writes
from runtime.engine.marks import dirty_operation
from runtime.engine.work import Step, Work
from runtime.errors import InvariantBroken
from runtime.ports import Ask, Connector, Put, Reads, Store, Write
from runtime.stores.collections import COMMANDS, JOBS, LATE_ANSWERS, OPERATIONS

LATE_MAX: Final = 20
"""One late answer per lost claim; an operation has far fewer claims."""

log = structlog.get_logger()


class Reconciler:
    """Looks at what became of unknown commands."""

    def __init__(self, connectors: Connectors) -> None:
        """Keep the way to find connectors."""
        self._connectors = connectors

    async def __call__(self, work: Work) -> None:
        """One claim of one reconcile operation."""
        command = await _take(work)
        if command is None:
            return
        heard = await _heard(work.store, work.scope, command)
        answer = await self._look(command, heard)
        await _store(work, command, answer, heard)
        if not work.settled:
            # The export operation is over, so the receipt is written here.
            await _take(work)

    async def _look(self, command: Command, heard: list[LateAnswer]) -> Answer:
        """What a look says, read together with the evidence that late workers left."""
        connector = self._connectors.for_effect(command.terms.effect)
        if isinstance(connector, Finding):
            return AnswerUnknown(reason=connector.evidence[:1_000])
        applied = [late.answer for late in heard if isinstance(late.answer, AnswerApplied)]
        try:
            answer: object = await connector.reconcile(command)
            if applied and not isinstance(answer, AnswerApplied):
                return await _confirm(connector, command, applied[-1], answer)
        except Exception as error:  # noqa: BLE001 - a look that broke has found nothing out
            return AnswerUnknown(reason=f"The look broke ({type(error).__name__}).")
        if isinstance(answer, Answer):
            return answer
        return AnswerUnknown(reason=f"The look gave no answer ({type(answer).__name__}).")


async def _confirm(
    connector: Connector, command: Command, late: AnswerApplied, found: object
) -> Answer:
    """The sender heard "applied" too late: true if a second look by its reference says so."""
    finding = await connector.verify(command, late.reference)
    if finding.ok and (late.digest is None or finding.digest in {None, late.digest}):
        return late
    if isinstance(found, AnswerAbsent):
        return AnswerUnknown(
            reason="The sender was told that it worked, yet it is not found: " + found.proof[:800]
        )
    return found if isinstance(found, Answer) else AnswerUnknown(reason=finding.evidence[:1_000])


async def _take(work: Work) -> Command | None:
    """Take the unknown command over for this claim; without one there is nothing to find out."""
    serial = work.kit.ids.new("turn")

    async def body(reads: Reads, operation: Operation) -> Step[Command | None]:
        at = At(reads, work.scope, work.now(), serial)
        command = await _subject(at, operation)
        mine = effects.take_over(command, operation.fence)
        if isinstance(mine, Refused):
            return Step(None, (), operations.succeed(operation, at.now))
        if isinstance(mine.state, Observed):
            return await _settle(at, operation, mine)
        if not isinstance(mine.state, Unknown):
            return Step(None, (), operations.succeed(operation, at.now))
        return Step(mine, command_writes(at, mine))

    return await work.commit(body)


async def _heard(reads: Reads | Store, scope: Scope, command: Command) -> list[LateAnswer]:
    """What senders of this attempt were told too late."""
    page = await reads.find(
        Ask(LATE_ANSWERS, "of_command", scope, equals=(command.id,), limit=LATE_MAX)
    )
    return [found.record for found in page.rows if found.record.attempt == command.attempt]


async def _store(work: Work, looked: Command, answer: Answer, heard: list[LateAnswer]) -> None:
    """Store what the look means, and wake whoever goes on from there.

    A sender may have been told something while the look went on: absence that was found before
    that opens no attempt, and is looked at again together with it (INV-6).
    """
    serial = work.kit.ids.new("turn")

    async def body(reads: Reads, operation: Operation) -> Step[str]:
        at = At(reads, work.scope, work.now(), serial)
        command = await _subject(at, operation)
        meant = answer
        if isinstance(meant, AnswerAbsent) and await _heard(reads, at.scope, command) != heard:
            meant = AnswerUnknown(reason="The sender's answer came while the look went on.")
        found = effects.observe(command, operation.fence, meant, at.now)
        if isinstance(found, Refused) or command.attempt != looked.attempt:
            return Step("moved on", (), operations.succeed(operation, at.now))
        if isinstance(found.state, Unknown):
            step = _undecided(at, operation, found)
        else:
            step = await _hand_back(at, operation, found)
        return Step(found.state.name, step.writes, step.operation)

    state = await work.commit(body)
    log.info("reconciled", command=looked.id, attempt=looked.attempt, state=state)


async def _subject(at: At, operation: Operation) -> Command:
    subject = operation.subject
    command = None if subject is None else await at.reads.get(COMMANDS.key(at.scope, subject))
    if command is None:
        raise InvariantBroken(invariant="INV-6", detail=f"{operation.id} has no command")
    return command


def _undecided(at: At, operation: Operation, command: Command) -> Step[None]:
    """Look again later, a bounded number of times; then the choice is a person's."""
    writes = command_writes(at, command)
    if operation.attempt < operation.attempts_max:
        again = at.now + operations.retry_delay(operation.attempt)
        return Step(None, writes, operations.release(operation, again))
    reason = command.state.found if isinstance(command.state, Unknown) else ""
    writes.append(dirty_operation(at.scope, operation, at.now, at.serial))
    return Step(None, writes, operations.require_operator(operation, reason, at.now))


async def _hand_back(at: At, operation: Operation, command: Command) -> Step[None]:
    """The export operation holds the command again, wakes, and goes on from what was found."""
    export = await _export_of(at, operation)
    if export is None or export.finished:
        return _without_export(at, operation, command)
    held = effects.hand_over(command, export.fence)
    writes: list[Write] = command_writes(at, held)
    woken = operations.wake(export, at.now)
    if woken != export:
        writes.append(Put(OPERATIONS.key(at.scope, export.id), woken))
        writes.append(dirty_operation(at.scope, export, at.now, at.serial))
    return Step(None, writes, operations.succeed(operation, at.now))


def _without_export(at: At, operation: Operation, command: Command) -> Step[None]:
    """The export has ended meanwhile: what was found is still stored, and nothing is sent."""
    if isinstance(command.state, Prepared):
        reason = "It did not happen, and the work had ended meanwhile."
        withdrawn = effects.withdraw(command, reason, at.now)
        ended = command if isinstance(withdrawn, Refused) else withdrawn
        return Step(None, command_writes(at, ended), operations.succeed(operation, at.now))
    return Step(None, command_writes(at, command))


async def _export_of(at: At, operation: Operation) -> Operation | None:
    if operation.cause is None:
        return None
    return await at.reads.get(OPERATIONS.key(at.scope, operation.cause))


async def _settle(at: At, operation: Operation, command: Command) -> Step[Command | None]:
    """Observed while nobody else can finish: the receipt is written here."""
    job = await at.reads.get(JOBS.key(at.scope, command.job))
    if job is None:
        raise InvariantBroken(invariant="INV-7", detail=f"{command.id} has no job")
    settled = settle_writes(at, command, operation, job)
    return Step(None, settled.writes, operations.succeed(operation, at.now))
