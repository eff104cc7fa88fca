"""The snapshot: what the compiler reads of the store, in one read-only transaction.

Every list has a limit. A list of authority that is longer, or that holds an unreadable row, is an
error (INV-9); any other is shown up to its limit and the rest is an omission. No history is read:
what an event or an operation did stands in the records that it changed. (INV-8: one transaction,
so one moment.)
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeVar

from runtime.domain.approval import Approval
from runtime.domain.effect import Command
from runtime.domain.event import Event
from runtime.domain.feed import JobShell, NeedsYouItem
from runtime.domain.job import Job
from runtime.domain.journal import ModelCall
from runtime.domain.material import Omission
from runtime.domain.operation import Operation
from runtime.domain.policy import Policy
from runtime.domain.projection import Agent
from runtime.domain.receipt import Receipt, Verification
from runtime.domain.revision import Revision, RevisionKind
from runtime.domain.values import Fence, Record, Tenant
from runtime.errors import FenceLost, InvariantBroken, ProjectionOverflow, RecordUnreadable
from runtime.ports import Ask, Commit, Found, Page, Reads, Store
from runtime.stores.collections import (
    APPROVALS,
    COMMANDS,
    EVENTS,
    FEED_CHANGES,
    FEED_HEADS,
    ITEMS,
    JOBS,
    MODEL_CALLS,
    OPERATIONS,
    POLICIES,
    RECEIPTS,
    REVISIONS,
    SHELLS,
    VERIFICATIONS,
)

AUTHORITY_MAX: Final = 200
OBSERVATIONS_MAX: Final = 50
CALLS_MAX: Final = 500
CHAT_MAX: Final = 20
NAMED_MAX: Final = 3
FEED_MAX: Final = 100
NUMBER: Final = re.compile(r"(?<![\w.,-])([0-9]{1,9})(?![\w-])")

BODIES: Final[dict[Agent, tuple[RevisionKind, ...]]] = {
    "reader": (),
    "analyst": (),
    "strategist": ("analysis",),
    "writer": ("strategy", "analysis"),
    "reviewer": ("draft", "strategy", "analysis"),
    "chat": (),
}
"""Whose bodies an agent is shown; the digests of all current revisions are shown to each."""

R = TypeVar("R", bound=Record)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One moment of what concerns one operation."""

    operation: Operation
    job: Job | None
    policy: Policy | None
    event: Event | None = None
    approvals: tuple[Approval, ...] = ()
    commands: tuple[Command, ...] = ()
    receipts: tuple[Receipt, ...] = ()
    verifications: tuple[Verification, ...] = ()
    bodies: tuple[Revision, ...] = ()
    calls: tuple[ModelCall, ...] = ()
    items: tuple[NeedsYouItem, ...] = ()
    shells: tuple[JobShell, ...] = ()
    omissions: tuple[Omission, ...] = ()


async def snapshot(
    store: Store, scope: Tenant, fence: Fence, agent: Agent, question: Callable[[Event], str]
) -> Snapshot:
    """Read it. `question` finds in a stored event what a person asked.

    Raises:
        FenceLost: the operation is not at this epoch.
        ProjectionOverflow: more approvals or commands than a projection can hold.
        RecordUnreadable: a record of authority cannot be read.
    """

    async def body(reads: Reads) -> Commit[Snapshot]:
        return Commit(await _Reading(reads, scope).read(fence, agent, question))

    return await store.transact(body)


class _Reading:
    """One attempt of the transaction."""

    def __init__(self, reads: Reads, scope: Tenant) -> None:
        self._reads = reads
        self._scope = scope
        self._omissions: list[Omission] = []

    async def read(self, fence: Fence, agent: Agent, question: Callable[[Event], str]) -> Snapshot:
        operation = await self._reads.get(OPERATIONS.key(self._scope, fence.operation))
        if operation is None or operation.epoch != fence.epoch:
            found = "missing" if operation is None else f"epoch {operation.epoch}"
            raise FenceLost(operation=fence.operation, epoch=fence.epoch, found=found)
        policy = await self._reads.get(POLICIES.key(self._scope, "current"))
        job = await self._job(operation)
        base = Snapshot(operation, job, policy)
        if job is not None:
            base = await self._of_job(base, job, agent)
        if agent == "analyst":
            base = replace(base, calls=await self._calls(operation))
        if agent == "chat":
            base = await self._of_chat(base, operation, question)
        return replace(base, omissions=tuple(self._omissions))

    async def _job(self, operation: Operation) -> Job | None:
        if operation.job is None:
            return None
        job = await self._reads.get(JOBS.key(self._scope, operation.job))
        if job is None:
            raise InvariantBroken(invariant="INV-8", detail=f"{operation.id} names no job")
        return job

    async def _of_job(self, base: Snapshot, job: Job, agent: Agent) -> Snapshot:
        about = Ask(APPROVALS, "of_job", self._scope, (job.id,), limit=AUTHORITY_MAX)
        approvals = await self._authority(about)
        sent = Ask(COMMANDS, "of_job", self._scope, (job.id,), limit=AUTHORITY_MAX)
        commands = await self._authority(sent)
        seen = Ask(RECEIPTS, "of_job", self._scope, (job.id,), limit=OBSERVATIONS_MAX)
        looked = Ask(VERIFICATIONS, "of_job", self._scope, (job.id,), limit=OBSERVATIONS_MAX)
        return replace(
            base,
            approvals=tuple(approvals),
            commands=tuple(commands),
            receipts=tuple(await self._listed(seen, f"jobs/{job.id}")),
            verifications=tuple(await self._listed(looked, f"jobs/{job.id}")),
            bodies=tuple([await self._body(job, kind) for kind in BODIES[agent]]),
        )

    async def _body(self, job: Job, kind: RevisionKind) -> Revision:
        ref = job.heads.get(kind)
        found = None if ref is None else await self._reads.get(REVISIONS.key(self._scope, ref.id))
        if found is None or found.ref != ref:
            raise InvariantBroken(invariant="INV-8", detail=f"{job.id} has no {kind} as referred")
        return found

    async def _calls(self, operation: Operation) -> tuple[ModelCall, ...]:
        ask = Ask(MODEL_CALLS, "of_operation", self._scope, (operation.id,), limit=CALLS_MAX)
        return tuple(await self._listed(ask, f"operations/{operation.id}"))

    async def _of_chat(
        self, base: Snapshot, operation: Operation, question: Callable[[Event], str]
    ) -> Snapshot:
        event = None
        if operation.event is not None:
            event = await self._reads.get(EVENTS.key(self._scope, operation.event))
        items = Ask(ITEMS, "open", self._scope, (True,), limit=CHAT_MAX)
        return replace(
            base,
            event=event,
            items=tuple(await self._listed(items, "items", "/needs lists them")),
            shells=await self._jobs("" if event is None else question(event)),
        )

    async def _jobs(self, question: str) -> tuple[JobShell, ...]:
        """Jobs that the question names by number, then the open ones, newest change first."""
        found: dict[str, JobShell] = {}
        for id_ in await self._named(question):
            if shell := await self._reads.get(SHELLS.key(self._scope, id_)):
                found[id_] = shell
        for id_ in await self._changed():
            shell = await self._reads.get(SHELLS.key(self._scope, id_))
            if shell is not None and shell.open:
                found.setdefault(id_, shell)
        ask = Ask(SHELLS, "open", self._scope, (True,), limit=CHAT_MAX)
        for shell in reversed(await self._listed(ask, "shells", "/jobs lists them")):
            found.setdefault(shell.id, shell)
        return tuple(found.values())[:CHAT_MAX]

    async def _named(self, question: str) -> list[str]:
        """The jobs whose numbers stand in the question."""
        numbers = dict.fromkeys(int(found) for found in NUMBER.findall(question))
        ids: list[str] = []
        for number in list(numbers)[:NAMED_MAX]:
            ask = Ask(JOBS, "by_number", self._scope, since=number, before=number + 1, limit=1)
            page = await self._reads.find(ask)
            ids += [row.record.id for row in page.rows]
        return ids

    async def _changed(self) -> list[str]:
        """The jobs of the newest changes in the feed, newest first."""
        head = await self._reads.get(FEED_HEADS.key(self._scope, "head"))
        if head is None:
            return []
        since = max(head.sequence - FEED_MAX + 1, 0)
        page = await self._reads.find(
            Ask(FEED_CHANGES, "after", self._scope, since=since, limit=FEED_MAX)
        )
        changes = reversed(_records(page.rows))
        ids = dict.fromkeys(each.subject for each in changes if each.kind == "job_upserted")
        return list(ids)[:CHAT_MAX]

    async def _authority(self, ask: Ask[R]) -> Sequence[R]:
        page = await self._reads.find(ask)
        if page.unreadable:
            path, cause = page.unreadable[0]
            raise RecordUnreadable(key=path, cause=cause)
        if page.cursor is not None:
            raise ProjectionOverflow(
                section=ask.collection.name,
                needed_records=f"more than {ask.limit}",
                budget_records=ask.limit,
            )
        return _records(page.rows)

    async def _listed(
        self, ask: Ask[R], record: str, how: str = "read the rest from its record"
    ) -> Sequence[R]:
        page: Page[R] = await self._reads.find(ask)
        name = ask.collection.name
        if page.cursor is not None:
            label = f"{name} beyond the first {ask.limit}"
            self._omissions.append(
                Omission(record=record, label=label, why="bounded list", how=how)
            )
        if page.unreadable:
            label = f"{len(page.unreadable)} of {name}"
            self._omissions.append(
                Omission(record=record, label=label, why="unreadable", how="repair the records")
            )
        return _records(page.rows)


def _records(rows: tuple[Found[R], ...]) -> list[R]:
    return [row.record for row in rows]
