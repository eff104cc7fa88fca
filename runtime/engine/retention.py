"""Retention: what has served its time is really deleted, and what never became whole is given up.

Model-free and bounded: each sweep takes at most `limit` artifacts of each finding, in order, and
goes on behind the last one next time, so that a row which cannot be dealt with never blocks others.
One transaction per finding. The record says that bytes are to be deleted before they are, and that
they are gone only afterwards: a crash between any two leaves what the next sweep completes.
Expired bytes are no evidence from the first commit on (INV-10).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

from runtime.domain import artifact as artifacts
from runtime.domain.artifact import Artifact, blob_name
from runtime.engine.kit import Kit
from runtime.ports import Ask, Blobs, Commit, Found, Key, Put, Reads, Value
from runtime.stores.collections import ARTIFACTS

INSTANT: Final = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Cursors:
    """Where the last sweep stopped, by finding. Losing them only begins again at the front."""

    stuck: str | None = None
    expiring: str | None = None
    failed: str | None = None
    expired: str | None = None


@dataclass(frozen=True, slots=True)
class Swept:
    """What one sweep did. `skipped` are (key path, cause) of what it could not deal with."""

    given_up: tuple[str, ...] = ()
    expired: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()
    skipped: tuple[tuple[str, str], ...] = ()
    cursors: Cursors = field(default_factory=Cursors)


async def sweep(kit: Kit, blobs: Blobs, limit: int, cursors: Cursors | None = None) -> Swept:
    """One bounded pass over all tenants.

    Args:
        kit: the engine's ports; its store is the one across tenants.
        blobs: where the bytes are.
        limit: how many artifacts of each finding.
        cursors: those of the sweep before, to go on behind it.
    """
    after = cursors or Cursors()
    run = _Sweep(kit, blobs, limit)
    stuck = await run.page("stuck", ("writing",), after.stuck, run.give_up, timed=True)
    expiring = await run.page("expiring", ("ready",), after.expiring, run.expire, timed=True)
    failed = await run.page("undeleted", ("failed", False), after.failed, run.delete)
    expired = await run.page("undeleted", ("expired", False), after.expired, run.delete)
    return Swept(
        given_up=tuple(run.given_up),
        expired=tuple(run.expired),
        deleted=tuple(run.deleted),
        skipped=tuple(run.skipped),
        cursors=Cursors(stuck, expiring, failed, expired),
    )


class _Sweep:
    """One pass."""

    def __init__(self, kit: Kit, blobs: Blobs, limit: int) -> None:
        self._kit = kit
        self._blobs = blobs
        self._limit = limit
        self.given_up: list[str] = []
        self.expired: list[str] = []
        self.deleted: list[str] = []
        self.skipped: list[tuple[str, str]] = []

    async def page(
        self,
        query: str,
        equals: tuple[Value, ...],
        after: str | None,
        deal: Callable[[Found[Artifact]], Awaitable[None]],
        *,
        timed: bool = False,
    ) -> str | None:
        """Deal with one page, row by row; the cursor to go on from.

        A `timed` finding is due from its own instant on, that instant included.
        """
        before = self._kit.clock.now() + INSTANT if timed else None
        ask = Ask(ARTIFACTS, query, None, equals, before=before, after=after, limit=self._limit)
        page = await self._kit.store.find(ask)
        self.skipped.extend(page.unreadable)
        for row in page.rows:
            try:
                await deal(row)
            except Exception as error:  # noqa: BLE001 - one bad row never blocks the others
                self.skipped.append((row.key.path, type(error).__name__))
        return page.cursor

    async def give_up(self, row: Found[Artifact]) -> None:
        """Writing past its time → failed."""
        now = self._kit.clock.now()
        if await self._change(row.key, lambda known: artifacts.give_up(known, now)):
            self.given_up.append(row.key.path)

    async def expire(self, row: Found[Artifact]) -> None:
        """Ready past its time → expired, bytes still there."""
        now = self._kit.clock.now()
        if await self._change(row.key, lambda known: artifacts.expire(known, now)):
            self.expired.append(row.key.path)

    async def delete(self, row: Found[Artifact]) -> None:
        """Delete the bytes, then say so."""
        await self._blobs.delete(blob_name(row.key.scope, row.record))
        if await self._change(
            row.key,
            # Stored anew meanwhile: then other bytes are meant, and these were rightly deleted.
            lambda known: (
                artifacts.forget(known) if known.generation == row.record.generation else known
            ),
        ):
            self.deleted.append(row.key.path)

    async def _change(self, key: Key[Artifact], change: Callable[[Artifact], Artifact]) -> bool:
        """Commit the change of one record; whether it changed here."""
        changed: Artifact | None = None

        async def body(reads: Reads) -> Commit[bool]:
            nonlocal changed
            known = await reads.get(key)
            if known is None:
                return Commit(False)
            if known == changed:
                return Commit(True)  # the reply of this very commit was lost
            changed = change(known)
            if changed == known:
                return Commit(False)
            return Commit(True, (Put(key, changed),))

        return await self._kit.commit(body)
