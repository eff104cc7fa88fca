"""The SQLite file: private creation, connections, and the turn to write among several processes.

SQLite's own busy handler lets one process starve another (its naps grow to a tenth of a second).
Here a process that wants to write asks again every fifth of a millisecond, so two writers share
evenly; the wait as a whole is bounded. A queue of file locks was measured too: no fairer, slower
when one process has more work than the other, and a frozen process could hold its place in it.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from runtime.errors import StoreUnavailable
from runtime.stores.sqlite_schema import Table, check_owner, migrate

RETRY_SECONDS: Final = 0.0002
LOCK_SECONDS: Final = 10.0

_PRAGMAS: Final = (
    "PRAGMA synchronous = FULL",
    "PRAGMA busy_timeout = 2000",
    "PRAGMA temp_store = MEMORY",
    "PRAGMA cache_size = -8000",
    # A checkpoint every 16 MiB instead of every 4: pages written often are copied back once.
    "PRAGMA wal_autocheckpoint = 4000",
    "PRAGMA journal_size_limit = 67108864",
)
_BUSY: Final = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


class Turn:
    """The right to write, for one open store. `pause` sleeps; a simulation gives its own."""

    def __init__(
        self, pause: Callable[[float], object], wait_seconds: float = LOCK_SECONDS
    ) -> None:
        self._pause = pause
        self._wait_seconds = wait_seconds
        self._tries_max = max(1, round(wait_seconds / RETRY_SECONDS))

    def begin(self, connection: sqlite3.Connection) -> None:
        """Start a write transaction.

        Raises:
            StoreUnavailable: other processes held the file for all that time.
        """
        self.insist(lambda: connection.execute("BEGIN IMMEDIATE"))

    def begin_at_once(self, connection: sqlite3.Connection) -> bool:
        """Start a write transaction if no other process has one; whether it started."""
        try:
            connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF not in _BUSY:
                raise
            return False
        return True

    def insist(self, step: Callable[[], object]) -> None:
        """Run a step that may find the file busy, again and again, a bounded number of times."""
        for _ in range(self._tries_max):
            try:
                step()
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF not in _BUSY:
                    raise
                self._pause(RETRY_SECONDS)
            else:
                return
        raise StoreUnavailable(
            cause=f"another process held the data file for {self._wait_seconds:g} s"
        )


def connect(path: str) -> sqlite3.Connection:
    """A connection in autocommit mode; the store says BEGIN and COMMIT itself."""
    connection = sqlite3.connect(
        path, isolation_level=None, check_same_thread=False, cached_statements=512
    )
    for pragma in _PRAGMAS:
        connection.execute(pragma)
    return connection


def open_file(path: str, tables: Sequence[Table], turn: Turn) -> None:
    """Create the file, readable by its owner only, if it is not there; bring its schema up."""
    Path(path).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not Path(path).exists():
        # Only a file that is not there is opened here: closing a descriptor of a file that SQLite
        # has open in this process would drop SQLite's locks.
        # If another process is first, its file is private by the same rule.
        with contextlib.suppress(FileExistsError):
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    connection = connect(path)
    try:
        turn.insist(lambda: check_owner(connection))
        turn.insist(lambda: connection.execute("PRAGMA journal_mode = WAL"))
        turn.insist(lambda: migrate(connection, tables))
    finally:
        connection.close()
