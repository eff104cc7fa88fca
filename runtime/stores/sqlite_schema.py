"""Tables, columns and indexes of the SQLite store, made from the declared collections.

One table per collection: scope, ID, version, codec version, body, and a column per queried field.
Each query has an index under the tenant scope if declared `within`, one without if `across`. Rows
whose ordered field is absent are in no index and in no page of that query. Opening brings an older
file up to date and refuses a newer one; nothing here decides anything about a record's content.
"""

# ruff: noqa: S608 - table and column names are declared in code; every value is bound

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

from runtime.domain.values import DIRECTORY, Record, Scope, Tenant
from runtime.errors import RecordUnreadable, StoreUnavailable, UndeclaredQuery
from runtime.ports import Collection, Query
from runtime.stores.asks import Checked
from runtime.stores.codec import NO_UPGRADES, Codec, Field, Upgrades, has_field

SCHEMA: Final = 1
APPLICATION_ID: Final = 0x4861726D  # "Harm"

META: Final = """
CREATE TABLE IF NOT EXISTS harmonia_versions (one INTEGER PRIMARY KEY CHECK (one = 1),
    reserved INTEGER NOT NULL);
INSERT OR IGNORE INTO harmonia_versions VALUES (1, 1);
CREATE TABLE IF NOT EXISTS harmonia_fields (collection TEXT NOT NULL, path TEXT NOT NULL,
    codec INTEGER NOT NULL, PRIMARY KEY (collection, path)) WITHOUT ROWID;
"""


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _column(path: str) -> str:
    """A queried field's column. Brackets: SQLite reads an unknown quoted name as a text."""
    return f"[f_{path}]"


@lru_cache(maxsize=1024)
def scope_of(path: str) -> Scope:
    """The scope of a stored scope path."""
    if path == DIRECTORY.path:
        return DIRECTORY
    _, workspace, _, brand = path.split("/")
    return Tenant(workspace=workspace, brand=brand)


class Table:
    """One collection as SQL: its statements are built once."""

    def __init__(self, collection: Collection[Any], upgrades: Upgrades = NO_UPGRADES) -> None:
        self.collection = collection
        self.name = collection.name
        self.codec: Codec[Any] = Codec(collection, upgrades)
        self.queries = {query.name: query for query in collection.queries}
        paths = dict.fromkeys(
            path for query in collection.queries for path in (*query.equals, query.order)
        )
        for path in paths:
            if not has_field(collection.record, path):
                raise UndeclaredQuery(
                    collection=self.name, query=path, cause="no such field in its record"
                )
        self.fields = tuple(Field(path) for path in paths)
        self.table = table = _quoted(f"r_{self.name}")
        columns = [_column(path) for path in paths]
        names = ", ".join(["scope", "id", "version", "codec", "body", *columns])
        marks = ", ".join("?" * (5 + len(columns)))
        changes = ", ".join(f"{n} = excluded.{n}" for n in ["version", "codec", "body", *columns])
        self.sql_get = f"SELECT version, codec, body FROM {table} WHERE scope = ? AND id = ?"
        self.sql_version = f"SELECT version FROM {table} WHERE scope = ? AND id = ?"
        self.sql_put = (
            f"INSERT INTO {table} ({names}) VALUES ({marks}) "
            f"ON CONFLICT (scope, id) DO UPDATE SET {changes}"
        )
        self.sql_delete = f"DELETE FROM {table} WHERE scope = ? AND id = ?"
        self._finds: dict[tuple[str, bool, bool, bool, bool, bool], str] = {}

    def row(self, record: Record) -> tuple[str | int | None, ...]:
        """The values of the queried columns."""
        return tuple([field.read(record) for field in self.fields])

    def query(self, name: str) -> Query:
        """The declared query. Raises UndeclaredQuery."""
        query = self.queries.get(name)
        if query is None:
            raise UndeclaredQuery(collection=self.name, query=name)
        return query

    def find(
        self, query: Query, scope_path: str | None, checked: Checked, *, bodies: bool
    ) -> tuple[str, list[Any]]:
        """The statement and its values; one row more than the limit tells whether there is more.

        Columns: id, version, scope, ordered value and, with `bodies`, codec and body.
        """
        across = scope_path is None
        since = checked.since is not None and checked.after is None
        before = checked.before is not None
        shape = (query.name, across, since, before, checked.after is not None, bodies)
        sql = self._finds.get(shape)
        if sql is None:
            sql = self._finds[shape] = self._find_sql(query, shape)
        values: list[Any] = [] if scope_path is None else [scope_path]
        values += checked.equals
        if checked.after is not None:
            values += checked.after if across else checked.after[:2]
        elif since:
            values.append(checked.since)
        if before:
            values.append(checked.before)
        values.append(checked.limit + 1)
        return sql, values

    def _find_sql(self, query: Query, shape: tuple[str, bool, bool, bool, bool, bool]) -> str:
        _, across, since, before, after, bodies = shape
        order = _column(query.order)
        where = [] if across else ["scope = ?"]
        where += [f"{_column(path)} IS ?" for path in query.equals]
        position = f"{order}, id, scope" if across else f"{order}, id"
        if after:
            where.append(f"({position}) > ({'?, ?, ?' if across else '?, ?'})")
        elif since:
            where.append(f"{order} >= ?")
        if before:
            where.append(f"{order} < ?")
        # The indexes are partial: this term is what lets the planner use them.
        where.append(f"{order} IS NOT NULL")
        columns = f"id, version, scope, {order}" + (", codec, body" if bodies else "")
        return (
            f"SELECT {columns} FROM {self.table} INDEXED BY {self.index(query, across=across)} "
            f"WHERE {' AND '.join(where)} ORDER BY {position} LIMIT ?"
        )

    def index(self, query: Query, *, across: bool) -> str:
        """The quoted name of a query's index: it carries the shape, so it never changes meaning."""
        shape = ",".join([*query.equals, query.order])
        return _quoted(f"i_{self.name}.{query.name}({shape}){'.across' if across else ''}")

    def indexes(self) -> dict[str, str]:
        """Index name (unquoted) to the statement that creates it."""
        made = {}
        for query in self.collection.queries:
            order = _column(query.order)
            equals = [_column(path) for path in query.equals]
            for across in [False] * query.within + [True] * query.across:
                columns = (
                    [*equals, order, "id", "scope"] if across else ["scope", *equals, order, "id"]
                )
                name = self.index(query, across=across)
                made[name[1:-1]] = (
                    f"CREATE INDEX {name} ON {self.table} ({', '.join(columns)}) "
                    f"WHERE {order} IS NOT NULL"
                )
        return made


def migrate(connection: sqlite3.Connection, tables: Sequence[Table]) -> None:
    """Bring the file up to the declared collections, in one transaction.

    Raises:
        StoreUnavailable: the file is not ours, or a newer version wrote it.
    """
    connection.execute("BEGIN IMMEDIATE")
    try:
        check_owner(connection)
        for statement in META.split(";"):
            connection.execute(statement)
        for table in tables:
            _bring_up(connection, table)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {SCHEMA}")
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def check_owner(connection: sqlite3.Connection) -> None:
    """Refuse a file that is not ours or not yet known, before anything in it is touched."""
    owner = connection.execute("PRAGMA application_id").fetchone()[0]
    found = connection.execute("PRAGMA user_version").fetchone()[0]
    empty = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0
    if owner != APPLICATION_ID and not empty:
        raise StoreUnavailable(cause="the file is a database of another program")
    if found > SCHEMA:
        raise StoreUnavailable(
            cause=f"a newer version wrote this file (schema {found}; this one knows {SCHEMA}): "
            "start the newer version, or restore a backup from before it"
        )


def _bring_up(connection: sqlite3.Connection, table: Table) -> None:
    connection.execute(
        f"CREATE TABLE IF NOT EXISTS {table.table} (scope TEXT NOT NULL, id TEXT NOT NULL, "
        "version INTEGER NOT NULL, codec INTEGER NOT NULL, body BLOB NOT NULL, "
        "PRIMARY KEY (scope, id))"
    )
    declared = table.indexes()
    found = {
        name
        for (name,) in connection.execute(
            "SELECT name FROM sqlite_master "
            "WHERE type = 'index' AND tbl_name = ? AND name GLOB 'i_*'",
            (f"r_{table.name}",),
        )
    }
    for name in sorted(found - declared.keys()):
        connection.execute(f"DROP INDEX {_quoted(name)}")
    _bring_up_columns(connection, table)
    for name in declared.keys() - found:
        connection.execute(declared[name])


def _bring_up_columns(connection: sqlite3.Connection, table: Table) -> None:
    """A column per queried field, filled from the records, and again when the codec changes."""
    known = dict(
        connection.execute(
            "SELECT path, codec FROM harmonia_fields WHERE collection = ?", (table.name,)
        ).fetchall()
    )
    declared = {field.path: field for field in table.fields}
    for path in known.keys() - declared.keys():
        # A column that nobody keeps up to date would lie to a later version that declares it again.
        connection.execute(f"ALTER TABLE {table.table} DROP COLUMN {_column(path)}")
        connection.execute(
            "DELETE FROM harmonia_fields WHERE collection = ? AND path = ?", (table.name, path)
        )
    for path in declared.keys() - known.keys():
        connection.execute(f"ALTER TABLE {table.table} ADD COLUMN {_column(path)}")
    stale = [f for path, f in declared.items() if known.get(path, 0) < table.codec.version]
    if stale:
        _fill(connection, table, stale)
        connection.executemany(
            "INSERT OR REPLACE INTO harmonia_fields VALUES (?, ?, ?)",
            [(table.name, field.path, table.codec.version) for field in stale],
        )


def _fill(connection: sqlite3.Connection, table: Table, fields: Sequence[Field]) -> None:
    """Fill columns from the records. An unreadable one keeps what it has: finds report it."""
    changes = ", ".join(f"{_column(field.path)} = ?" for field in fields)
    pages = f"SELECT rowid, scope, id, codec, body FROM {table.table} WHERE rowid > ? LIMIT 200"
    last = -1
    while page := connection.execute(pages, (last,)).fetchall():
        last = page[-1][0]
        values = []
        for rowid, scope, id_, codec, body in page:
            try:
                record = table.codec.decode(f"{scope}/{table.name}/{id_}", codec, body)
            except RecordUnreadable:
                continue
            values.append((*[field.read(record) for field in fields], rowid))
        connection.executemany(f"UPDATE {table.table} SET {changes} WHERE rowid = ?", values)
