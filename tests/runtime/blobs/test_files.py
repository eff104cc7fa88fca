"""Blobs in a folder: who may look, what a crash leaves, what a full disk says."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from runtime.blobs.files import FileBlobs
from runtime.errors import StoreUnavailable


async def pieces(*data: bytes) -> AsyncIterator[bytes]:
    for piece in data:
        yield piece


def files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


async def test_nobody_but_the_owner_may_look(tmp_path: Path) -> None:
    root = tmp_path / "blobs"
    await FileBlobs(root).write("a1", pieces(b"abc"))
    (file,) = files(root)
    assert file.stat().st_mode & 0o777 == 0o600
    for folder in (root, root / "parts", file.parent):
        assert folder.stat().st_mode & 0o777 == 0o700


async def test_names_fan_out_over_folders(tmp_path: Path) -> None:
    blobs = FileBlobs(tmp_path)
    for number in range(40):
        await blobs.write(f"a{number}", pieces(b"x"))
    assert len({file.parent for file in files(tmp_path)}) > 20


async def test_a_failed_write_leaves_no_part(tmp_path: Path) -> None:
    async def broken() -> AsyncIterator[bytes]:
        yield b"abc"
        raise ConnectionResetError

    with pytest.raises(ConnectionResetError):
        await FileBlobs(tmp_path).write("a1", broken())
    assert files(tmp_path) == []


async def test_a_cancelled_call_ends_after_the_thread_that_works_for_it(tmp_path: Path) -> None:
    """Or a file would be closed under a thread that writes to it."""
    blobs = FileBlobs(tmp_path)
    await blobs.write("a1", pieces(b"x"))
    (file,) = files(tmp_path)
    file.unlink()
    os.mkfifo(file)  # whoever opens it waits until somebody writes
    reading = asyncio.create_task(blobs.read("a1", 0, 9))
    await asyncio.to_thread(os.getpid)
    try:
        for _ in range(2):
            reading.cancel()
            await asyncio.to_thread(os.getpid)
            assert not reading.done()
    finally:
        writer = os.open(file, os.O_RDWR)
    with pytest.raises(asyncio.CancelledError):
        await reading
    os.close(writer)


async def test_only_parts_older_than_the_given_time_are_swept(tmp_path: Path) -> None:
    blobs = FileBlobs(tmp_path)
    assert await blobs.sweep(datetime.now(UTC)) == 0  # noqa: TID251 - beside real file times
    await blobs.write("a1", pieces(b"kept"))
    old, young = tmp_path / "parts" / "old", tmp_path / "parts" / "young"
    instant = datetime(2027, 1, 4, 9, 0, tzinfo=UTC)
    for file, age in ((old, timedelta(seconds=1)), (young, timedelta(0))):
        file.write_bytes(b"part")
        stamp = (instant - age).timestamp()
        os.utime(file, (stamp, stamp))
    assert await blobs.sweep(instant) == 1
    assert not old.exists()
    assert young.exists()
    assert await blobs.read("a1", 0, 9) == b"kept"


async def test_a_sweep_removes_no_more_than_its_limit(tmp_path: Path) -> None:
    blobs = FileBlobs(tmp_path)
    await blobs.write("a1", pieces(b"x"))
    for number in range(3):
        (tmp_path / "parts" / f"p{number}").write_bytes(b"part")
    later = datetime(2100, 1, 1, tzinfo=UTC)
    assert await blobs.sweep(later, limit=2) == 2
    assert await blobs.sweep(later, limit=2) == 1


async def test_a_refusing_file_system_is_named_without_paths(tmp_path: Path) -> None:
    (tmp_path / "blobs").write_text("a file where the folder should be", encoding="utf-8")
    with pytest.raises(StoreUnavailable) as caught:
        await FileBlobs(tmp_path / "blobs").write("a1", pieces(b"x"))
    assert str(tmp_path) not in str(caught.value)
