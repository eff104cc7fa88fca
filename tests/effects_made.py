"""An approved export, ready to be carried: records for the tests of effects, and a provider.

The provider is a real implementation of the Connector port with a ledger: what truly happened in
the outside world, whatever its answers say. Tests judge by the ledger.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Literal

from connectors.content_pack.payload import EFFECT, Origin, build_payload
from runtime.domain.approval import Approval, Approved, Vote
from runtime.domain.effect import (
    Answer,
    AnswerAbsent,
    AnswerApplied,
    AnswerNotEntered,
    AnswerRejected,
    AnswerUnknown,
    Command,
    Descriptor,
    Finding,
    Terms,
    prepare,
)
from runtime.domain.job import Job, Source, Step
from runtime.domain.operation import Goal, Operation, Pending, Refused
from runtime.domain.people import Member, Role
from runtime.domain.policy import Policy
from runtime.domain.proposal import Analysis, Draft, Quote, Section
from runtime.domain.revision import Revision, revise
from runtime.domain.values import Fence, Trust, identity, sha256
from runtime.ports import Connector, Create, Write
from runtime.stores.collections import APPROVALS, JOBS, MEMBERS, OPERATIONS, POLICIES, REVISIONS
from tests.world import ACME, START

SOURCE = "Launch is on Friday. Tickets cost nothing. “Бесплатно” 🚀 for everyone."
QUOTES = (
    Quote(id="F1", text="Launch is on Friday.", start=0),
    Quote(id="F2", text="Tickets cost nothing.", start=21),
    Quote(id="F3", text="“Бесплатно” 🚀 for everyone.", start=43),
)
ANA = "telegram:1"
BO = "telegram:2"


class Crash(BaseException):
    """The process dies here; nothing but the store and the outside world remains."""


def draft(title: str = "Launch: Бесплатно 🚀") -> Draft:
    """A draft that rests on two of the three quotes."""
    sections = (
        Section(heading="When", text="Launch is on Friday.", quotes=("F1",)),
        Section(text="“Бесплатно” 🚀 for everyone.\n\nTickets cost nothing.", quotes=("F3",)),
    )
    return Draft(title=title, sections=sections)


def analysis() -> Analysis:
    return Analysis(title="Launch", topics=("launch",), summary=("F1",), quotes=QUOTES)


def revision(job: str, body: Draft | Analysis, now: datetime = START) -> Revision:
    return revise(
        job,
        body,
        None,
        author="offline",
        trust=Trust.MODEL,
        based_on=(),
        operation=f"{job}:write",
        now=now,
    )


@dataclass
class Export:
    """Everything that stands when an approved export begins."""

    job: Job
    approval: Approval
    operation: Operation
    revisions: tuple[Revision, ...]
    policy: Policy
    members: tuple[Member, ...]

    @property
    def terms(self) -> Terms:
        assert self.approval.terms is not None
        return self.approval.terms

    @property
    def writes(self) -> list[Write]:
        """All of it, as one commit in `ACME`."""
        return [
            Create(JOBS.key(ACME, self.job.id), self.job),
            Create(APPROVALS.key(ACME, self.approval.id), self.approval),
            Create(OPERATIONS.key(ACME, self.operation.id), self.operation),
            Create(POLICIES.key(ACME, "current"), self.policy),
            *(Create(REVISIONS.key(ACME, item.id), item) for item in self.revisions),
            *(Create(MEMBERS.key(ACME, item.id), item) for item in self.members),
        ]


def member(person: str, role: Role = Role.APPROVER) -> Member:
    name = {ANA: "Ana", BO: "Bo"}.get(person, person)
    return Member(id=person, role=role, display=name, since=START, by="telegram:1")


def vote(person: str, digest: str) -> Vote:
    return Vote(
        id=f"event-{person}",
        person=person,
        display=member(person).display,
        verdict="approve",
        digest=digest,
        at=START,
    )


def source() -> Source:
    """A link whose credentials must not travel."""
    return Source(
        kind="link",
        name="launch.md",
        link="https://ana:secret@example.org/launch.md?token=1#top",
        text="artifact-1",
        text_digest=sha256(SOURCE.encode()),
        text_chars=len(SOURCE),
    )


def exporting(name: str, drafted: Revision, analysed: Revision) -> Job:
    """A job at its export."""
    return Job(
        id=name,
        number=17,
        title="Launch",
        home="telegram:100",
        by=ANA,
        source=source(),
        stage="export",
        steps=(Step(stage="decide_draft", at=START, note="by Ana"),),
        heads={"draft": drafted.ref, "analysis": analysed.ref},
        approval=f"{drafted.id}:approval",
        operation=f"{name}:export",
        correlation=f"correlation-{name}",
        created_at=START,
        updated_at=START,
    )


def approved(job: Job, drafted: Revision, terms: Terms) -> Approval:
    """Ana allowed exactly these terms at `START`."""
    return Approval(
        id=f"{drafted.id}:approval",
        job=job.id,
        kind="effect",
        subject=drafted.ref,
        digest=terms.digest,
        terms=terms,
        policy_version=1,
        needed=1,
        operation=f"{job.id}:export",
        requested_at=START,
        decide_by=START + timedelta(days=7),
        valid_for=timedelta(days=2),
        votes=(vote(ANA, terms.digest),),
        state=Approved(at=START, valid_until=START + timedelta(days=2)),
    )


def export(name: str = "job-1", *, title: str = "Launch: Бесплатно 🚀") -> Export:
    """An export that Ana approved at `START`."""
    drafted, analysed = revision(name, draft(title)), revision(name, analysis())
    job = exporting(name, drafted, analysed)
    origin = Origin(ACME, job, (analysed.ref, drafted.ref))
    payload = build_payload(draft(title), analysis(), origin)
    terms = Terms(effect=EFFECT, account="packs", revision=drafted.ref, payload=payload)
    operation = Operation(
        id=f"{name}:export",
        kind="stage.export",
        goal=Goal(kind="stage.export", digest=identity("stage.export", name)),
        acceptance=("exactly the approved draft is exported, once",),
        job=name,
        subject=name,
        correlation=job.correlation,
        trace="00-trace-01",
        replay="reconcile",
        created_at=START,
        state=Pending(ready_at=START),
    )
    approval = approved(job, drafted, terms)
    revisions, policy = (drafted, analysed), Policy(since=START)
    return Export(job, approval, operation, revisions, policy, (member(ANA),))


def command(
    title: str = "Launch: Бесплатно 🚀", *, attempt: int = 1, name: str = "job-1"
) -> Command:
    """The prepared command of an approved export."""
    made = export(name, title=title)
    prepared = prepare(
        f"{made.approval.id}:command",
        name,
        made.approval.id,
        approved_digest=made.approval.digest,
        terms=made.terms,
        policy_version=1,
        holder=Fence(operation=made.operation.id, epoch=1),
        now=START,
    )
    assert not isinstance(prepared, Refused)
    return prepared.model_copy(update={"attempt": attempt})


Act = Literal[
    "apply",  # does it and says so
    "apply, reply lost",  # does it and cannot say so
    "apply, crash",  # does it, and the caller dies
    "crash",  # the caller dies before anything happens
    "reply lost",  # does nothing and cannot say so
    "reject",
    "not entered",
    "credential gap",
    "break",  # an unclassified fault
    "nothing",  # an answer that is none
    "absent",  # an answer that only a look may give
]
Look = Literal["truth", "unknown", "break", "not entered", "absent"]


@dataclass
class Provider:
    """A provider of `content_pack.export` whose ledger holds what truly happened."""

    script: list[Act] = field(default_factory=list)
    looks: list[Look] = field(default_factory=list)
    ledger: list[str] = field(default_factory=list)
    calls: list[tuple[str, int]] = field(default_factory=list)
    reconciled: int = 0
    damaged: bool = False

    @property
    def descriptor(self) -> Descriptor:
        return Descriptor(
            id="counting",
            label="A counting provider",
            capabilities=("export", "verify"),
            effects=("content_pack.export",),
            idempotent=False,
            independent_verification=True,
        )

    async def validate_connection(self) -> Finding:
        return Finding(ok=True, method="none", evidence="always there")

    async def prepare(self, terms: Terms) -> str | Finding:
        return terms.payload

    async def execute(self, command: Command) -> Answer:
        self.calls.append((command.id, command.attempt))
        act = self.script.pop(0) if self.script else "apply"
        if act.startswith("apply"):
            self.ledger.append(command.id)
        match act:
            case "apply":
                return self._applied(command)
            case "apply, reply lost" | "reply lost":
                return AnswerUnknown(reason="The answer was lost.")
            case "apply, crash" | "crash":
                raise Crash
            case "reject":
                return AnswerRejected(reason="The provider refused: too long.")
            case "not entered":
                return AnswerNotEntered(reason="The provider was not reached.")
            case "credential gap":
                return AnswerNotEntered(reason="The token has expired.", credential_gap=True)
            case "absent":
                return AnswerAbsent(proof="a send cannot know that")
            case "nothing":
                return None  # type: ignore[return-value]  # what foreign code may do
            case _:
                raise ZeroDivisionError

    async def verify(self, command: Command, reference: str) -> Finding:
        there = command.id in self.ledger and reference == f"there/{command.id}"
        if not there or self.damaged:
            return Finding(ok=False, method="ledger", evidence="It is not as it was.")
        return Finding(ok=True, method="ledger", evidence="It is there.", digest="a" * 64)

    async def reconcile(self, command: Command) -> Answer:
        self.reconciled += 1
        look = self.looks.pop(0) if self.looks else "truth"
        match look:
            case "unknown":
                return AnswerUnknown(reason="Not found in the last 50. Not proof.")
            case "not entered":
                return AnswerNotEntered(reason="The provider was not reached.")
            case "break":
                raise ZeroDivisionError
            case "truth" if command.id in self.ledger:
                return self._applied(command)
            case _:
                return AnswerAbsent(proof="the provider enforces the key, and has not seen it")

    def _applied(self, command: Command) -> AnswerApplied:
        return AnswerApplied(reference=f"there/{command.id}", digest="a" * 64)


@dataclass
class Only:
    """The connectors of a test: one, or none."""

    connector: Connector | None

    def for_effect(self, effect: str) -> Connector | Finding:
        if self.connector is None:
            return Finding(ok=False, method="registry", evidence=f"No connector for {effect}.")
        return self.connector
