"""The SQLite file: private creation, connections, and the turn to write among several processes.

SQLite's own busy handler lets one process starve another. Here a process that wants to write asks
again every fifth of a millisecond, so that neither waits long; the wait as a whole is bounded.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from runtime.errors import StoreUnavailable
from runtime.stores.sqlite_schema import Table, migrate

RETRY_SECONDS: Final = 0.0002
WAIT_SECONDS_MAX: Final = 10.0

_PRAGMAS: Final = (
    "PRAGMA synchronous = FULL",
    "PRAGMA busy_timeout = 0",
    "PRAGMA temp_store = MEMORY",
    "PRAGMA cache_size = -8000",
    "PRAGMA journal_size_limit = 67108864",
)
_BUSY: Final = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


class Turn:
    """The right to write, for one open store. `pause` sleeps; a simulation gives its own."""

    def __init__(self, pause: Callable[[float], object], monotonic: Callable[[], float]) -> None:
        self._pause = pause
        self._monotonic = monotonic

    def begin(self, connection: sqlite3.Connection) -> None:
        """Start a write transaction.

        Raises:
            StoreUnavailable: other processes held the file beyond the deadline.
        """
        self.insist(lambda: connection.execute("BEGIN IMMEDIATE"))

    def insist(self, step: Callable[[], object]) -> None:
        """Run a step that may find the file busy, again and again within the deadline."""
        deadline = None
        while True:
            try:
                step()
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF not in _BUSY:
                    raise
                now = self._monotonic()
                deadline = deadline or now + WAIT_SECONDS_MAX
                if now >= deadline:
                    raise StoreUnavailable(
                        cause=f"another process held the data file for {WAIT_SECONDS_MAX:.0f} s"
                    ) from error
                self._pause(RETRY_SECONDS)
            else:
                return

    def end(self) -> None:
        """The transaction is over."""

    def close(self) -> None:
        """Give back what the turn holds."""


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
        turn.insist(lambda: connection.execute("PRAGMA journal_mode = WAL"))
        turn.insist(lambda: migrate(connection, tables))
    finally:
        connection.close()
