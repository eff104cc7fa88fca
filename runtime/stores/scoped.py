"""A store handle that knows only some scopes.

Keeps INV-18 for whoever holds it: a key, an ask or a write outside its scopes is refused before
any IO, and a question across tenants always. The loops that scan across tenants use the bare store.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

from runtime.domain.values import Record, Scope
from runtime.errors import ScopeViolation
from runtime.ports import Ask, Body, Commit, Key, Page, Reads, Store

R = TypeVar("R", bound=Record)
T = TypeVar("T")


class Scoped:
    """`Store` within a fixed set of scopes. `close` does nothing: the whole store has an owner."""

    def __init__(self, store: Store, scopes: Iterable[Scope]) -> None:
        self._store = store
        self._allowed = frozenset(scope.path for scope in scopes)

    def check_key(self, key: Key[Any]) -> None:
        """Refuse a key outside. Raises ScopeViolation."""
        if key.scope.path not in self._allowed:
            raise self._violation(key.path)

    def check_ask(self, ask: Ask[Any]) -> None:
        """Refuse an ask outside, or across tenants. Raises ScopeViolation."""
        where = "*" if ask.scope is None else ask.scope.path
        if where not in self._allowed:
            shown = f"{where}/{ask.collection.name}?{ask.query}"
            raise self._violation(shown)

    def _violation(self, shown: str) -> ScopeViolation:
        return ScopeViolation(key=shown, scope=", ".join(sorted(self._allowed)))

    async def get(self, key: Key[R]) -> R | None:
        """As `Store.get`, inside the scopes."""
        self.check_key(key)
        return await self._store.get(key)

    async def find(self, ask: Ask[R]) -> Page[R]:
        """As `Store.find`, inside the scopes."""
        self.check_ask(ask)
        return await self._store.find(ask)

    async def transact(self, body: Body[T]) -> T:
        """As `Store.transact`; what the body reads and what it writes stay inside the scopes."""

        async def guarded(reads: Reads) -> Commit[T]:
            commit = await body(_ScopedReads(self, reads))
            for write in commit.writes:
                self.check_key(write.key)
            return commit

        return await self._store.transact(guarded)

    async def close(self) -> None:
        """Nothing to close: a handle does not own the store."""


class _ScopedReads:
    __slots__ = ("_handle", "_reads")

    def __init__(self, handle: Scoped, reads: Reads) -> None:
        self._handle = handle
        self._reads = reads

    async def get(self, key: Key[R]) -> R | None:
        self._handle.check_key(key)
        return await self._reads.get(key)

    async def find(self, ask: Ask[R]) -> Page[R]:
        self._handle.check_ask(ask)
        return await self._reads.find(ask)
