"""Blobs in a folder: the embedded default.

Bytes are written to a temporary part, made durable, and only then linked to their name, which fails
if the name is taken: a name never stands for half of its bytes, nor first for these and then for
others. Names are opaque; the folder they lie in is derived, and nobody but the owner may look.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import hashlib
import os
import re
import tempfile
from collections.abc import AsyncIterator, Callable
from datetime import datetime
from pathlib import Path
from typing import BinaryIO, Final, ParamSpec, TypeVar

from runtime.errors import AlreadyExists, ArtifactMissing, BadInput, StoreUnavailable

BUFFER_BYTES: Final = 1024 * 1024
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,127}\Z")
"""Lower case only, so that no two names meet on a file system that folds case."""

P = ParamSpec("P")
T = TypeVar("T")


class FileBlobs:
    """`Blobs` under one folder, which is made when the first bytes come."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._parts = root / "parts"

    async def write(self, name: str, chunks: AsyncIterator[bytes]) -> int:
        """Store the bytes durably, create-only; an equal re-write is fine.

        Raises:
            AlreadyExists: other bytes are there.
            StoreUnavailable: the file system refused.
        """
        final = self._place(name)
        part = await _io(self._begin)
        try:
            count = 0
            buffer = bytearray()
            async for chunk in chunks:
                buffer += chunk
                if len(buffer) >= BUFFER_BYTES:
                    count += await _io(_write, part, bytes(buffer))
                    buffer.clear()
            count += await _io(_write, part, bytes(buffer))
            await _io(self._publish, part, final)
        finally:
            await _io(_drop, part)
        return count

    async def read(self, name: str, start: int, count: int) -> bytes:
        """At most `count` bytes from `start`. Raises ArtifactMissing, StoreUnavailable."""
        if start < 0 or count < 0:
            raise BadInput(field="range", start=start, count=count, cause="negative")
        try:
            return await _io(_read, self._place(name), start, count)
        except FileNotFoundError:
            raise ArtifactMissing(artifact=name) from None

    async def size(self, name: str) -> int | None:
        """How many bytes there are, or None."""
        try:
            return (await _io(self._place(name).stat)).st_size
        except FileNotFoundError:
            return None

    async def delete(self, name: str) -> bool:
        """Remove the bytes durably; whether there were any."""
        try:
            await _io(_delete, self._place(name))
        except FileNotFoundError:
            return False
        return True

    async def sweep(self, older_than: datetime, limit: int = 1_000) -> int:
        """Remove parts that a crash left before `older_than`, at most `limit`; how many."""
        return await _io(_sweep, self._parts, older_than.timestamp(), limit)

    def _place(self, name: str) -> Path:
        if _NAME.match(name) is None:
            raise BadInput(field="name", cause="not the name of a blob")
        return self._root / hashlib.sha256(name.encode()).hexdigest()[:2] / name

    def _begin(self) -> BinaryIO:
        _make_folder(self._root)
        _make_folder(self._parts)
        handle, path = tempfile.mkstemp(dir=self._parts)  # the owner's only: mode 0600
        os.close(handle)
        return Path(path).open("r+b", buffering=0)

    def _publish(self, part: BinaryIO, final: Path) -> None:
        os.fsync(part.fileno())
        if _make_folder(final.parent):
            _sync_folder(self._root)
        try:
            os.link(part.name, final)
        except FileExistsError:
            if not _equal(part, final):
                raise AlreadyExists(key=f"blobs/{final.name}") from None
        # Also when it was there: whoever linked it may have died before this.
        _sync_folder(final.parent)


async def _io(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Blocking work in a thread; only "not there" keeps its own error.

    A cancelled caller waits for the thread all the same: nobody closes or removes a file that it
    still writes to, and a closed descriptor's number may be another file's a moment later.
    """
    running = asyncio.ensure_future(asyncio.to_thread(work, *args, **kwargs))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        while not running.done():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait([running])
        raise
    except FileNotFoundError:
        raise
    except OSError as error:
        cause = errno.errorcode.get(error.errno or 0, type(error).__name__)
        raise StoreUnavailable(cause=f"blobs: {cause}") from None


def _make_folder(folder: Path) -> bool:
    """Whether the folder had to be made."""
    if folder.is_dir():
        return False
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return True


def _sync_folder(folder: Path) -> None:
    """Make the folder's entries durable."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _drop(part: BinaryIO) -> None:
    part.close()
    Path(part.name).unlink(missing_ok=True)


def _write(part: BinaryIO, data: bytes) -> int:
    """Write all of it; an unbuffered file may take less at once."""
    view = memoryview(data)
    while view:
        view = view[part.write(view) :]
    return len(data)


def _read(final: Path, start: int, count: int) -> bytes:
    with final.open("rb") as file:
        file.seek(start)
        return file.read(count)


def _equal(part: BinaryIO, final: Path) -> bool:
    part.seek(0)
    with final.open("rb") as there:
        while True:
            mine, theirs = _next(part), _next(there)
            if mine != theirs:
                return False
            if not mine:
                return True


def _next(file: BinaryIO) -> bytes:
    """The next full buffer, or what is left."""
    data = bytearray()
    while len(data) < BUFFER_BYTES and (more := file.read(BUFFER_BYTES - len(data))):
        data += more
    return bytes(data)


def _delete(final: Path) -> None:
    final.unlink()
    _sync_folder(final.parent)


def _sweep(parts: Path, before: float, limit: int) -> int:
    if not parts.is_dir():
        return 0
    removed = 0
    with os.scandir(parts) as entries:
        for entry in entries:
            if removed == limit:
                break
            if entry.stat(follow_symlinks=False).st_mtime < before:
                Path(entry.path).unlink(missing_ok=True)
                removed += 1
    return removed
