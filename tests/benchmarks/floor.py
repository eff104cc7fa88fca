"""The floor: the same job as seven hand-written SQLite transactions over 2 KB JSON documents.

No validation, no hashing, no queue, no polling: what SQLite itself costs. With one job at a time
each transaction is `BEGIN IMMEDIATE … COMMIT` on the caller's thread; with more, one writer thread
commits whatever waits in one transaction (a savepoint each), as our store does.
"""

from __future__ import annotations

import asyncio
import json
import queue
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path

Transaction = Callable[[sqlite3.Connection], None]
PAD = "x" * 1900


def _open(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("CREATE TABLE IF NOT EXISTS docs (key TEXT PRIMARY KEY, body TEXT)")
    return connection


def _put(connection: sqlite3.Connection, key: str, state: str, epoch: int) -> None:
    body = json.dumps({"key": key, "state": state, "epoch": epoch, "pad": PAD})
    connection.execute(
        "INSERT INTO docs VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET body = excluded.body",
        (key, body),
    )


def _epoch(connection: sqlite3.Connection, key: str) -> int:
    row = connection.execute("SELECT body FROM docs WHERE key = ?", (key,)).fetchone()
    return int(json.loads(row[0])["epoch"]) if row else 0


def job(number: int) -> list[Transaction]:
    """The seven transactions of one job over two documents; every tenth is delivered twice."""
    event, work = f"event-{number}", f"work-{number}"

    def accept(connection: sqlite3.Connection) -> None:
        if _epoch(connection, event) == 0:
            _put(connection, event, "accepted", 1)
            _put(connection, work, "pending", 0)

    def step(state: str) -> Transaction:
        def run(connection: sqlite3.Connection) -> None:
            epoch = _epoch(connection, work)
            _epoch(connection, event)
            _put(connection, event, state, 1)
            _put(connection, work, state, epoch + 1)

        return run

    names = ("thought", "waiting", "approved", "applied", "verified", "done")
    deliveries = [accept] * (2 if number % 10 == 0 else 1)
    return [*deliveries, *(step(name) for name in names)]


class OneAtATime:
    """Each transaction on the caller's thread."""

    def __init__(self, folder: Path) -> None:
        self._connection = _open(folder / "floor.sqlite")

    async def run(self, transaction: Transaction) -> None:
        self._connection.execute("BEGIN IMMEDIATE")
        transaction(self._connection)
        self._connection.execute("COMMIT")

    def close(self) -> None:
        self._connection.close()


class Grouped:
    """One writer thread; whatever waits becomes one commit."""

    def __init__(self, folder: Path) -> None:
        self._connection = _open(folder / "floor.sqlite")
        self._waiting: queue.SimpleQueue[
            tuple[Transaction, asyncio.AbstractEventLoop, asyncio.Future[None]] | None
        ] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._write, daemon=True)
        self._thread.start()

    async def run(self, transaction: Transaction) -> None:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        self._waiting.put((transaction, loop, future))
        await future

    def _write(self) -> None:
        while (first := self._waiting.get()) is not None:
            batch = [first]
            while not self._waiting.empty():
                more = self._waiting.get()
                if more is None:
                    self._waiting.put(None)
                    break
                batch.append(more)
            self._connection.execute("BEGIN IMMEDIATE")
            for transaction, _, _ in batch:
                self._connection.execute("SAVEPOINT one")
                transaction(self._connection)
                self._connection.execute("RELEASE one")
            self._connection.execute("COMMIT")
            for _, loop, future in batch:
                loop.call_soon_threadsafe(future.set_result, None)

    def close(self) -> None:
        self._waiting.put(None)
        self._thread.join()
        self._connection.close()
