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
from typing import Any, Final, TypeVar, cast

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
from runtime.stores.sqlite_cache import ABSENT, Known, Place, RecordCache
from runtime.stores.sqlite_files import Turn, connect, open_file
from runtime.stores.sqlite_schema import Table, scope_of
from runtime.stores.transactions import Stale

VERSIONS_RESERVED: Final = 1 << 16
VERSIONS_KNOWN_MAX: Final = 20_000

R = TypeVar("R", bound=Record)


@dataclass(slots=True)
class Seen:
    """What one body saw: versions by place (0 is absence), and the results of its finds."""

    gets: list[tuple[Table, Place, int]] = field(default_factory=list)
    finds: list[tuple[str, list[Any], list[tuple[str, int, str]]]] = field(default_factory=list)
    remembered: bool = False
    """Whether something came from this process's memory rather than from the file."""


@dataclass(slots=True)
class Change:
    """One write, encoded. `values` is None for a delete; `version` is given when it is applied."""

    table: Table
    place: Place
    values: tuple[Any, ...] | None = None
    record: Record | None = None
    creates: bool = False
    version: int = 0


@dataclass(slots=True)
class Prepared:
    """A commit ready for the file: what was seen, and the writes in their order."""

    seen: Seen
    changes: list[Change]


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
        self._cache = RecordCache()
        self._version = self._version_end = 0
        # What the writer knows of versions, and the file's change mark that it was learned under.
        self._versions: dict[Place, int] = {}
        self._data_version = -1

    # --- reading ---------------------------------------------------------------------------------

    def _table(self, name: str) -> Table:
        table = self._tables.get(name)
        if table is None:
            raise UndeclaredQuery(collection=name, query="-", cause="no such collection")
        return table

    def get(self, key: Key[R], seen: Seen | None) -> R | None:
        """The record, noted in `seen`. Without `seen`, the record as the file has it now."""
        name = key.collection.name
        table = self._table(name)
        check_id(key)
        place = (name, key.scope.path, key.id)
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
                    _version(self._reader, table, place) == version
                    for table, place, version in seen.gets
                ) and _finds_hold(self._reader, seen)
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
            place = (table.name, key.scope.path, key.id)
            if isinstance(write, Delete):
                changes.append(Change(table, place))
                continue
            body, back = table.codec.encode(key, write.record)
            values = (table.codec.version, body, *table.row(back))
            shared = back if table.codec.shareable else None
            changes.append(Change(table, place, values, shared, isinstance(write, Create)))
        return Prepared(seen, changes)

    def commit_batch(self, batch: Sequence[Prepared]) -> list[Outcome]:
        """Commit all that are valid, in order, with one fsync; the outcome of each."""
        try:
            self._turn.begin(self._writer)
        except sqlite3.Error as error:
            return [unavailable(error) for _ in batch]
        except StoreUnavailable as refused:
            return [StoreUnavailable(**refused.fields) for _ in batch]
        try:
            self._notice_others()
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
        self._versions.clear()
        if self._writer.in_transaction:
            self._writer.execute("ROLLBACK")

    def _notice_others(self) -> None:
        """Keep the versions this connection knows only while it alone has written the file."""
        (found,) = self._writer.execute("PRAGMA data_version").fetchone()
        if found != self._data_version or len(self._versions) > VERSIONS_KNOWN_MAX:
            self._data_version = found
            self._versions.clear()

    def _current(self, table: Table, place: Place) -> int:
        version = self._versions.get(place)
        if version is None:
            version = self._versions[place] = _version(self._writer, table, place)
        return version

    def _apply(self, prepared: Prepared) -> Outcome:
        """Validate, then write: nothing is written before the last check has passed."""
        writer, versions = self._writer, self._versions
        for table, place, version in prepared.seen.gets:
            if self._current(table, place) != version:
                return Stale()
        if not _finds_hold(writer, prepared.seen):
            return Stale()
        exists: dict[Place, bool] = {}
        for change in prepared.changes:
            place = change.place
            if change.creates and exists.get(place, self._current(change.table, place) != 0):
                return AlreadyExists(key="/".join((place[1], place[0], place[2])))
            exists[place] = change.values is not None
        for change in prepared.changes:
            place = change.place
            if change.values is None:
                writer.execute(change.table.sql_delete, place[1:])
                versions[place] = 0
            else:
                version = versions[place] = change.version = self._next_version()
                writer.execute(change.table.sql_put, (place[1], place[2], version, *change.values))
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


def _version(connection: sqlite3.Connection, table: Table, place: Place) -> int:
    found = connection.execute(table.sql_version, place[1:]).fetchone()
    return 0 if found is None else int(found[0])


def _finds_hold(connection: sqlite3.Connection, seen: Seen) -> bool:
    for sql, values, expected in seen.finds:
        rows = connection.execute(sql, values).fetchall()
        if [row[:3] for row in rows] != expected:
            return False
    return True


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
