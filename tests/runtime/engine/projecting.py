"""The feed as a viewer holds it, and jobs that change: parts of the projector's tests."""

from __future__ import annotations

from dataclasses import dataclass

from runtime.domain.card import Card
from runtime.domain.feed import FeedChange, JobShell, NeedsYouItem
from runtime.domain.job import Job
from runtime.domain.values import Scope
from runtime.engine.kit import Kit
from runtime.engine.projector import Projector
from runtime.engine.stages import put_job
from runtime.ports import Ask, Commit, Put, Reads
from runtime.stores.collections import CARDS, FEED_CHANGES, FEED_HEADS, ITEMS, JOBS, SHELLS
from tests.effects_made import Export
from tests.runtime.engine.playing import Play
from tests.world import ACME

ROUNDS_MAX = 50


@dataclass(frozen=True)
class Snapshot:
    """What a viewer of the feed holds: the head, and the view of each job and open item."""

    head: int
    shells: dict[str, str]
    items: dict[str, str]

    def after(self, changes: list[FeedChange]) -> Snapshot:
        """This snapshot with later changes applied in order."""
        shells, items, head = dict(self.shells), dict(self.items), self.head
        for change in changes:
            if change.sequence <= self.head:
                continue
            assert change.sequence == head + 1, "a gap"
            head = change.sequence
            match change.kind:
                case "job_upserted":
                    shells[change.subject] = change.view
                case "item_upserted":
                    items[change.subject] = change.view
                case "item_closed":
                    items.pop(change.subject, None)
        return Snapshot(head, shells, items)


async def snapshot(kit: Kit, scope: Scope = ACME) -> Snapshot:
    async def body(reads: Reads) -> Commit[Snapshot]:
        head = await reads.get(FEED_HEADS.key(scope, "head"))
        shells = [
            row.record
            for open_ in (True, False)
            for row in (await reads.find(Ask(SHELLS, "open", scope, (open_,), limit=500))).rows
        ]
        items = await reads.find(Ask(ITEMS, "open", scope, equals=(True,), limit=500))
        return Commit(
            Snapshot(
                head.sequence if head else 0,
                {shell.id: shell.view for shell in shells},
                {row.record.id: row.record.view for row in items.rows},
            )
        )

    return await kit.store.transact(body)


async def feed(kit: Kit, scope: Scope = ACME) -> list[FeedChange]:
    page = await kit.store.find(Ask(FEED_CHANGES, "after", scope, limit=500))
    assert page.cursor is None
    return [row.record for row in page.rows]


async def project(kit: Kit) -> None:
    for _ in range(ROUNDS_MAX):
        if not await Projector(kit).once():
            return
    message = "the projector does not come to rest"
    raise AssertionError(message)


async def begin(kit: Kit, *made: Export, scope: Scope = ACME) -> None:
    """Store jobs with their records, each marked as changed."""

    async def body(reads: Reads) -> Commit[None]:
        writes: list[object] = []
        for each in made:
            writes += [Put(write.key, write.record) for write in each.writes]  # type: ignore[union-attr]  # no deletes among them
            writes += put_job(scope, each.job, each.operation, kit.clock.now())
        return Commit(None, tuple(writes))  # type: ignore[arg-type]  # all are writes

    await kit.commit(body)


async def change(kit: Kit, job: Job, made: Export, scope: Scope = ACME) -> None:
    async def body(reads: Reads) -> Commit[None]:
        return Commit(None, tuple(put_job(scope, job, made.operation, kit.clock.now())))

    await kit.commit(body)


async def job_of(kit: Kit, id_: str) -> Job:
    found = await kit.store.get(JOBS.key(ACME, id_))
    assert found is not None
    return found


async def shell_of(kit: Kit, id_: str = "job-1", scope: Scope = ACME) -> JobShell:
    found = await kit.store.get(SHELLS.key(scope, id_))
    assert found is not None
    return found


async def open_items(one: Play) -> list[NeedsYouItem]:
    page = await one.kit.store.find(Ask(ITEMS, "open", ACME, equals=(True,)))
    return [row.record for row in page.rows]


async def cards(one: Play, subject: str) -> list[Card]:
    page = await one.kit.store.find(Ask(CARDS, "of_subject", ACME, equals=(subject,)))
    return [row.record for row in page.rows]
