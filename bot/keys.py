"""The instance's own keys: made at first start, kept in files that only this user reads.

Keeps INV-20: a key never reaches the store, a log or an error; the store holds digests at most.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from runtime.errors import SettingsError
from runtime.ports import Ids

PRIVATE_FILE: Final = 0o600
PRIVATE_FOLDER: Final = 0o700
KEY_BYTES_MIN: Final = 16


class FileKeys:
    """The `Secrets` port over a folder; `ensure` makes a missing key once."""

    def __init__(self, folder: Path, ids: Ids) -> None:
        """Make the folder if it is missing.

        Raises:
            SettingsError: it cannot be made.
        """
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=PRIVATE_FOLDER)
        except OSError as error:
            cause = f"{folder} cannot be made: {error.strerror}"
            raise SettingsError(setting="HARMONIA_DATA_DIR", cause=cause) from None
        self._folder = folder
        self._ids = ids

    def read(self, name: str) -> bytes | None:
        """The key, or None if there is none."""
        path = self._folder / name
        return path.read_bytes() if path.exists() else None

    def ensure(self, name: str) -> bytes:
        """The key; of several processes that start at once, one makes it and all use it.

        Raises:
            SettingsError: the file is there but holds no key.
        """
        path = self._folder / name
        if not path.exists():
            fresh = self._folder / f".{name}.{self._ids.new('fresh')}"
            descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE_FILE)
            with os.fdopen(descriptor, "wb") as file:
                file.write(self._ids.token().encode())
                file.flush()
                os.fsync(file.fileno())
            try:
                os.link(fresh, path)
            except FileExistsError:
                pass  # another process was first; its key counts
            finally:
                fresh.unlink()
        key = path.read_bytes()
        if len(key) < KEY_BYTES_MIN:
            raise SettingsError(setting=f"key {name}", cause="its file holds no key; remove it")
        return key
