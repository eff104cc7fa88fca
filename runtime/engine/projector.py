"""The projector: turns dirty markers into job shells, needs-you items, cards and feed changes.

Single by lease. One bounded commit per job: it reads the job's records and the stored projection,
writes what differs, advances the contiguous head (INV-13) and deletes each marker at the version it
read. No other transaction touches the head. A job whose records cannot be read is reported and
skipped; the others go on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import structlog

from runtime.domain import card as cards
from runtime.domain.card import Card, card_id
from runtime.domain.feed import (
    DirtyMarker,
    FeedChange,
    FeedHead,
    JobShell,
    NeedsYouItem,
    change_id,
)
from runtime.domain.job import Job
from runtime.domain.outlook import JobRecords, Outlook, closed, outlook
from runtime.domain.values import Scope
from runtime.engine.kit import Kit
from runtime.errors import HarmoniaError
from runtime.ports import Ask, Commit, Create, Delete, Put, Reads, Write
from runtime.stores.collections import (
    APPROVALS,
    CARDS,
    COMMANDS,
    FEED_CHANGES,
    FEED_HEADS,
    ITEMS,
    JOBS,
    MARKERS,
    OPERATIONS,
    RECEIPTS,
    SHELLS,
    VERIFICATIONS,
)

PAGE: Final = 200
ITEMS_MAX: Final = 50
CARDS_MAX: Final = 50

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class _Group:
    """Markers that concern one job."""

    scope: Scope
    job: str
    markers: tuple[DirtyMarker, ...]


class Projector:
    """Projects what changed. `once` handles one page of markers."""

    def __init__(self, kit: Kit) -> None:
        """Read and write through the kit's store."""
        self._kit = kit

    async def once(self) -> bool:
        """Project one page; whether there was anything to do."""
        page = await self._kit.store.find(Ask(MARKERS, "waiting", None, limit=PAGE))
        for path, cause in page.unreadable:
            log.error("marker_unreadable", key=path, cause=cause)
        groups: dict[tuple[Scope, str], list[DirtyMarker]] = {}
        for found in page.rows:
            scope, marker = found.key.scope, found.record
            job = await self._job_of(scope, marker)
            groups.setdefault((scope, job or ""), []).append(marker)
        for (scope, job), markers in groups.items():
            try:
                await self._project(_Group(scope, job, tuple(markers)))
            except HarmoniaError as error:
                log.error(  # noqa: TRY400 - a traceback may quote a draft (INV-20)
                    "projection_failed", job=job, error=type(error).__name__
                )
        return bool(page.rows)

    async def _job_of(self, scope: Scope, marker: DirtyMarker) -> str | None:
        store, subject = self._kit.store, marker.subject
        match marker.kind:
            case "job":
                return subject
            case "approval":
                approval = await store.get(APPROVALS.key(scope, subject))
                return None if approval is None else approval.job
            case "command":
                command = await store.get(COMMANDS.key(scope, subject))
                return None if command is None else command.job
            case "operation":
                operation = await store.get(OPERATIONS.key(scope, subject))
                return None if operation is None else operation.job
            case "card":
                return None

    async def _project(self, group: _Group) -> None:
        now = self._kit.clock.now()

        async def body(reads: Reads) -> Commit[None]:
            writes: list[Write] = []
            for marker in group.markers:
                key = MARKERS.key(group.scope, marker.id)
                if await reads.get(key) == marker:
                    writes.append(Delete(key))
            job = await reads.get(JOBS.key(group.scope, group.job)) if group.job else None
            if job is not None:
                seen = outlook(await self._records(reads, group, job))
                writes.extend(await _difference(reads, group.scope, seen, now))
            return Commit(None, tuple(writes))

        await self._kit.commit(body)

    async def _records(self, reads: Reads, group: _Group, job: Job) -> JobRecords:
        scope = group.scope
        wanted = {job.approval} if job.approval else set()
        wanted |= {marker.subject for marker in group.markers if marker.kind == "approval"}
        approvals = [
            approval
            for id_ in sorted(wanted)
            if (approval := await reads.get(APPROVALS.key(scope, id_))) is not None
        ]
        return JobRecords(
            job=job,
            approvals=tuple(approvals),
            command=await reads.get(COMMANDS.key(scope, job.command)) if job.command else None,
            operation=await reads.get(OPERATIONS.key(scope, job.operation))
            if job.operation
            else None,
            receipt=await reads.get(RECEIPTS.key(scope, job.receipt)) if job.receipt else None,
            verification=await reads.get(VERIFICATIONS.key(scope, job.verification))
            if job.verification
            else None,
        )


async def _difference(reads: Reads, scope: Scope, seen: Outlook, now: datetime) -> Sequence[Write]:
    """The writes that make the stored projection equal to the outlook."""
    writes: list[Write] = []
    changes: list[tuple[str, str, str]] = []
    shell = seen.shell
    if await reads.get(SHELLS.key(scope, shell.id)) != shell:
        writes.append(Put(SHELLS.key(scope, shell.id), shell))
        changes.append(("job_upserted", shell.id, shell.view))
    writes.extend(await _job_cards(reads, scope, shell, now))
    listed = {item.id for item in seen.items}
    page = await reads.find(Ask(ITEMS, "of_job", scope, equals=(shell.id, True), limit=ITEMS_MAX))
    over = [closed(row.record) for row in page.rows if row.record.id not in listed]
    for item in (*seen.items, *over):
        stored = await reads.get(ITEMS.key(scope, item.id))
        if stored == item:
            continue
        writes.append(Put(ITEMS.key(scope, item.id), item))
        changes.append(("item_upserted" if item.open else "item_closed", item.id, item.view))
        writes.extend(await _item_cards(reads, scope, item, now))
    writes.extend(await _feed(reads, scope, changes, now))
    return writes


async def _feed(
    reads: Reads, scope: Scope, changes: Sequence[tuple[str, str, str]], now: datetime
) -> list[Write]:
    """Contiguous changes and the head that counts them."""
    if not changes:
        return []
    key = FEED_HEADS.key(scope, "head")
    head = await reads.get(key) or FeedHead(sequence=0)
    writes: list[Write] = []
    for offset, (kind, subject, view) in enumerate(changes, start=1):
        sequence = head.sequence + offset
        change = FeedChange.model_validate(
            {
                "id": change_id(sequence),
                "sequence": sequence,
                "kind": kind,
                "subject": subject,
                "view": view,
                "at": now,
            }
        )
        writes.append(Create(FEED_CHANGES.key(scope, change.id), change))
    writes.append(Put(key, FeedHead(sequence=head.sequence + len(changes))))
    return writes


async def _job_cards(reads: Reads, scope: Scope, shell: JobShell, now: datetime) -> list[Write]:
    page = await reads.find(Ask(CARDS, "of_subject", scope, equals=(shell.id,), limit=CARDS_MAX))
    return [
        Put(row.key, cards.want(row.record, shell.view, now))
        for row in page.rows
        if row.record.wanted != shell.view
    ]


async def _item_cards(reads: Reads, scope: Scope, item: NeedsYouItem, now: datetime) -> list[Write]:
    """Existing cards follow the item; a newly open one is told in its job's own chat."""
    page = await reads.find(Ask(CARDS, "of_subject", scope, equals=(item.id,), limit=CARDS_MAX))
    writes: list[Write] = [
        Put(row.key, cards.want(row.record, item.view, now))
        for row in page.rows
        if row.record.wanted != item.view
    ]
    if item.open and all(row.record.destination != item.destination for row in page.rows):
        card = Card(
            id=card_id("item", item.id, item.destination),
            subject="item",
            subject_id=item.id,
            destination=item.destination,
            wanted=item.view,
            due_at=now,
            created_at=now,
        )
        writes.append(Put(CARDS.key(scope, card.id), card))
    return writes
