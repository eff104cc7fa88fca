"""What every adapter of `Blobs` keeps. A new adapter joins by one line in `ADAPTERS`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from runtime.blobs.files import FileBlobs
from runtime.errors import AlreadyExists, ArtifactMissing, BadInput
from runtime.ports import Blobs

ADAPTERS: dict[str, Callable[[Path], Blobs]] = {
    "files": lambda folder: FileBlobs(folder / "blobs"),
}
BIG = 3 * 1024 * 1024 + 17


@pytest.fixture(params=list(ADAPTERS.values()), ids=list(ADAPTERS))
def blobs(request: pytest.FixtureRequest, tmp_path: Path) -> Blobs:
    made: Blobs = request.param(tmp_path)
    return made


async def pieces(*data: bytes) -> AsyncIterator[bytes]:
    for piece in data:
        yield piece


async def broken(*data: bytes) -> AsyncIterator[bytes]:
    for piece in data:
        yield piece
    raise ConnectionResetError


async def test_what_was_written_in_pieces_is_read_as_one(blobs: Blobs) -> None:
    assert await blobs.write("a1", pieces(b"one ", b"", b"two")) == 7
    assert await blobs.read("a1", 0, 100) == b"one two"
    assert await blobs.size("a1") == 7


async def test_no_bytes_at_all_are_bytes_too(blobs: Blobs) -> None:
    assert await blobs.write("a1", pieces()) == 0
    assert await blobs.size("a1") == 0
    assert await blobs.read("a1", 0, 1) == b""


async def test_pieces_larger_than_any_buffer_come_back_whole(blobs: Blobs) -> None:
    data = bytes(range(256)) * (BIG // 256) + b"end"
    await blobs.write("a1", pieces(data[:5], data[5:]))
    assert await blobs.read("a1", 0, len(data) + 1) == data


@pytest.mark.parametrize(
    ("start", "count", "expected"),
    [
        (0, 0, b""),
        (0, 1, b"a"),
        (1, 2, b"bc"),
        (2, 1, b"c"),
        (2, 9, b"c"),
        (3, 1, b""),
        (4, 1, b""),
    ],
)
async def test_a_range_is_cut_at_the_end(
    blobs: Blobs, start: int, count: int, expected: bytes
) -> None:
    await blobs.write("a1", pieces(b"abc"))
    assert await blobs.read("a1", start, count) == expected


@pytest.mark.parametrize(("start", "count"), [(-1, 1), (0, -1)])
async def test_a_negative_range_is_refused(blobs: Blobs, start: int, count: int) -> None:
    await blobs.write("a1", pieces(b"abc"))
    with pytest.raises(BadInput):
        await blobs.read("a1", start, count)


async def test_writing_the_same_bytes_again_is_fine(blobs: Blobs) -> None:
    data = b"x" * BIG
    await blobs.write("a1", pieces(data))
    assert await blobs.write("a1", pieces(data[:7], data[7:])) == BIG


@pytest.mark.parametrize("other", [b"abd", b"ab", b"abcd", b""])
async def test_other_bytes_never_replace_what_is_there(blobs: Blobs, other: bytes) -> None:
    await blobs.write("a1", pieces(b"abc"))
    with pytest.raises(AlreadyExists):
        await blobs.write("a1", pieces(other))
    assert await blobs.read("a1", 0, 9) == b"abc"


async def test_one_of_many_writers_at_once_wins_and_the_others_are_told(blobs: Blobs) -> None:
    offers = [f"bytes of writer {number}".encode() for number in range(8)]
    ended = await asyncio.gather(
        *(blobs.write("a1", pieces(offer)) for offer in offers), return_exceptions=True
    )
    won = [offer for offer, end in zip(offers, ended, strict=True) if isinstance(end, int)]
    assert len(won) == 1
    assert sum(isinstance(end, AlreadyExists) for end in ended) == 7
    assert await blobs.read("a1", 0, 100) == won[0]


async def test_equal_writers_at_once_all_succeed(blobs: Blobs) -> None:
    ended = await asyncio.gather(*(blobs.write("a1", pieces(b"same")) for _ in range(8)))
    assert ended == [4] * 8


async def test_a_write_whose_source_breaks_leaves_nothing(blobs: Blobs) -> None:
    with pytest.raises(ConnectionResetError):
        await blobs.write("a1", broken(b"x" * BIG))
    assert await blobs.size("a1") is None
    await blobs.write("a1", pieces(b"other"))


async def test_absent_bytes_are_missing(blobs: Blobs) -> None:
    with pytest.raises(ArtifactMissing):
        await blobs.read("a1", 0, 1)
    assert await blobs.size("a1") is None
    assert not await blobs.delete("a1")


async def test_deleted_bytes_are_gone_and_the_name_is_free(blobs: Blobs) -> None:
    await blobs.write("a1", pieces(b"abc"))
    assert await blobs.delete("a1")
    assert await blobs.size("a1") is None
    with pytest.raises(ArtifactMissing):
        await blobs.read("a1", 0, 1)
    assert await blobs.write("a1", pieces(b"new")) == 3


@pytest.mark.parametrize(
    "name",
    ["", "A1", "../a1", "a/b", ".hidden", "-a", "a.b", "a\x00b", "a\n", "ä", "a" * 129, "con "],
)
async def test_a_name_that_could_mean_a_place_is_refused(blobs: Blobs, name: str) -> None:
    with pytest.raises(BadInput):
        await blobs.write(name, pieces(b"x"))
    with pytest.raises(BadInput):
        await blobs.read(name, 0, 1)
    with pytest.raises(BadInput):
        await blobs.size(name)
    with pytest.raises(BadInput):
        await blobs.delete(name)


@pytest.mark.parametrize("name", ["a", "0", "a-b_c9", "a" * 128])
async def test_an_opaque_name_is_accepted(blobs: Blobs, name: str) -> None:
    assert await blobs.write(name, pieces(b"x")) == 1
    assert await blobs.read(name, 0, 1) == b"x"
