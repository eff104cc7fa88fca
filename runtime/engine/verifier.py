"""The verifier: a second look at a receipt, by another path. Handler of `stage.verify`.

It reads, it stores what it found as a record of its own, and it never touches the receipt (INV-7).
Found as received: the job is done. Anything else: a person is asked, with the evidence.
"""

from __future__ import annotations

import structlog

from runtime.domain import job as jobs
from runtime.domain import operation as operations
from runtime.domain import receipt as receipts
from runtime.domain.effect import Command, Finding
from runtime.domain.job import Job, NeedsPerson, Running
from runtime.domain.operation import Operation
from runtime.domain.receipt import Receipt, Verification
from runtime.engine.approvals import At
from runtime.engine.dispatcher import Connectors
from runtime.engine.effects import job_writes
from runtime.engine.marks import dirty_operation
from runtime.engine.work import Step, Work
from runtime.errors import InvariantBroken
from runtime.ports import Create, Reads, Write
from runtime.stores.collections import COMMANDS, JOBS, RECEIPTS, VERIFICATIONS

log = structlog.get_logger()


class Verifier:
    """Looks again at what receipts say."""

    def __init__(self, connectors: Connectors) -> None:
        """Keep the way to find connectors."""
        self._connectors = connectors

    async def __call__(self, work: Work) -> None:
        """One claim of one verify operation: one look, one record."""
        receipt, command = await _received(work)
        finding = await self._look(receipt, command)
        serial = work.kit.ids.new("turn")

        async def body(reads: Reads, operation: Operation) -> Step[bool]:
            at = At(reads, work.scope, work.now(), serial)
            job = await reads.get(JOBS.key(at.scope, receipt.job))
            if job is None:
                raise InvariantBroken(invariant="INV-7", detail=f"{receipt.id} has no job")
            look = receipts.verify(receipt, finding, operation.id, operation.epoch, at.now)
            return _seen(at, operation, job, look)

        verified = await work.commit(body)
        log.info("receipt_looked_at", receipt=receipt.id, verified=verified, method=finding.method)

    async def _look(self, receipt: Receipt, command: Command) -> Finding:
        if command.terms.digest != receipt.terms_digest:
            evidence = "The stored command differs from the one that the receipt is about."
            return Finding(ok=False, method="stored_terms", evidence=evidence)
        connector = self._connectors.for_effect(receipt.effect)
        if isinstance(connector, Finding):
            return connector
        return await connector.verify(command, receipt.reference)


async def _received(work: Work) -> tuple[Receipt, Command]:
    """The receipt in question and its command."""
    subject = work.operation.subject
    receipt = None if subject is None else await work.store.get(RECEIPTS.key(work.scope, subject))
    if receipt is None:
        raise InvariantBroken(invariant="INV-7", detail=f"{work.operation.id} has no receipt")
    command = await work.store.get(COMMANDS.key(work.scope, receipt.command))
    if command is None:
        raise InvariantBroken(invariant="INV-7", detail=f"{receipt.id} has no command")
    return receipt, command


def _seen(at: At, operation: Operation, job: Job, look: Verification) -> Step[bool]:
    """Store the look; the job is done, or a person is asked."""
    writes: list[Write] = [Create(VERIFICATIONS.key(at.scope, look.id), look)]
    after = job.model_copy(update={"verification": look.id, "updated_at": at.now})
    if look.verified:
        done = operations.succeed(operation, at.now)
        return Step(True, [*writes, *job_writes(at, _finished(after, look, at))], done)
    reason = f"Not verified. {look.evidence}"
    after = jobs.need_person(after, reason, at.now)
    writes.extend(job_writes(at, after))
    writes.append(dirty_operation(at.scope, operation, at.now, at.serial))
    return Step(False, writes, operations.require_operator(operation, reason, at.now))


def _finished(job: Job, look: Verification, at: At) -> Job:
    """Verified: the last stage became true, unless the job has ended or moved meanwhile."""
    if isinstance(job.state, NeedsPerson) and job.state.stage == "verify":
        job = jobs.go_on(job, at.now)
    if job.stage != "verify" or not isinstance(job.state, Running):
        return job
    return jobs.finish(jobs.advance(job, look.evidence, at.now), at.now)
