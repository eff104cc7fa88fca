"""Commits on the SQLite file: validation and writing, many in one transaction.

Each commit is validated (versions read, absences, the results of its finds) against the state its
predecessors in the batch left, so commits are serial in batch order; each applies whole or not at
all. Versions come from a counter that no process, crash, delete or rollback ever reuses.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from runtime.domain.values import Record
from runtime.errors import AlreadyExists, StoreUnavailable
from runtime.stores.sqlite_cache import Place
from runtime.stores.sqlite_files import Turn
from runtime.stores.sqlite_schema import Table
from runtime.stores.transactions import Stale

VERSIONS_RESERVED: Final = 1 << 16
VERSIONS_KNOWN_MAX: Final = 20_000


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


class Committer:
    """The connection that writes. One caller at a time."""

    def __init__(self, connection: sqlite3.Connection, turn: Turn) -> None:
        self._writer = connection
        self._turn = turn
        self._version = self._version_end = 0
        # What is known of versions, and the file's change mark under which it was learned.
        self._versions: dict[Place, int] = {}
        self._data_version = -1

    def commit_batch(self, batch: Sequence[Prepared]) -> list[Outcome]:
        """Commit all that are valid, in order, with one fsync; the outcome of each."""
        try:
            self._turn.begin(self._writer)
        except sqlite3.Error as error:
            return [unavailable(error) for _ in batch]
        except StoreUnavailable as refused:
            return [StoreUnavailable(**refused.fields) for _ in batch]
        return self._commit(batch)

    def commit_at_once(self, prepared: Prepared) -> list[Outcome] | None:
        """Commit one without ever waiting for another process; None if one holds the file."""
        try:
            if not self._turn.begin_at_once(self._writer):
                return None
        except sqlite3.Error as error:
            return [unavailable(error)]
        return self._commit([prepared])

    def _commit(self, batch: Sequence[Prepared]) -> list[Outcome]:
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
            version = self._versions[place] = version_now(self._writer, table, place)
        return version

    def _apply(self, prepared: Prepared) -> Outcome:
        """Validate, then write: nothing is written before the last check has passed."""
        writer, versions = self._writer, self._versions
        for table, place, version in prepared.seen.gets:
            if self._current(table, place) != version:
                return Stale()
        if not finds_hold(writer, prepared.seen):
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


def version_now(connection: sqlite3.Connection, table: Table, place: Place) -> int:
    """The version of a record as this connection sees it; 0 is absence."""
    found = connection.execute(table.sql_version, place[1:]).fetchone()
    return 0 if found is None else int(found[0])


def finds_hold(connection: sqlite3.Connection, seen: Seen) -> bool:
    """Whether every find would give the same rows in the same versions again."""
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
