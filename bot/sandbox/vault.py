"""The bytes of uploaded files: in memory, or in a folder.

Keeps: a name is made by the world, never by a sender, and names one content for ever; a file is
whole on disk before the message that shows it exists.
"""

from __future__ import annotations

from pathlib import Path


class Vault:
    """Holds file contents by their made name."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._memory: dict[str, bytes] = {}

    def put(self, name: str, content: bytes) -> None:
        """Keep the content under a fresh name."""
        if self._folder is None:
            self._memory[name] = content
            return
        self._folder.mkdir(parents=True, exist_ok=True)
        fresh = self._folder / f"{name}.new"
        fresh.write_bytes(content)
        fresh.replace(self._folder / name)

    def get(self, name: str) -> bytes | None:
        """The content, or None where there is none."""
        if self._folder is None:
            return self._memory.get(name)
        path = self._folder / name
        return path.read_bytes() if path.is_file() else None
