"""The unit of work, on the real engine: event → thought → approval → effect → verified → done.

One job: a 2 KB event is accepted (every tenth twice); its operation stores one finished no-op model
call, a job, an approval and the export operation that waits for it; a vote approves; the real
dispatcher carries the effect to an in-memory provider; the real verifier reads it back; done. The
projector does not run: no peer keeps a feed. The provider counts: one effect per job, or the run
fails.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

from runtime.domain import operation as operations
from runtime.domain.approval import Approval, Decided, Vote
from runtime.domain.effect import (
    Answer,
    AnswerAbsent,
    AnswerApplied,
    Command,
    Descriptor,
    Finding,
    Terms,
)
from runtime.domain.event import Envelope
from runtime.domain.job import Done, Job, Source
from runtime.domain.journal import ModelCall, call_id
from runtime.domain.operation import Operation
from runtime.domain.people import Member, Role
from runtime.domain.policy import Policy
from runtime.domain.proposal import Review, Thought
from runtime.domain.revision import RevisionRef
from runtime.domain.values import Tenant, Trust, sha256
from runtime.engine import approvals, inbox
from runtime.engine.approvals import At
from runtime.engine.dispatcher import Dispatcher
from runtime.engine.kit import Kit
from runtime.engine.services import Stop
from runtime.engine.stages import stage_operation
from runtime.engine.verifier import Verifier
from runtime.engine.work import Handler, Step, Work
from runtime.engine.worker import Limits, Worker
from runtime.ports import Commit, Connector, Create, Put, Reads, Write
from runtime.stores.collections import (
    ALL,
    APPROVALS,
    JOBS,
    MEMBERS,
    MODEL_CALLS,
    OPERATIONS,
    POLICIES,
)
from runtime.stores.sqlite import SqliteStore
from runtime.system import SystemClock, SystemIds
from runtime.wakes.local import LocalWakes

TENANT = Tenant(workspace="bench", brand="main")
PERSON = "telegram:1"
PAYLOAD = "p" * 2_000
DIGEST = sha256(b"draft")
PENDING_APPROVALS = 10_000


class MemoryProvider:
    """An in-memory provider with a ledger: what it was asked to do, and how often."""

    descriptor = Descriptor(
        id="memory",
        label="In memory",
        capabilities=("export", "verify"),
        effects=("content_pack.export",),
        idempotent=True,
        independent_verification=True,
    )

    def __init__(self) -> None:
        self.ledger: dict[str, int] = {}

    async def validate_connection(self) -> Finding:
        return Finding(ok=True, method="memory", evidence="here")

    async def prepare(self, terms: Terms) -> str | Finding:
        return terms.payload

    async def execute(self, command: Command) -> Answer:
        self.ledger[command.id] = self.ledger.get(command.id, 0) + 1
        return AnswerApplied(reference=command.id, digest=DIGEST)

    async def verify(self, command: Command, reference: str) -> Finding:
        found = self.ledger.get(reference, 0) == 1 and reference == command.id
        return Finding(ok=found, method="ledger", evidence="read back")

    async def reconcile(self, command: Command) -> Answer:
        del command
        return AnswerAbsent(proof="not in the ledger")

    def for_effect(self, effect: str) -> Connector | Finding:
        del effect
        return self


class Unit:
    """Runs the unit on one store."""

    def __init__(self, kit: Kit, *, lease: timedelta = operations.LEASE) -> None:
        self.kit = kit
        self.provider = MemoryProvider()
        self._waiting: dict[str, asyncio.Event] = {}
        self._done: dict[str, asyncio.Event] = {}
        self._stop = Stop()
        verifier = Verifier(self.provider)
        handlers: dict[str, Handler] = {
            "bench.think": self._think,
            "bench.press": self._press,
            "stage.export": Dispatcher(self.provider),
            "stage.verify": self._verified(verifier),
        }
        self._worker = Worker(kit, handlers, Limits(concurrency=64, lease=lease))
        self._task: asyncio.Task[None] | None = None

    @classmethod
    async def open(cls, folder: Path) -> Unit:
        clock, ids = SystemClock(), SystemIds()
        store = SqliteStore.open(folder / "truth.sqlite", ALL, clock, ids)
        unit = cls(Kit(clock, ids, store, LocalWakes()))
        await unit._prepare()
        unit._task = asyncio.create_task(unit._worker.run(unit._stop))
        return unit

    async def close(self) -> None:
        self._stop.ask()
        self.kit.wakes.wake()  # type: ignore[attr-defined] # the local wakes of this process
        if self._task is not None:
            await self._task
        await self.kit.store.close()

    async def _prepare(self) -> None:
        now = self.kit.clock.now()
        member = Member(id=PERSON, role=Role.APPROVER, display="Ana", since=now, by=PERSON)

        async def body(reads: Reads) -> Commit[None]:
            del reads
            return Commit(
                None,
                (
                    Put(MEMBERS.key(TENANT, PERSON), member),
                    Put(POLICIES.key(TENANT, "current"), Policy(since=now)),
                ),
            )

        await self.kit.commit(body)

    async def one(self, number: int) -> None:
        """One job from event to done."""
        id_ = f"job-{number}"
        self._waiting[id_], self._done[id_] = asyncio.Event(), asyncio.Event()
        for _ in range(2 if number % 10 == 0 else 1):
            await inbox.accept(
                self.kit,
                TENANT,
                Envelope(
                    source="bench",
                    source_id=str(number),
                    type="bench",
                    trust=Trust.OPERATOR,
                    payload=PAYLOAD,
                    correlation=id_,
                ),
                inbox.Task("bench.think", ("done",), subject=id_),
            )
        await self._waiting[id_].wait()
        await self.approve(id_)
        await self._done[id_].wait()

    async def approve(self, id_: str) -> None:
        """The signal: one vote, one commit."""
        now = self.kit.clock.now()

        async def body(reads: Reads) -> Commit[bool]:
            voting, writes = await _vote(At(reads, TENANT, now, id_), id_)
            return Commit(isinstance(voting, Decided), writes)

        if not await self.kit.commit(body):
            message = f"the vote for {id_} did not count"
            raise RuntimeError(message)

    async def _think(self, work: Work) -> None:
        """A no-op model step, journaled; then the request for approval, in one more commit."""
        operation = work.operation
        id_ = operation.subject or ""
        now = work.now()
        thought = Thought(value=Review(verdict="ready", findings=()), model="no-op")
        call = ModelCall(
            id=call_id(operation.id, "think", DIGEST),
            operation=operation.id,
            step="think",
            basis=DIGEST,
            projection=DIGEST,
            thought=thought,
            epoch=operation.epoch,
            at=now,
        )

        async def journal(reads: Reads, current: Operation) -> Step[None]:
            del reads, current
            return Step(None, (Create(MODEL_CALLS.key(TENANT, call.id), call),))

        async def ask(reads: Reads, current: Operation) -> Step[None]:
            del reads
            return Step(None, requested(id_, current, now=now), operations.succeed(current, now))

        await work.commit(journal)
        await work.commit(ask)
        self._waiting[id_].set()

    async def _press(self, work: Work) -> None:
        """A tap, by the whole way: its own event, operation and fenced commit."""
        id_ = work.operation.subject or ""

        async def body(reads: Reads, current: Operation) -> Step[None]:
            now = work.now()
            _, writes = await _vote(At(reads, TENANT, now, current.id), id_)
            return Step(None, writes, operations.succeed(current, now))

        await work.commit(body)
        self._waiting[id_].set()

    async def tap(self, id_: str) -> None:
        """From a press event to the stored decision."""
        self._waiting[id_] = asyncio.Event()
        self._done[id_] = asyncio.Event()
        await inbox.accept(
            self.kit,
            TENANT,
            Envelope(
                source="bench-press",
                source_id=id_,
                type="press",
                trust=Trust.OPERATOR,
                payload=PAYLOAD,
                correlation=id_,
            ),
            inbox.Task("bench.press", ("decided",), subject=id_),
        )
        await self._waiting[id_].wait()

    async def fill(self, count: int) -> None:
        """Store `count` jobs that wait for approval."""
        now = self.kit.clock.now()
        for chunk in _chunks(range(count), 100):

            async def body(reads: Reads, chunk: range = chunk) -> Commit[None]:
                del reads
                writes: list[Write] = []
                for number in chunk:
                    writes.extend(requested(f"tap-{number}", None, now=now))
                return Commit(None, tuple(writes))

            await self.kit.commit(body)

    def _verified(self, verifier: Verifier) -> Handler:
        async def run(work: Work) -> None:
            await verifier(work)
            job = work.operation.job or ""
            if job in self._done:
                self._done[job].set()

        return run

    async def check(self, jobs: int) -> None:
        """Exactly one effect per job, and every job done."""
        if len(self.provider.ledger) != jobs or set(self.provider.ledger.values()) != {1}:
            message = f"{len(self.provider.ledger)} effects for {jobs} jobs"
            raise RuntimeError(message)
        for number in range(jobs):
            job = await self.kit.store.get(JOBS.key(TENANT, f"job-{number}"))
            if job is None or not isinstance(job.state, Done):
                message = f"job-{number} is not done"
                raise RuntimeError(message)


def requested(id_: str, cause: Operation | None, *, now: datetime) -> tuple[Write, ...]:
    """A job at its last decision: draft ready, approval requested, export operation waiting."""
    draft = RevisionRef(kind="draft", id=f"{id_}:draft:1", number=1, digest=DIGEST)
    terms = Terms(
        effect="content_pack.export", account="pack", revision=draft, payload='{"text":"x"}'
    )
    job = Job(
        id=id_,
        number=1,
        title="bench",
        home="bench:1",
        by=PERSON,
        source=Source(kind="text", name="bench"),
        stage="export",
        heads={"draft": draft},
        approval=f"{id_}:approval",
        operation=f"{id_}:export",
        correlation=id_,
        created_at=now,
        updated_at=now,
    )
    policy = Policy(since=now)
    approval = Approval(
        id=f"{id_}:approval",
        job=id_,
        kind="effect",
        subject=draft,
        digest=terms.digest,
        terms=terms,
        policy_version=1,
        needed=1,
        operation=f"{id_}:export",
        requested_at=now,
        decide_by=now + policy.decide_within,
        valid_for=policy.valid_for,
    )
    waiting = stage_operation(job, "export", cause, now, waits=approval)
    return (
        Create(JOBS.key(TENANT, id_), job),
        Create(APPROVALS.key(TENANT, approval.id), approval),
        Create(OPERATIONS.key(TENANT, waiting.id), waiting),
    )


async def _vote(at: At, id_: str) -> tuple[object, list[Write]]:
    stored = await at.reads.get(APPROVALS.key(at.scope, f"{id_}:approval"))
    if stored is None:
        message = f"{id_} has no approval"
        raise RuntimeError(message)
    cast = Vote(
        id=f"vote-{id_}",
        person=PERSON,
        display="Ana",
        verdict="approve",
        digest=stored.digest,
        at=at.now,
    )
    return await approvals.vote(at, stored.id, cast)


def _chunks(numbers: range, size: int) -> Iterator[range]:
    for start in range(0, len(numbers), size):
        yield numbers[start : start + size]
