"""The state of a sandbox: people, chats, messages, files, pending updates.

Keeps: every change goes through `put` and `drop` and becomes visible to waiters only in `commit`,
which first writes it to the journal as one line; between two commits there is no `await`, so a
change is whole or absent after `kill -9`. Rows are only replaced, never altered in place.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

from bot.sandbox.errors import WorldUnreadable
from bot.sandbox.journal import Journal
from bot.sandbox.model import (
    Chat,
    Message,
    Person,
    Press,
    QueuedUpdate,
    Row,
    Setup,
    StoredFile,
    Topic,
)
from bot.sandbox.pulse import Pulse
from bot.sandbox.vault import Vault
from runtime.ports import Clock, Ids

RowT = TypeVar("RowT", bound=Row)
Key = tuple[Any, ...]

_KEYS: dict[type[Row], tuple[str, ...]] = {
    Person: ("id",),
    Chat: ("id",),
    Topic: ("chat_id", "thread_id"),
    Message: ("chat_id", "message_id"),
    StoredFile: ("file_id",),
    QueuedUpdate: ("update_id",),
    Press: ("query_id",),
    Setup: (),
}
_NAMES = {kind.__name__: kind for kind in _KEYS}
PRESSES_KEPT = 500


def key_of(row: Row) -> Key:
    """The key of a row within its table."""
    return tuple(getattr(row, field) for field in _KEYS[type(row)])


class World:
    """All rows, with a journal behind them."""

    def __init__(self, clock: Clock, ids: Ids, directory: Path | None = None) -> None:
        """An empty world, or the one that the directory holds."""
        self.clock = clock
        self.ids = ids
        self.pulse = Pulse()
        self.updates_pulse = Pulse()
        self.vault = Vault(None if directory is None else directory / "files")
        self._journal = Journal(None if directory is None else directory / "world.jsonl")
        self._tables: dict[type[Row], dict[Key, Row]] = {kind: {} for kind in _KEYS}
        self._by_chat: dict[int, dict[int, Message]] = {}
        self._pending: list[list[Any]] = []
        for change in self._journal.replay():
            self._replay(change)
        if not self.empty:
            self._journal.compact([self._dump()])

    @property
    def empty(self) -> bool:
        """Whether nothing was ever put here."""
        return not self._tables[Setup]

    # --- reading ---

    def get(self, kind: type[RowT], *key: object) -> RowT | None:
        """The row with this key."""
        row = self._tables[kind].get(key)
        return row if isinstance(row, kind) else None

    def all(self, kind: type[RowT]) -> Iterator[RowT]:
        """Every row of a kind, oldest first."""
        return (row for row in list(self._tables[kind].values()) if isinstance(row, kind))

    @property
    def setup(self) -> Setup:
        """The bot account."""
        row = self._tables[Setup].get(())
        if not isinstance(row, Setup):
            raise WorldUnreadable(file="world.jsonl", line=0, cause="no setup row")
        return row

    @property
    def bot(self) -> Person:
        """The bot itself."""
        row = self.get(Person, self.setup.bot_id)
        if row is None:
            raise WorldUnreadable(file="world.jsonl", line=0, cause="no bot row")
        return row

    def messages(self, chat_id: int) -> list[Message]:
        """The messages of a chat, oldest first."""
        return list(self._by_chat.get(chat_id, {}).values())

    def now(self) -> int:
        """Unix time in whole seconds, as the Bot API counts it."""
        return int(self.clock.now().timestamp())

    # --- changing ---

    def put(self, row: RowT) -> RowT:
        """Add or replace a row."""
        self._apply(row)
        self._pending.append([type(row).__name__, row.model_dump(mode="json")])
        return row

    def drop(self, row: Row) -> None:
        """Remove a row."""
        self._remove(type(row), key_of(row))
        self._pending.append([f"-{type(row).__name__}", list(key_of(row))])

    def commit(self) -> None:
        """Write what changed, then wake those who wait."""
        if not self._pending:
            return
        self._trim_presses()
        change, self._pending = self._pending, []
        self._journal.append(change)
        self.pulse.beat()
        if any(name in {"QueuedUpdate", "-QueuedUpdate", "Setup"} for name, _ in change):
            self.updates_pulse.beat()

    def stop(self) -> None:
        """End every wait, so that a server can stop."""
        self.pulse.close()
        self.updates_pulse.close()

    def close(self) -> None:
        """Let go of the files."""
        self._journal.close()

    def count(self, counter: str, start: int = 1) -> int:
        """The next number of a counter."""
        setup = self.setup
        number = setup.counters.get(counter, start - 1) + 1
        self.put(setup.model_copy(update={"counters": {**setup.counters, counter: number}}))
        return number

    # --- inside ---

    def _trim_presses(self) -> None:
        presses = self._tables[Press]
        while len(presses) > PRESSES_KEPT:
            self.drop(next(iter(presses.values())))

    def _apply(self, row: Row) -> None:
        self._tables[type(row)][key_of(row)] = row
        if isinstance(row, Message):
            self._by_chat.setdefault(row.chat_id, {})[row.message_id] = row

    def _remove(self, kind: type[Row], key: Key) -> None:
        self._tables[kind].pop(key, None)
        if kind is Message:
            self._by_chat.get(key[0], {}).pop(key[1], None)

    def _replay(self, change: list[list[Any]]) -> None:
        for name, value in change:
            if name.startswith("-"):
                self._remove(_NAMES[name[1:]], tuple(value))
            else:
                self._apply(_NAMES[name].model_validate(value))

    def _dump(self) -> list[list[Any]]:
        return [
            [kind.__name__, row.model_dump(mode="json")]
            for kind, table in self._tables.items()
            for row in table.values()
        ]
