"""The SQLite store: the embedded default. Bodies run on the event loop, commits on one thread.

Reads take microseconds and run inline. Commits that become ready in one turn of the loop travel to
the writer thread together; whatever waits there becomes one batch with one fsync (group commit),
and its outcomes come back in one call. A commit that is alone is made inline as long as the disk
answers within five milliseconds: two thread hops cost a quarter of a millisecond of CPU, and nobody
else waits for the store. On a slower disk the thread keeps the loop free.

A commit once submitted is waited for even when its task is cancelled, so nobody believes a commit
undone that stands.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from runtime.ports import Clock, Collection, Ids
from runtime.stores.codec import NO_UPGRADES, Upgrades
from runtime.stores.sqlite_bodies import SqliteBodies
from runtime.stores.sqlite_commits import Outcome, Prepared
from runtime.stores.sqlite_core import SqliteCore, open_core
from runtime.stores.sqlite_files import LOCK_SECONDS, Turn
from runtime.stores.sqlite_schema import Table
from runtime.stores.transactions import DEADLINE_SECONDS, Transactions

BATCH_MAX: Final = 256
INLINE_SECONDS_MAX: Final = 0.005
SLOW_COMMITS: Final = 64
"""After a slow inline commit, so many lone commits go through the thread before another try."""


class _Waiting:
    """A submitted commit and who waits for it."""

    __slots__ = ("done", "future", "outcome", "prepared")

    def __init__(self, prepared: Prepared, future: asyncio.Future[None]) -> None:
        self.prepared = prepared
        self.future = future
        self.outcome: Outcome | BaseException = None
        self.done = False


class SqliteStore(SqliteBodies):
    """`Store` on one SQLite file. See the module docstring; opened by `open`."""

    def __init__(self, core: SqliteCore, transactions: Transactions, clock: Clock) -> None:
        super().__init__(core, transactions)
        self._clock = clock
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ready: list[_Waiting] = []
        self._queue: queue.SimpleQueue[list[_Waiting] | None] = queue.SimpleQueue()
        self._unanswered = 0
        self._slow_commits = 0
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
        return cls(core, Transactions(clock, ids, deadline_seconds), clock)

    async def close(self) -> None:
        """Finish what was submitted, then close the file."""
        if self._closed:
            return
        self._closed = True
        self._flush()
        self._queue.put(None)
        await asyncio.to_thread(self._thread.join)
        self._core.close()

    async def _submit(self, prepared: Prepared) -> Outcome | BaseException:
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
        return waiting.outcome

    def _flush(self) -> None:
        """Hand over what became ready in this turn of the loop."""
        ready, self._ready = self._ready, []
        if not ready or (len(ready) == 1 and self._unanswered == 0 and self._inline(ready)):
            return
        self._unanswered += len(ready)
        self._queue.put(ready)

    def _inline(self, ready: list[_Waiting]) -> bool:
        """Commit a lone commit here; whether it was done. The writer thread is idle."""
        if self._slow_commits:
            self._slow_commits -= 1
            return False
        started = self._clock.monotonic()
        outcomes = self._core.committer.commit_at_once(ready[0].prepared)
        if self._clock.monotonic() - started > INLINE_SECONDS_MAX:
            self._slow_commits = SLOW_COMMITS
        if outcomes is None:
            return False
        ready[0].outcome = outcomes[0]
        self._unanswered += 1
        self._answer(ready)
        return True

    def _write(self) -> None:
        """The writer thread: one batch after the other until told to end."""
        ending = False
        while not ending and (batch := self._queue.get()) is not None:
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
                outcomes = self._core.committer.commit_batch([each.prepared for each in batch])
            except Exception as error:  # noqa: BLE001 - the waiting tasks must hear of it
                outcomes = [error] * len(batch)
            for waiting, outcome in zip(batch, outcomes, strict=True):
                waiting.outcome = outcome
            loop = self._loop
            if loop is not None and not loop.is_closed():
                loop.call_soon_threadsafe(self._answer, batch)

    def _answer(self, batch: list[_Waiting]) -> None:
        self._unanswered -= len(batch)
        for waiting in batch:
            waiting.done = True
            self._settle(waiting.prepared, waiting.outcome)
            if not waiting.future.done():
                waiting.future.set_result(None)
