"""The SQLite store: the embedded default. Bodies run on the event loop, commits on one thread.

Reads take microseconds and run inline. Commits that become ready in one turn of the loop travel to
the writer thread together; whatever waits there becomes one batch with one fsync (group commit),
and its outcomes come back in one call. A commit once submitted is waited for even when its task is
cancelled, so nobody believes a commit undone that stands.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

from runtime.domain.values import Record
from runtime.errors import StoreUnavailable
from runtime.ports import Ask, Body, Clock, Collection, Ids, Key, Page
from runtime.stores.codec import NO_UPGRADES, Upgrades
from runtime.stores.sqlite_core import Outcome, Prepared, Seen, SqliteCore, open_core
from runtime.stores.sqlite_files import LOCK_SECONDS, Turn
from runtime.stores.sqlite_schema import Table
from runtime.stores.transactions import DEADLINE_SECONDS, Stale, Transactions

BATCH_MAX = 256

R = TypeVar("R", bound=Record)
T = TypeVar("T")


class _Waiting:
    """A submitted commit and who waits for it."""

    __slots__ = ("done", "future", "outcome", "prepared")

    def __init__(self, prepared: Prepared, future: asyncio.Future[None]) -> None:
        self.prepared = prepared
        self.future = future
        self.outcome: Outcome | BaseException = None
        self.done = False


class _Reads:
    """What one attempt of a body sees: each key once, so that it sees one value of it."""

    __slots__ = ("_core", "_got", "seen")

    def __init__(self, core: SqliteCore) -> None:
        self._core = core
        self._got: dict[str, Any] = {}
        self.seen = Seen()

    async def get(self, key: Key[R]) -> R | None:
        path = key.path
        if path in self._got:
            known: R | None = self._got[path]
            return known
        record = self._got[path] = self._core.get(key, self.seen)
        return record

    async def find(self, ask: Ask[R]) -> Page[R]:
        return self._core.find(ask, self.seen)


class SqliteStore:
    """`Store` on one SQLite file. See the module docstring; opened by `open`."""

    def __init__(self, core: SqliteCore, transactions: Transactions) -> None:
        self._core = core
        self._transactions = transactions
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ready: list[_Waiting] = []
        self._queue: queue.SimpleQueue[list[_Waiting] | None] = queue.SimpleQueue()
        self._unanswered = 0
        self._closed = False
        self._thread = threading.Thread(target=self._write, name="harmonia-store", daemon=True)
        self._thread.start()

    @classmethod
    def open(
        cls,
        path: Path,
        collections: Sequence[Collection[Any]],
        clock: Clock,
        ids: Ids,
        *,
        upgrades: Upgrades = NO_UPGRADES,
        deadline_seconds: float = DEADLINE_SECONDS,
        lock_seconds: float = LOCK_SECONDS,
    ) -> SqliteStore:
        """Open or create the file. `lock_seconds` bounds the wait for other processes.

        Raises:
            StoreUnavailable: not a database, another program's, a newer version's, or locked.
        """
        tables = [Table(collection, upgrades) for collection in collections]
        turn = Turn(pause=threading.Event().wait, wait_seconds=lock_seconds)
        core = open_core(str(path), tables, turn)
        return cls(core, Transactions(clock, ids, deadline_seconds))

    async def get(self, key: Key[R]) -> R | None:
        """The record now. Raises RecordUnreadable."""
        self._refuse_closed()
        return self._core.get(key, None)

    async def find(self, ask: Ask[R]) -> Page[R]:
        """One page now."""
        self._refuse_closed()
        return self._core.find(ask, Seen())

    async def transact(self, body: Body[T]) -> T:
        """Run the body until its commit stands; its outcome."""
        return await self._transactions.run(body, self.attempt)

    async def attempt(self, body: Body[T]) -> T:
        """Run the body once and commit.

        Raises:
            Stale: what it read has changed; nothing was written.
        """
        self._refuse_closed()
        reads = _Reads(self._core)
        try:
            commit = await body(reads)
            prepared = self._core.prepare(reads.seen, commit.writes) if commit.writes else None
        except Exception:
            # A body that saw two moments of the truth may fail for that alone: it runs again.
            if not self._core.is_current(reads.seen):
                raise Stale from None
            raise
        if prepared is None:
            if not self._core.is_current(reads.seen):
                raise Stale
        else:
            await self._submit(prepared)
        return commit.outcome

    async def close(self) -> None:
        """Finish what was submitted, then close the file."""
        if self._closed:
            return
        self._closed = True
        self._flush()
        self._queue.put(None)
        await asyncio.to_thread(self._thread.join)
        self._core.close()

    def _refuse_closed(self) -> None:
        if self._closed:
            raise StoreUnavailable(cause="this store is closed")

    # --- group commit ----------------------------------------------------------------------------

    async def _submit(self, prepared: Prepared) -> None:
        loop = asyncio.get_running_loop()
        waiting = _Waiting(prepared, loop.create_future())
        if not self._ready:
            self._loop = loop
            loop.call_soon(self._flush)
        self._ready.append(waiting)
        try:
            await waiting.future
        except asyncio.CancelledError:
            while not waiting.done:
                waiting.future = loop.create_future()
                try:
                    await waiting.future
                except asyncio.CancelledError:
                    continue
            raise
        if waiting.outcome is not None:
            raise waiting.outcome

    def _flush(self) -> None:
        """Hand over what became ready in this turn of the loop."""
        if self._ready:
            self._queue.put(self._ready)
            self._ready = []

    def _write(self) -> None:
        """The writer thread: one batch after the other until told to end."""
        while (batch := self._queue.get()) is not None:
            ending = False
            while len(batch) < BATCH_MAX:
                try:
                    more = self._queue.get_nowait()
                except queue.Empty:
                    break
                if more is None:
                    ending = True
                    break
                batch += more
            outcomes: Sequence[Outcome | BaseException]
            try:
                outcomes = self._core.commit_batch([waiting.prepared for waiting in batch])
            except Exception as error:  # noqa: BLE001 - the waiting tasks must hear of it
                outcomes = [error] * len(batch)
            for waiting, outcome in zip(batch, outcomes, strict=True):
                waiting.outcome = outcome
            loop = self._loop
            if loop is not None and not loop.is_closed():
                loop.call_soon_threadsafe(self._answer, batch)
            if ending:
                return

    def _answer(self, batch: list[_Waiting]) -> None:
        for waiting in batch:
            waiting.done = True
            if waiting.outcome is None:
                self._core.remember(waiting.prepared)
            else:
                self._core.forget(waiting.prepared.seen)
            if not waiting.future.done():
                waiting.future.set_result(None)
