"""`connectors/sources/bodies.py`: limits that hold before and after unpacking."""

from __future__ import annotations

import gzip
import tracemalloc
import zlib
from collections.abc import AsyncIterator, Callable

import pytest

from connectors.errors import LinkUnreachable, SourceExploded, SourceTooLarge
from connectors.sources.bodies import read_body

LIMIT = 1000
PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": lambda body: gzip.compress(body),
    "deflate": lambda body: zlib.compress(body),
}


async def pieces(raw: bytes, size: int) -> AsyncIterator[bytes]:
    for at in range(0, len(raw), size):
        yield raw[at : at + size]


async def read(raw: bytes, encoding: str = "", *, size: int = 64, limit: int = LIMIT) -> bytes:
    return await read_body(pieces(raw, size), encoding, name="a", shown="http://a/", limit=limit)


@pytest.mark.parametrize("length", [0, 1, LIMIT - 1, LIMIT])
@pytest.mark.parametrize("encoding", ["", "identity", "gzip", "GZIP", "deflate"])
async def test_a_body_within_the_limit_is_whole(length: int, encoding: str) -> None:
    body = b"x" * length
    packed = PACKERS.get(encoding.lower(), bytes)(body)
    assert await read(packed, encoding) == body


async def test_a_body_one_byte_above_the_limit_is_refused() -> None:
    with pytest.raises(SourceTooLarge):
        await read(b"x" * (LIMIT + 1))


@pytest.mark.parametrize("size", [1, 50, 10_000])
async def test_a_body_that_unpacks_above_the_limit_is_refused(size: int) -> None:
    with pytest.raises(SourceExploded):
        await read(gzip.compress(bytes(LIMIT + 1)), "gzip", size=size)


async def test_a_bomb_in_one_piece_never_takes_more_memory_than_the_limit_and_a_step() -> None:
    bomb = gzip.compress(bytes(64 << 20))
    tracemalloc.start()
    try:
        with pytest.raises(SourceExploded):
            await read(bomb, "gzip", size=len(bomb), limit=1 << 20)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 4 << 20


async def test_members_in_a_row_are_all_read() -> None:
    assert await read(gzip.compress(b"one ") + gzip.compress(b"two"), "gzip", size=7) == b"one two"


@pytest.mark.parametrize(
    ("raw", "encoding", "reason"),
    [
        (gzip.compress(b"hello")[:-3], "gzip", "ended early"),
        (b"not gzip at all", "gzip", "damaged"),
        (gzip.compress(b"hello") + b"junk", "gzip", "damaged"),
        (b"x", "br", "packed in a way"),
        (gzip.compress(gzip.compress(b"x")), "gzip, gzip", "packed in a way"),
    ],
)
async def test_a_packed_body_that_cannot_be_read_is_a_sentence(
    raw: bytes, encoding: str, reason: str
) -> None:
    with pytest.raises(LinkUnreachable) as refused:
        await read(raw, encoding)
    assert reason in refused.value.sentence
