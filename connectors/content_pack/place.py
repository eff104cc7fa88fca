"""Where packs are: folders by tenant, a lock for each command, and files that appear whole.

A file is written under a name that nobody reads, flushed, and then linked under its own: it is
there whole or not at all, and a link never replaces what is there. Whoever sends or looks holds the
command's kernel lock, which ends with its process. A look that finds nothing closes the attempts so
far, durably and under the lock, so that a sender that thaws later finds its attempt closed: absence
stays true (INV-6).

All names are resolved below open folders, and no symbolic link is followed.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Final, Self

WORKSHOP: Final = ".work"
"""Locks, unfinished files and closed attempts; a pack's folder shows packs only."""
LOCK_TRIES: Final = 500
LOCK_PAUSE_SECONDS: Final = 0.02
DIGITS_MAX: Final = 20

_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class Place:
    """The folder of one tenant's packs, as seen for one command. Use it as a context.

    Raises:
        OSError: the folder can be neither opened nor made.
    """

    def __init__(self, root: Path, folders: tuple[str, ...], key: str) -> None:
        """Open the folders, making those that are missing. `key` stands for the command."""
        self._lock, self._part, self._closed = f"{key}.lock", f"{key}.part", f"{key}.closed"
        with suppress(FileExistsError):
            root.mkdir(0o700, parents=True, exist_ok=True)
        fds = [os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)]
        try:
            for name in (*folders, WORKSHOP):
                fds.append(_enter(fds[-1], name))
        except OSError:
            _close(fds)
            raise
        self._folder, self._work = fds[-2], fds[-1]
        self._fds = fds

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        _close(self._fds)

    @contextmanager
    def holding(self, tries: int) -> Iterator[bool]:
        """Hold the command's lock for the length of the block; False if somebody else has it."""
        fd = self._acquire(tries)
        try:
            yield fd is not None
        finally:
            if fd is not None:
                # Removed while held: whoever waits for it sees that its file is gone.
                with suppress(OSError):
                    os.unlink(self._lock, dir_fd=self._work)
                _close([fd])

    def _acquire(self, tries: int) -> int | None:
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        for attempt in range(tries):
            if attempt:
                threading.Event().wait(LOCK_PAUSE_SECONDS)
            fd = os.open(self._lock, flags, 0o600, dir_fd=self._work)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if _same(fd, self._lock, self._work):
                    return fd
            except BlockingIOError:
                pass
            except OSError:
                os.close(fd)
                raise
            os.close(fd)
        return None

    def read(self, name: str, limit: int) -> bytes | None:
        """At most `limit` bytes of a file, or None if nothing has that name.

        Raises:
            OSError: ELOOP if it is a link or no plain file; others as the disk says.
        """
        try:
            fd = os.open(_encoded(name), _READ, dir_fd=self._folder)
        except FileNotFoundError:
            return None
        with os.fdopen(fd, "rb") as file:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                raise OSError(errno.ELOOP, "not a plain file")
            return file.read(limit)

    def stage(self, data: bytes) -> None:
        """Write the bytes durably under the unfinished name; the pack is not there yet.

        Always into a new file: what a dead process left may be a link to a pack that appeared.
        """
        self.discard()
        fd = os.open(self._part, _NEW, 0o600, dir_fd=self._work)
        with os.fdopen(fd, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(fd)

    def publish(self, name: str) -> None:
        """Make the staged file appear under its name, whole, unless something is there.

        Raises:
            FileExistsError: something is there.
        """
        os.link(
            self._part,
            _encoded(name),
            src_dir_fd=self._work,
            dst_dir_fd=self._folder,
            follow_symlinks=False,
        )

    def keep(self, name: str) -> None:
        """Make sure that a file that is there stays there after a power cut."""
        fd = os.open(_encoded(name), _READ, dir_fd=self._folder)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
        os.fsync(self._folder)

    def discard(self) -> None:
        """Remove an unfinished file, if there is one."""
        with suppress(OSError):
            os.unlink(self._part, dir_fd=self._work)

    def remove(self, name: str) -> None:
        """Remove a file that the caller made, if it is there."""
        with suppress(FileNotFoundError):
            os.unlink(_encoded(name), dir_fd=self._folder)

    def closed(self) -> int:
        """The newest attempt that was closed, 0 if none was."""
        try:
            fd = os.open(self._closed, _READ, dir_fd=self._work)
        except FileNotFoundError:
            return 0
        with os.fdopen(fd, "rb") as file:
            text = file.read(DIGITS_MAX + 1)
        if not text.isdigit():
            raise OSError(errno.EIO, "the record of closed attempts is damaged")
        return int(text)

    def close_attempts(self, attempt: int) -> None:
        """Close all attempts up to this one, durably. Call it under the lock."""
        self.stage(str(max(attempt, self.closed())).encode())
        os.replace(self._part, self._closed, src_dir_fd=self._work, dst_dir_fd=self._work)
        os.fsync(self._work)


def _enter(parent: int, name: str) -> int:
    """Open a folder below an open one, making it if needed."""
    try:
        os.mkdir(name, 0o700, dir_fd=parent)
        os.fsync(parent)
    except FileExistsError:
        pass
    return os.open(name, _FOLDER, dir_fd=parent)


def _same(fd: int, name: str, folder: int) -> bool:
    """Whether the open file is still the one of that name."""
    try:
        there = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return os.path.samestat(there, os.fstat(fd))


def _encoded(name: str) -> bytes:
    """UTF-8 whatever the locale: a title in another script must not stop an export."""
    return name.encode()


def _close(fds: list[int]) -> None:
    """Close what was only looked at: a fault here says nothing about what was written."""
    for fd in fds:
        with suppress(OSError):
            os.close(fd)
