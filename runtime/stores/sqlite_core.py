"""The SQLite store's synchronous core: no thread and no task of its own, so anything may drive it.

Keeps the store contract's heart: `commit_batch` is one transaction and one fsync for every commit
in it; each commit is validated (versions read, absences, the results of its finds) against the
state its predecessors left, so the commits are serial in batch order, and it applies whole or not
at all. Versions come from a counter that no process, crash, delete or rollback ever reuses.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from runtime.domain.values import Record
from runtime.errors import (
    AlreadyExists,
    RecordUnreadable,
    StoreUnavailable,
    UndeclaredQuery,
)
from runtime.ports import Ask, Create, Delete, Found, Key, Page, Write
from runtime.stores.asks import check_ask, make_cursor
from runtime.stores.codec import check_id
from runtime.stores.sqlite_files import Turn, connect, open_file
from runtime.stores.sqlite_schema import Table, scope_of
from runtime.stores.transactions import Stale

VERSIONS_RESERVED: Final = 1 << 16

R = TypeVar("R", bound=Record)

Row = tuple[str, str]
"""Scope path and ID."""


@dataclass(slots=True)
class Seen:
    """What one body saw: versions by table and row (0 is absence), and the results of its finds."""

    gets: list[tuple[Table, Row, int]] = field(default_factory=list)
    finds: list[tuple[str, list[Any], list[tuple[str, int, str]]]] = field(default_factory=list)


@dataclass(slots=True)
class Prepared:
    """A commit ready for the file: what was seen, and the writes in their order.

    A write is (table, row, values to store, or None for a delete, and the key of a create).
    """

    seen: Seen
    writes: list[tuple[Table, Row, tuple[Any, ...] | None, Key[Any] | None]]


Outcome = Stale | AlreadyExists | StoreUnavailable | None
"""None: applied and durable."""


class SqliteCore:
    """One open file: a connection to write on and one to read on."""

    def __init__(
        self,
        path: str,
        tables: Sequence[Table],
        writer: sqlite3.Connection,
        reader: sqlite3.Connection,
        turn: Turn,
    ) -> None:
        self.path = path
        self._tables = {table.name: table for table in tables}
        self._writer = writer
        self._reader = reader
        self._turn = turn
        self._version = self._version_end = 0

    # --- reading ---------------------------------------------------------------------------------

    def _table(self, name: str) -> Table:
        table = self._tables.get(name)
        if table is None:
            raise UndeclaredQuery(collection=name, query="-", cause="no such collection")
        return table

    def get(self, key: Key[R], seen: Seen) -> R | None:
        """The record now, noted in `seen`."""
        table = self._table(key.collection.name)
        check_id(key)
        row = (key.scope.path, key.id)
        try:
            found = self._reader.execute(table.sql_get, row).fetchone()
        except sqlite3.Error as error:
            raise unavailable(error) from error
        if found is None:
            seen.gets.append((table, row, 0))
            return None
        version, codec, body = found
        seen.gets.append((table, row, version))
        record: R = table.codec.decode(key.path, codec, body)
        return record

    def find(self, ask: Ask[R], seen: Seen) -> Page[R]:
        """One page now, noted in `seen`."""
        table = self._table(ask.collection.name)
        query = table.query(ask.query)
        checked = check_ask(ask, query)
        scope_path = None if ask.scope is None else ask.scope.path
        sql, values = table.find(query, scope_path, checked, bodies=True)
        try:
            rows = self._reader.execute(sql, values).fetchall()
        except sqlite3.Error as error:
            raise unavailable(error) from error
        again, values = table.find(query, scope_path, checked, bodies=False)
        seen.finds.append((again, values, [row[:3] for row in rows]))
        cursor = None
        if len(rows) > checked.limit:
            del rows[checked.limit :]
            id_, _, scope, value = rows[-1][:4]
            cursor = make_cursor(ask, value, id_, scope)
        found: list[Found[R]] = []
        unreadable: list[tuple[str, str]] = []
        for id_, _, scope, _, codec, body in rows:
            key = Key(ask.collection, ask.scope or scope_of(scope), id_)
            try:
                found.append(Found(key, table.codec.decode(key.path, codec, body)))
            except RecordUnreadable as error:
                unreadable.append((key.path, str(error.fields["cause"])))
        return Page(tuple(found), cursor, tuple(unreadable))

    def is_current(self, seen: Seen) -> bool:
        """Whether all that was seen holds at one instant: how a read-only commit is validated."""
        if len(seen.gets) + len(seen.finds) <= 1:
            return True
        try:
            self._reader.execute("BEGIN")
            try:
                return self._holds(self._reader, seen)
            finally:
                self._reader.execute("COMMIT")
        except sqlite3.Error as error:
            raise unavailable(error) from error

    @staticmethod
    def _holds(connection: sqlite3.Connection, seen: Seen) -> bool:
        for table, row, version in seen.gets:
            found = connection.execute(table.sql_version, row).fetchone()
            if (0 if found is None else found[0]) != version:
                return False
        for sql, values, expected in seen.finds:
            rows = connection.execute(sql, values).fetchall()
            if [row[:3] for row in rows] != expected:
                return False
        return True

    # --- writing ---------------------------------------------------------------------------------

    def prepare(self, seen: Seen, writes: Sequence[Write]) -> Prepared:
        """Encode the writes. Everything that can be refused without IO is refused here."""
        made: list[tuple[Table, Row, tuple[Any, ...] | None, Key[Any] | None]] = []
        for write in writes:
            key = write.key
            table = self._table(key.collection.name)
            check_id(key)
            row = (key.scope.path, key.id)
            if isinstance(write, Delete):
                made.append((table, row, None, None))
                continue
            body = table.codec.encode(key, write.record)
            values = (table.codec.version, body, *table.row(write.record))
            made.append((table, row, values, key if isinstance(write, Create) else None))
        return Prepared(seen, made)

    def commit_batch(self, batch: Sequence[Prepared]) -> list[Outcome]:
        """Commit all that are valid, in order, with one fsync; the outcome of each."""
        try:
            self._turn.begin(self._writer)
        except sqlite3.Error as error:
            return [unavailable(error) for _ in batch]
        except StoreUnavailable as refused:
            return [StoreUnavailable(**refused.fields) for _ in batch]
        try:
            outcomes = [self._apply(prepared) for prepared in batch]
            self._writer.execute("COMMIT")
        except sqlite3.Error as error:
            self._roll_back()
            if len(batch) > 1:
                # One of them hit the fault: alone, it no longer takes the others along.
                return [outcome for one in batch for outcome in self.commit_batch([one])]
            return [unavailable(error)]
        except BaseException:
            self._roll_back()
            raise
        return outcomes

    def _roll_back(self) -> None:
        self._version = self._version_end = 0
        if self._writer.in_transaction:
            self._writer.execute("ROLLBACK")

    def _apply(self, prepared: Prepared) -> Outcome:
        """Validate, then write: nothing is written before the last check has passed."""
        writer = self._writer
        if not self._holds(writer, prepared.seen):
            return Stale()
        exists: dict[tuple[str, Row], bool] = {}
        for table, row, values, create in prepared.writes:
            at = (table.name, row)
            if create is not None:
                there = exists.get(at)
                if there is None:
                    there = writer.execute(table.sql_version, row).fetchone() is not None
                if there:
                    return AlreadyExists(key=create.path)
            exists[at] = values is not None
        for table, row, values, _ in prepared.writes:
            if values is None:
                writer.execute(table.sql_delete, row)
            else:
                writer.execute(table.sql_put, (*row, self._next_version(), *values))
        return None

    def _next_version(self) -> int:
        if self._version == self._version_end:
            (start,) = self._writer.execute(
                "UPDATE harmonia_versions SET reserved = reserved + ? RETURNING reserved - ?",
                (VERSIONS_RESERVED, VERSIONS_RESERVED),
            ).fetchone()
            self._version, self._version_end = start, start + VERSIONS_RESERVED
        self._version += 1
        return self._version - 1

    def close(self) -> None:
        """Close both connections; the last process to close folds the write-ahead log in."""
        self._reader.close()
        self._writer.close()


def unavailable(error: sqlite3.Error) -> StoreUnavailable:
    """SQLite's own words for what went wrong; they name the fault, never a record's content."""
    return StoreUnavailable(
        cause=f"{getattr(error, 'sqlite_errorname', type(error).__name__)}: {error}"
    )


def open_core(path: str, tables: Sequence[Table], turn: Turn) -> SqliteCore:
    """Open or create the file and bring it up to the declared collections."""
    try:
        open_file(path, tables, turn)
        writer = connect(path)
        reader = connect(path)
        reader.execute("PRAGMA query_only = ON")
    except sqlite3.Error as error:
        raise unavailable(error) from error
    return SqliteCore(path, tables, writer, reader, turn)
