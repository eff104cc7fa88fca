"""The projector: turns dirty markers into job shells, needs-you items, cards and feed changes.

Single by lease. One bounded commit per job: it reads the job's records and the stored projection,
writes what differs, advances the contiguous head (INV-13) and deletes each marker at the version it
read. No other transaction touches the head. A job that cannot be projected, whatever breaks, is
reported and skipped; the others go on.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final, TypeVar

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
from runtime.domain.outlook import (
    JobRecords,
    Outlook,
    closed,
    conflicted,
    outlook,
    parked,
    undelivered,
)
from runtime.domain.values import Record, Scope
from runtime.engine.kit import Kit
from runtime.ports import Ask, Collection, Commit, Create, Delete, Put, Reads, Write
from runtime.stores.collections import (
    APPROVALS,
    CARDS,
    COMMANDS,
    EVENTS,
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

R = TypeVar("R", bound=Record)

log = structlog.get_logger()


class Projector:
    """Projects what changed. `once` handles one page of markers."""

    def __init__(self, kit: Kit) -> None:
        """Read and write through the kit's store."""
        self._kit = kit
        self._after: str | None = None

    async def once(self) -> bool:
        """Project one page; whether it is worth looking again at once.

        What cannot be projected keeps its marker and is tried again after a pause. A page of
        nothing else is passed over, so that no number of broken jobs hides the ones behind them.
        """
        page = await self._kit.store.find(
            Ask(MARKERS, "waiting", None, after=self._after, limit=PAGE)
        )
        done = 0
        for path, cause in page.unreadable:
            log.error("marker_unreadable", key=path, cause=cause)
        for found in page.rows:
            try:
                await self._project(found.key.scope, found.record)
                done += 1
            except Exception as error:  # noqa: BLE001 - one broken job must not hide the others
                log.error(  # noqa: TRY400 - a traceback may quote a draft (INV-20)
                    "projection_failed", marker=found.record.id, error=type(error).__name__
                )
        self._after = None if done else page.cursor
        return done > 0 or page.cursor is not None

    async def _project(self, scope: Scope, marker: DirtyMarker) -> None:
        now = self._kit.clock.now()
        key = MARKERS.key(scope, marker.id)

        async def body(reads: Reads) -> Commit[None]:
            stored = await reads.get(key)
            if stored is None:
                return Commit(None)
            writes: list[Write] = [Delete(key)]
            match marker.kind:
                case "job":
                    job = await reads.get(JOBS.key(scope, marker.subject))
                    if job is not None:
                        seen = outlook(await _records(reads, scope, job))
                        writes.extend(await _difference(reads, scope, seen, now))
                case "operation":
                    writes.extend(await _parked(reads, scope, marker.subject, now))
                case "card":
                    writes.extend(await _undelivered(reads, scope, marker.subject, now))
                case "event":
                    writes.extend(await _conflicted(reads, scope, marker.subject, now))
            return Commit(None, tuple(writes))

        await self._kit.commit(body)


async def _records(reads: Reads, scope: Scope, job: Job) -> JobRecords:
    """What says where one job stands: its current approval, and those that still seem open.

    Reads as much after a hundred edits as after one.
    """
    items = await reads.find(Ask(ITEMS, "of_job", scope, equals=(job.id, True), limit=ITEMS_MAX))
    wanted = {
        row.record.subject
        for row in items.rows
        if row.record.kind in {"approval", "strategy_decision"}
    }
    wanted |= {job.approval} if job.approval else set()
    approvals = [await _one(reads, APPROVALS, scope, id_) for id_ in sorted(wanted)]
    command = await _one(reads, COMMANDS, scope, job.command)
    holder = None if command is None else command.holder.operation
    return JobRecords(
        job=job,
        approvals=tuple(approval for approval in approvals if approval is not None),
        command=command,
        holder=await _one(reads, OPERATIONS, scope, holder),
        operation=await _one(reads, OPERATIONS, scope, job.operation),
        receipt=await _one(reads, RECEIPTS, scope, job.receipt),
        verification=await _one(reads, VERIFICATIONS, scope, job.verification),
    )


async def _one(reads: Reads, collection: Collection[R], scope: Scope, id_: str | None) -> R | None:
    return None if id_ is None else await reads.get(collection.key(scope, id_))


async def _parked(reads: Reads, scope: Scope, id_: str, now: datetime) -> Sequence[Write]:
    """The item of an operation without a job that only a person can move on."""
    operation = await reads.get(OPERATIONS.key(scope, id_))
    return [] if operation is None else await _item(reads, scope, parked(operation), now)


async def _undelivered(reads: Reads, scope: Scope, id_: str, now: datetime) -> Sequence[Write]:
    """The item of a card that reaches nobody."""
    card = await reads.get(CARDS.key(scope, id_))
    return [] if card is None else await _item(reads, scope, undelivered(card), now)


async def _conflicted(reads: Reads, scope: Scope, id_: str, now: datetime) -> Sequence[Write]:
    """The item of a source ID that came with two contents."""
    event = await reads.get(EVENTS.key(scope, id_))
    return [] if event is None else await _item(reads, scope, conflicted(event), now)


async def _item(reads: Reads, scope: Scope, item: NeedsYouItem, now: datetime) -> Sequence[Write]:
    stored = await reads.get(ITEMS.key(scope, item.id))
    if stored == item or (stored is None and not item.open):
        return []
    change = ("item_upserted" if item.open else "item_closed", item.id, item.view)
    return [
        Put(ITEMS.key(scope, item.id), item),
        *await _item_cards(reads, scope, item, now),
        *await _feed(reads, scope, [change], now),
    ]


async def _difference(reads: Reads, scope: Scope, seen: Outlook, now: datetime) -> Sequence[Write]:
    """The writes that make the stored projection equal to the outlook."""
    writes: list[Write] = []
    changes: list[tuple[str, str, str]] = []
    shell = seen.shell
    known = await reads.get(SHELLS.key(scope, shell.id))
    if known != shell:
        writes.append(Put(SHELLS.key(scope, shell.id), shell))
        changes.append(("job_upserted", shell.id, shell.view))
        if not shell.open and (known is None or known.open):
            writes.append(_outcome(scope, shell, seen.home, now))
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


def _outcome(scope: Scope, shell: JobShell, home: str, now: datetime) -> Put[Card]:
    """A job that ended says so in a new message, once: edits of its card notify nobody."""
    id_ = card_id("outcome", shell.id, home)
    card = Card(
        id=id_,
        subject="outcome",
        subject_id=shell.id,
        destination=home,
        wanted=shell.view,
        due_at=now,
        created_at=now,
    )
    return Put(CARDS.key(scope, id_), card)


async def _job_cards(reads: Reads, scope: Scope, shell: JobShell, now: datetime) -> list[Write]:
    page = await reads.find(Ask(CARDS, "of_subject", scope, equals=(shell.id,), limit=CARDS_MAX))
    return [
        Put(row.key, cards.want(row.record, shell.view, now))
        for row in page.rows
        if row.record.wanted != shell.view and row.record.subject == "job"
    ]


async def _item_cards(reads: Reads, scope: Scope, item: NeedsYouItem, now: datetime) -> list[Write]:
    """Existing cards follow the item; a newly open one is told in its job's own chat."""
    page = await reads.find(Ask(CARDS, "of_subject", scope, equals=(item.id,), limit=CARDS_MAX))
    writes: list[Write] = [
        Put(row.key, cards.want(row.record, item.view, now))
        for row in page.rows
        if row.record.wanted != item.view
    ]
    to = item.destination
    if item.open and to and all(row.record.destination != to for row in page.rows):
        card = Card(
            id=card_id("item", item.id, to),
            subject="item",
            subject_id=item.id,
            destination=to,
            wanted=item.view,
            due_at=now,
            created_at=now,
        )
        writes.append(Put(CARDS.key(scope, card.id), card))
    return writes
