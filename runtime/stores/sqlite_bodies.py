"""Running bodies on the SQLite core: one attempt reads, decides and hands its commit over.

How a commit reaches the file (a thread, or the caller itself in a simulation) is `_submit`, which
subclasses give. A body that fails after seeing two moments of the truth is run again rather than
believed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, TypeVar

from runtime.domain.values import Record
from runtime.errors import StoreUnavailable
from runtime.ports import Ask, Body, Key, Page
from runtime.stores.sqlite_cache import Place, place_of
from runtime.stores.sqlite_commits import Outcome, Prepared, Seen
from runtime.stores.sqlite_core import SqliteCore
from runtime.stores.transactions import Stale, Transactions

R = TypeVar("R", bound=Record)
T = TypeVar("T")


class _Reads:
    """What one attempt of a body sees: each key once, so that it sees one value of it."""

    __slots__ = ("_core", "_got", "seen")

    def __init__(self, core: SqliteCore) -> None:
        self._core = core
        self._got: dict[Place, Any] = {}
        self.seen = Seen()

    async def get(self, key: Key[R]) -> R | None:
        place = place_of(key)
        if place in self._got:
            known: R | None = self._got[place]
            return known
        record = self._got[place] = self._core.get(key, place, self.seen)
        return record

    async def find(self, ask: Ask[R]) -> Page[R]:
        return self._core.find(ask, self.seen)


class SqliteBodies(ABC):
    """`Store` on one SQLite file, but for how a commit reaches it."""

    def __init__(self, core: SqliteCore, transactions: Transactions) -> None:
        self._core = core
        self._transactions = transactions
        self._closed = False

    async def get(self, key: Key[R]) -> R | None:
        """The record now. Raises RecordUnreadable."""
        self._refuse_closed()
        return self._core.get(key, place_of(key), None)

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
        core = self._core
        reads = _Reads(core)
        seen = reads.seen
        try:
            commit = await body(reads)
            prepared = core.prepare(seen, commit.writes) if commit.writes else None
        except Exception:
            # A body that saw two moments of the truth may fail for that alone: it runs again.
            if not core.is_current(seen):
                raise Stale from None
            raise
        if prepared is None:
            if not core.is_current(seen):
                raise Stale
            return commit.outcome
        self._refuse_closed()
        outcome = await self._submit(prepared)
        if outcome is not None:
            raise outcome
        return commit.outcome

    @abstractmethod
    async def _submit(self, prepared: Prepared) -> Outcome | BaseException:
        """Bring one commit to the file and tell the core's memory; its outcome."""

    def _refuse_closed(self) -> None:
        if self._closed:
            raise StoreUnavailable(cause="this store is closed")

    def _settle(self, prepared: Prepared, outcome: Outcome | BaseException) -> None:
        """Keep what this process knows of records in step with what was committed."""
        if outcome is None:
            self._core.remember(prepared)
        else:
            self._core.forget(prepared.seen)
