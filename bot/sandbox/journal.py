"""An append-only file of changes, so that `kill -9` keeps a sandbox world.

Keeps: one line is one whole change, written with a single write before the change is answered; a
torn last line (the process died inside the write) is dropped, any other unreadable line is an
error. `compact` replaces the file by rename, so there is never a moment without a whole one.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

from bot.sandbox.errors import WorldUnreadable


class Journal:
    """A file of JSON lines; without a path it forgets everything."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._file: int | None = None

    def replay(self) -> Iterator[Any]:
        """Every line that was written whole; a torn tail is cut off."""
        if self._path is None or not self._path.exists():
            return
        content = self._path.read_bytes()
        whole, newline, torn = content.rpartition(b"\n")
        if torn:
            os.truncate(self._path, len(whole) + len(newline))
        for number, line in enumerate(filter(None, whole.split(b"\n")), start=1):
            try:
                yield orjson.loads(line)
            except orjson.JSONDecodeError as cause:
                raise WorldUnreadable(
                    file=self._path.name, line=number, cause=str(cause)
                ) from cause

    def append(self, change: Any) -> None:  # noqa: ANN401 - any JSON value
        """Write one change."""
        if self._path is None:
            return
        if self._file is None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        line = orjson.dumps(change, option=orjson.OPT_NON_STR_KEYS) + b"\n"
        written = 0
        while written < len(line):
            written += os.write(self._file, line[written:])

    def compact(self, changes: list[Any]) -> None:
        """Replace the whole file by these changes."""
        if self._path is None:
            return
        self.close()
        self._path.parent.mkdir(parents=True, exist_ok=True)
        fresh = self._path.with_suffix(".new")
        lines = b"".join(
            orjson.dumps(change, option=orjson.OPT_NON_STR_KEYS) + b"\n" for change in changes
        )
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(lines)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(self._path)

    def close(self) -> None:
        """Let go of the file."""
        if self._file is not None:
            os.close(self._file)
            self._file = None
