"""The SQLite store's synchronous core: no thread and no task of its own, so anything may drive it.

`get` and `find` read and note what they saw; `prepare` refuses without IO what must be refused;
`committer` validates and writes. Between them lies no decision about a record's content.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import TypeVar, cast

from runtime.domain.values import Record
from runtime.errors import (
    RecordUnreadable,
    UndeclaredQuery,
)
from runtime.ports import Ask, Create, Delete, Found, Key, Page, Write
from runtime.stores.asks import check_ask, make_cursor
from runtime.stores.codec import check_id
from runtime.stores.sqlite_cache import ABSENT, Known, Place, RecordCache, place_of
from runtime.stores.sqlite_commits import (
    Change,
    Committer,
    Prepared,
    Seen,
    finds_hold,
    unavailable,
    version_now,
)
from runtime.stores.sqlite_files import Turn, connect, open_file
from runtime.stores.sqlite_schema import Table, scope_of

R = TypeVar("R", bound=Record)


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
        self.committer = Committer(writer, turn)
        self._tables = {table.name: table for table in tables}
        self._writer = writer
        self._reader = reader
        self._cache = RecordCache()

    # --- reading ---------------------------------------------------------------------------------

    def _table(self, name: str) -> Table:
        table = self._tables.get(name)
        if table is None:
            raise UndeclaredQuery(collection=name, query="-", cause="no such collection")
        return table

    def get(self, key: Key[R], place: Place, seen: Seen | None) -> R | None:
        """The record, noted in `seen`. Without `seen`, the record as the file has it now."""
        table = self._table(place[0])
        check_id(key)
        known = None if seen is None else self._cache.get(place)
        if known is None:
            known = self._load(table, place)
        elif seen is not None:
            seen.remembered = True
        if seen is not None:
            seen.gets.append((table, place, known.version))
        if known.body is None or known.record is not None:
            return cast("R | None", known.record)
        record: R = table.codec.decode(key.path, known.codec, known.body)
        if table.codec.shareable:
            known = known._replace(record=record)
        self._cache.put(place, known)
        return record

    def _load(self, table: Table, place: Place) -> Known:
        try:
            found = self._reader.execute(table.sql_get, place[1:]).fetchone()
        except sqlite3.Error as error:
            raise unavailable(error) from error
        if found is None:
            self._cache.put(place, ABSENT)
            return ABSENT
        version, codec, body = found
        return Known(version, codec, body, None)

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
        if len(seen.gets) + len(seen.finds) <= 1 and not seen.remembered:
            return True
        try:
            self._reader.execute("BEGIN")
            try:
                holds = all(
                    version_now(self._reader, table, place) == version
                    for table, place, version in seen.gets
                ) and finds_hold(self._reader, seen)
            finally:
                self._reader.execute("COMMIT")
        except sqlite3.Error as error:
            raise unavailable(error) from error
        if not holds:
            self.forget(seen)
        return holds

    def forget(self, seen: Seen) -> None:
        """Something seen was out of date: read all of it from the file next time."""
        for _, place, _ in seen.gets:
            self._cache.forget(place)

    def remember(self, prepared: Prepared) -> None:
        """The commit stands: its records are what this process knows now."""
        for change in prepared.changes:
            if change.values is None:
                self._cache.put(change.place, ABSENT)
            else:
                codec, body = change.values[:2]
                self._cache.put(change.place, Known(change.version, codec, body, change.record))

    # --- writing ---------------------------------------------------------------------------------

    def prepare(self, seen: Seen, writes: Sequence[Write]) -> Prepared:
        """Encode the writes. Everything that can be refused without IO is refused here."""
        changes: list[Change] = []
        for write in writes:
            key = write.key
            table = self._table(key.collection.name)
            check_id(key)
            place = place_of(key)
            if isinstance(write, Delete):
                changes.append(Change(table, place))
                continue
            body, back = table.codec.encode(key, write.record)
            values = (table.codec.version, body, *table.row(back))
            shared = back if table.codec.shareable else None
            changes.append(Change(table, place, values, shared, isinstance(write, Create)))
        return Prepared(seen, changes)

    def close(self) -> None:
        """Close both connections; the last process to close folds the write-ahead log in."""
        self._reader.close()
        self._writer.close()


def open_core(path: str, tables: Sequence[Table], turn: Turn) -> SqliteCore:
    """Open or create the file and bring it up to the declared collections."""
    try:
        open_file(path, tables, turn)
        writer = connect(path)
        # Waiting for the turn to write is ours to do; readers wait only for a file's recovery.
        writer.execute("PRAGMA busy_timeout = 0")
        reader = connect(path)
        reader.execute("PRAGMA query_only = ON")
    except sqlite3.Error as error:
        raise unavailable(error) from error
    return SqliteCore(path, tables, writer, reader, turn)
