"""A whole job played by hand: the real engine over a real store, and a scripted model.

The model and the sources are implementations of their ports that answer from the source text; the
provider keeps a ledger. A process dies by `Crash`, and another `Play` over the same folder goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from runtime.blobs.files import FileBlobs
from runtime.domain.approval import AlreadyYours, Approval, Verdict, Vote, Voting
from runtime.domain.canonical import canonical_text
from runtime.domain.effect import Finding, Terms
from runtime.domain.job import Job, Source
from runtime.domain.material import reading_plan
from runtime.domain.operation import LEASE, Operation
from runtime.domain.people import Role
from runtime.domain.policy import Policy
from runtime.domain.projection import Projection
from runtime.domain.proposal import (
    Analysis,
    Draft,
    Notes,
    Quote,
    Result,
    Review,
    Section,
    Strategy,
    Thought,
)
from runtime.domain.revision import Revision
from runtime.domain.values import Scope
from runtime.engine import approvals
from runtime.engine.approvals import At
from runtime.engine.compiler import Compiler
from runtime.engine.dispatcher import Dispatcher
from runtime.engine.effects import RECONCILE, VERIFY
from runtime.engine.kit import Kit
from runtime.engine.pipeline import Pipeline
from runtime.engine.projector import Projector
from runtime.engine.reading import Converted, Reading
from runtime.engine.reconciler import Reconciler
from runtime.engine.scanner import Scanner
from runtime.engine.spill import Spill
from runtime.engine.stages import stage_operation
from runtime.engine.thinking import Thinker
from runtime.engine.verifier import Verifier
from runtime.engine.work import Handler, Work
from runtime.engine.worker import Worker
from runtime.ports import Ask, Commit, Fetched, Hint, Put, Reads, Store
from runtime.stores.collections import (
    APPROVALS,
    JOBS,
    MEMBERS,
    MODEL_CALLS,
    OPERATIONS,
    POLICIES,
    REVISIONS,
)
from tests.effects_made import ANA, BO, Only, Provider, member
from tests.world import ACME, ManualClock, make_kit

TEXT = "Launch is on Friday. Tickets cost nothing. “Бесплатно” 🚀 for everyone."
ROUNDS_MAX = 60


class Scripted:
    """A Cognition that answers from the source text, unless a script says otherwise."""

    model = "scripted"

    def __init__(self, text: str = TEXT) -> None:
        self.text = text
        self.calls: list[str] = []
        self.script: dict[str, list[Result | BaseException]] = {}

    async def think(self, projection: Projection) -> Thought:
        self.calls.append(projection.step)
        scripted = self.script.get(projection.agent)
        said = scripted.pop(0) if scripted else self._answer(projection)
        if isinstance(said, BaseException):
            raise said
        return Thought(value=said, model=self.model)

    def quotes(self, start: int = 0, end: int | None = None) -> tuple[Quote, ...]:
        """The sentences of a part of the text."""
        found: list[Quote] = []
        for sentence in self.text[start:end].split(". ")[:5]:
            if sentence.strip():
                at = self.text.index(sentence, start)
                found.append(Quote(id=f"F{len(found) + 1}", text=sentence[:200], start=at))
        return tuple(found)

    def _answer(self, projection: Projection) -> Result:
        match projection.agent:
            case "reader":
                window = reading_plan(len(self.text))[int(projection.step.rpartition(":")[2])]
                return Notes(quotes=self.quotes(window.start, window.stop))
            case "analyst":
                return Analysis(
                    title="Launch", topics=("launch",), summary=("F1",), quotes=self.quotes()
                )
            case "strategist":
                return Strategy(
                    headline="Free", audience="all", angle="plain", points=("F1",), rationale="why"
                )
            case "writer":
                return drafted(self.text[:20])
            case _:
                return Review(verdict="ready", findings=())


def drafted(text: str = "Launch is on Friday.") -> Draft:
    return Draft(title="Launch", sections=(Section(text=text, quotes=("F1",)),))


@dataclass
class Desk:
    """Sources that bring what they are told to, one after the other; the last for ever."""

    contents: list[bytes | Exception] = field(default_factory=lambda: [TEXT.encode()])
    unreadable: Exception | None = None
    brought: int = 0
    types: list[str] = field(default_factory=lambda: ["text/plain"])

    async def bring(self, source: Source) -> Fetched:
        content = self.contents[min(self.brought, len(self.contents) - 1)]
        kind = self.types[min(self.brought, len(self.types) - 1)]
        self.brought += 1
        if isinstance(content, Exception):
            raise content
        return Fetched(content, source.link, kind, "source.txt")

    async def convert(self, data: bytes, name: str, content_type: str) -> Converted:
        del name, content_type
        if self.unreadable is not None:
            raise self.unreadable
        return Converted(data.decode(), "", ("one note",))


async def terms(scope: Scope, job: Job, draft: Revision, analysis: Revision) -> Terms | Finding:
    del scope, job, analysis
    payload = canonical_text(draft.body)
    return Terms(effect="content_pack.export", account="packs", revision=draft.ref, payload=payload)


@dataclass
class Play:
    """One process."""

    kit: Kit
    clock: ManualClock
    cognition: Scripted
    desk: Desk
    provider: Provider
    handlers: dict[str, Handler]
    spill: Spill
    thinker: Thinker

    async def begin(self, *, needed: int = 1) -> Job:
        """A job that has just been taken in, with its first operation."""
        now = self.clock.now()
        job = Job(
            id="job-1",
            number=1,
            title="source.txt",
            home="telegram:100",
            by=ANA,
            source=Source(kind="link", name="source.txt", link="https://example.org/s"),
            operation="job-1:read",
            correlation="c",
            created_at=now,
            updated_at=now,
        )
        read = stage_operation(job, "read", None, now)
        policy = Policy(since=now, approvals_needed=needed)
        people = (member(ANA), member(BO), member("telegram:3", Role.VIEWER))

        async def body(reads: Reads) -> Commit[None]:
            return Commit(
                None,
                (
                    Put(JOBS.key(ACME, job.id), job),
                    Put(OPERATIONS.key(ACME, read.id), read),
                    Put(POLICIES.key(ACME, "current"), policy),
                    *(Put(MEMBERS.key(ACME, person.id), person) for person in people),
                ),
            )

        await self.kit.commit(body)
        return job

    async def claim(self, operation: str) -> Work:
        work = await Worker(self.kit, self.handlers).claim(Hint(ACME, operation))
        assert work is not None, f"{operation} is not claimable"
        return work

    async def carry(self, operation: str) -> None:
        """One claim and its handler; faults come out."""
        work = await self.claim(operation)
        await self.handlers[work.operation.kind](work)

    async def settle(self) -> None:
        """Carry what is ready, with the worker's own care for faults, until nothing is."""
        worker = Worker(self.kit, self.handlers)
        while await worker.idle():
            await worker.drain()

    async def ready(self) -> list[str]:
        before = self.clock.now() + timedelta(microseconds=1)
        ask = Ask(OPERATIONS, "ready", None, equals=("pending",), before=before)
        return [found.record.id for found in (await self.kit.store.find(ask)).rows]

    async def to_the_end(self, *, decide: bool = True) -> None:
        """Carry, approve, scan and let time pass until nothing moves. Crashes come out."""
        quiet = 0
        for _ in range(ROUNDS_MAX):
            found = await self.ready()
            for operation in found:
                await self.carry(operation)
            if found or (decide and await self.approve()):
                quiet = 0
                continue
            quiet += 1
            if quiet > 2:
                return
            self.clock.advance(LEASE)
            await Scanner(self.kit).once()
        message = "it did not come to an end"
        raise AssertionError(message)

    async def approve(self) -> bool:
        """Ana approves what the job waits for; whether there was anything."""
        job = await self.job()
        asked = job.approval and await self.approval(job.approval)
        if not asked or asked.state.name != "requested":
            return False
        await self.vote(asked.id)
        return True

    async def vote(
        self,
        approval: str,
        person: str = ANA,
        verdict: Verdict = "approve",
        *,
        id_: str = "",
        digest: str = "",
    ) -> Voting:
        shown = digest or (await self.approval(approval)).digest
        cast = Vote(
            id=id_ or f"press-{approval}-{person}",
            person=person,
            display=member(person).display,
            verdict=verdict,
            digest=shown,
            at=self.clock.now(),
        )

        said: list[Voting] = []

        async def body(reads: Reads) -> Commit[Voting]:
            at = At(reads, ACME, self.clock.now(), cast.id)
            voting, writes = await approvals.vote(at, approval, cast)
            said.append(voting)
            # After a lost reply it is there already: the first answer stands.
            return Commit(said[0] if isinstance(voting, AlreadyYours) else voting, writes)

        return await self.kit.commit(body)

    async def project(self) -> None:
        while await Projector(self.kit).once():
            pass

    async def put(self, *writes: Put[Job] | Put[Approval] | Put[Operation] | Put[Policy]) -> None:
        async def body(reads: Reads) -> Commit[None]:
            return Commit(None, writes)

        await self.kit.store.transact(body)

    async def job(self) -> Job:
        found = await self.kit.store.get(JOBS.key(ACME, "job-1"))
        assert found is not None
        return found

    async def approval(self, id_: str) -> Approval:
        found = await self.kit.store.get(APPROVALS.key(ACME, id_))
        assert found is not None
        return found

    async def operation(self, id_: str) -> Operation:
        found = await self.kit.store.get(OPERATIONS.key(ACME, id_))
        assert found is not None
        return found

    async def revision(self, id_: str) -> Revision:
        found = await self.kit.store.get(REVISIONS.key(ACME, id_))
        assert found is not None
        return found

    async def journaled(self, operation: str) -> Sequence[str]:
        ask = Ask(MODEL_CALLS, "of_operation", ACME, equals=(operation,))
        return [found.record.step for found in (await self.kit.store.find(ask)).rows]


async def play(
    folder: Path,
    *,
    clock: ManualClock | None = None,
    seed: int = 0,
    cognition: Scripted | None = None,
    desk: Desk | None = None,
    provider: Provider | None = None,
    wrap: Callable[[Store], Store] | None = None,
) -> Play:
    """A process over the data in `folder`."""
    clock = clock or ManualClock()
    kit = await make_kit(folder, clock=clock, seed=seed, wrap=wrap)
    spill = Spill(kit, FileBlobs(folder / "blobs"))
    cognition, desk = cognition or Scripted(), desk or Desk()
    provider = provider or Provider()
    thinker = Thinker(Compiler(spill), cognition)
    only = Only(provider)
    handlers: dict[str, Handler] = {
        "stage.read": Reading(spill, desk),
        **Pipeline(thinker, spill, terms, Dispatcher(only)).handlers,
        RECONCILE: Reconciler(only),
        VERIFY: Verifier(only),
    }
    return Play(kit, clock, cognition, desk, provider, handlers, spill, thinker)


async def at_stage(folder: Path, stage: str, clock: ManualClock | None = None) -> Play:
    """A job that stands before `stage`, decisions taken."""
    one = await play(folder, clock=clock)
    await one.begin()
    for _ in range(20):
        if (await one.job()).stage == stage:
            return one
        for operation in await one.ready():
            await one.carry(operation)
        if (await one.job()).stage != stage:
            await one.approve()
    message = f"{stage} was not reached"
    raise AssertionError(message)
