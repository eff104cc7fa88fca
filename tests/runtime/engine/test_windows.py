"""Windows: bounded, exact, verified by what they touch and nothing else (INV-10)."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.blobs.files import FileBlobs
from runtime.domain.artifact import (
    BYTES_MAX,
    CHUNK_BYTES,
    WHOLE_BYTES_MAX,
    WINDOW_BYTES_MAX,
    WINDOW_CHARS_MAX,
    WINDOW_LINES_MAX,
    Artifact,
    Retention,
    blob_name,
)
from runtime.domain.measure import Measuring
from runtime.domain.values import Trust, sha256
from runtime.engine.kit import Kit
from runtime.engine.spill import Spill
from runtime.engine.windows import Windows
from runtime.errors import (
    ArtifactCorrupt,
    ArtifactMissing,
    ArtifactNotReady,
    ScopeViolation,
    WindowRefused,
)
from runtime.ports import Blobs, Commit, Put, Reads, Store
from runtime.stores.collections import ARTIFACTS
from runtime.stores.scoped import Scoped
from tests.world import ACME, OTHER, ManualClock, ReplyLosing, make_kit


class Counted:
    """Blobs in a folder that count the bytes they gave out."""

    def __init__(self, blobs: Blobs) -> None:
        self._blobs = blobs
        self.bytes_read = 0

    async def write(self, name: str, chunks: AsyncIterator[bytes]) -> int:
        return await self._blobs.write(name, chunks)

    async def read(self, name: str, start: int, count: int) -> bytes:
        data = await self._blobs.read(name, start, count)
        self.bytes_read += len(data)
        return data

    async def size(self, name: str) -> int | None:
        return await self._blobs.size(name)

    async def delete(self, name: str) -> bool:
        return await self._blobs.delete(name)


class Room:
    """A kit, counted blobs and a spill over one folder."""

    def __init__(self, kit: Kit, folder: Path) -> None:
        self.kit = kit
        self.folder = folder
        self.blobs = Counted(FileBlobs(folder))
        self.spill = Spill(kit, self.blobs)
        self.store: Store = Scoped(kit.store, (ACME,))

    async def put(
        self, data: bytes, content_type: str = "text/plain", retention: Retention = "source"
    ) -> Artifact:
        return await self.spill.store(
            self.store,
            ACME,
            data,
            job=None,
            content_type=content_type,
            trust=Trust.EXTERNAL,
            producer="test",
            retention=retention,
        )

    def file(self, artifact: Artifact) -> Path:
        return next(self.folder.rglob(blob_name(ACME, artifact)))

    async def state(self, artifact: Artifact) -> str:
        found = await self.store.get(ARTIFACTS.key(ACME, artifact.id))
        assert found is not None
        return found.state.name


@pytest.fixture(params=[None, ReplyLosing], ids=["plain", "replies lost"])
async def room(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Room]:
    kit = await make_kit(tmp_path, wrap=request.param)
    yield Room(kit, tmp_path / "blobs")
    await kit.store.close()


DATA = bytes(range(256)) * 1_024  # four chunks


@pytest.mark.parametrize("start", [0, 1, CHUNK_BYTES - 1, CHUNK_BYTES, len(DATA) - 1])
@pytest.mark.parametrize("count", [1, 2, CHUNK_BYTES - 1, CHUNK_BYTES])
async def test_a_byte_window_is_exact_and_ends_with_the_artifact(
    room: Room, start: int, count: int
) -> None:
    stored = await room.put(DATA, "application/octet-stream")
    window = await room.spill.read_bytes(room.store, ACME, stored.id, start, count)
    assert window.data == DATA[start : start + count]
    assert (window.start, window.end) == (start, min(start + count, len(DATA)))


@pytest.mark.parametrize(
    ("start", "count"),
    [(-1, 1), (len(DATA), 1), (0, 0), (0, -1), (0, WINDOW_BYTES_MAX + 1)],
)
async def test_an_unbounded_byte_window_is_refused(room: Room, start: int, count: int) -> None:
    stored = await room.put(DATA)
    with pytest.raises(WindowRefused):
        await room.spill.read_bytes(room.store, ACME, stored.id, start, count)


@pytest.mark.parametrize(
    ("first", "count", "accepted"),
    [
        (0, WINDOW_LINES_MAX - 1, True),
        (0, WINDOW_LINES_MAX, True),
        (0, WINDOW_LINES_MAX + 1, False),
        (999, 1, True),
        (1_000, 1, False),
        (-1, 1, False),
        (0, 0, False),
    ],
)
async def test_a_line_window_is_bounded(
    room: Room, first: int, count: int, *, accepted: bool
) -> None:
    stored = await room.put(b"".join(b"line %d\n" % number for number in range(1_000)))
    if not accepted:
        with pytest.raises(WindowRefused):
            await room.spill.read_lines(room.store, ACME, stored.id, first, count)
        return
    window = await room.spill.read_lines(room.store, ACME, stored.id, first, count)
    assert window.lines == tuple(f"line {number}" for number in range(first, first + count))
    assert not window.cut


@pytest.mark.parametrize(
    ("start", "count", "accepted"),
    [
        (0, WINDOW_CHARS_MAX - 1, True),
        (0, WINDOW_CHARS_MAX, True),
        (0, WINDOW_CHARS_MAX + 1, False),
        (99_999, 1, True),
        (100_000, 1, False),
        (-1, 1, False),
        (0, 0, False),
    ],
)
async def test_a_character_window_is_bounded(
    room: Room, start: int, count: int, *, accepted: bool
) -> None:
    text = "Ж" * 100_000
    stored = await room.put(text.encode())
    if not accepted:
        with pytest.raises(WindowRefused):
            await room.spill.read_window(room.store, ACME, stored.id, start, count)
        return
    window = await room.spill.read_window(room.store, ACME, stored.id, start, count)
    assert window.text == text[start : start + count]
    assert window.end == start + count


async def test_what_is_not_text_has_no_lines_and_no_characters(room: Room) -> None:
    stored = await room.put(DATA)
    with pytest.raises(WindowRefused):
        await room.spill.read_lines(room.store, ACME, stored.id, 0, 1)
    with pytest.raises(WindowRefused):
        await room.spill.read_window(room.store, ACME, stored.id, 0, 1)


@pytest.mark.parametrize("shift", range(4))
async def test_characters_across_chunks_are_exact(room: Room, shift: int) -> None:
    text = "x" * shift + "Ж€😀\n" * 30_000
    stored = await room.put(text.encode())
    assert len(stored.chunks) > 3
    for index in range(1, len(stored.chunks)):
        border = stored.chunk_chars[index]
        for start in range(border - 2, border + 3):
            for count in (1, 2, 3, 40_000):
                window = await room.spill.read_window(room.store, ACME, stored.id, start, count)
                assert window.text == text[start : start + count]
    tail = await room.spill.read_window(room.store, ACME, stored.id, len(text) - 3, 9)
    assert tail.text == text[-3:]


async def test_lines_across_chunks_are_exact(room: Room) -> None:
    lines = [("Ж" * (number % 701)) + str(number) for number in range(2_000)]
    stored = await room.put("\n".join(lines).encode())
    assert len(stored.chunks) > 10
    for first in (0, 1, 77, 250, 1_000, 1_999, *(line for line in stored.chunk_lines if line)):
        window = await room.spill.read_lines(room.store, ACME, stored.id, first, 20)
        assert window.lines == tuple(lines[first : first + 20])
        start = len("\n".join(lines[:first]).encode()) + (first > 0)
        assert window.start == start


@given(st.text(st.sampled_from("a\nЖ"), min_size=1, max_size=40))
def test_lines_are_what_splitting_at_line_feeds_gives(text: str) -> None:
    measuring = Measuring("text/plain", text=True)
    measuring.feed(text.encode())
    expected = text.removesuffix("\n").split("\n")
    assert measuring.done().lines == len(expected)


async def test_a_line_longer_than_a_window_is_cut_and_says_so(room: Room) -> None:
    text = "Ж" * 50_000 + "\nnext\n"
    stored = await room.put(b"x" + text.encode())
    window = await room.spill.read_lines(room.store, ACME, stored.id, 0, 2)
    assert window.cut
    assert len(window.lines) == 1
    assert window.end - window.start == len(window.lines[0].encode())
    rest = await room.spill.read_bytes(room.store, ACME, stored.id, window.end, WINDOW_BYTES_MAX)
    assert (window.lines[0].encode() + rest.data) == b"x" + text.encode()
    second = await room.spill.read_lines(room.store, ACME, stored.id, 1, 5)
    assert (second.lines, second.cut) == (("next",), False)


async def large(room: Room) -> Artifact:
    """A sparse text of the largest size: zeros, and real lines in its last chunk."""
    stored = await room.put(b"\x00" * CHUNK_BYTES)
    chunks = BYTES_MAX // CHUNK_BYTES
    last = (b"line\n" * (CHUNK_BYTES // 5)).ljust(CHUNK_BYTES, b"x")
    os.truncate(room.file(stored), BYTES_MAX)
    with room.file(stored).open("r+b") as file:
        file.seek(BYTES_MAX - CHUNK_BYTES)
        file.write(last)
    whole = stored.model_copy(
        update={
            "bytes": BYTES_MAX,
            "chars": BYTES_MAX,
            "lines": last.count(b"\n") + 1,
            "chunks": (*stored.chunks * (chunks - 1), sha256(last)),
            "chunk_chars": tuple(CHUNK_BYTES * index for index in range(chunks)),
            "chunk_lines": (0,) * chunks,
        }
    )

    async def body(_: Reads) -> Commit[None]:
        return Commit(None, (Put(ARTIFACTS.key(ACME, stored.id), whole),))

    await room.store.transact(body)
    return whole


async def test_a_window_of_the_largest_artifact_reads_at_most_two_chunks(room: Room) -> None:
    whole = await large(room)
    middle = BYTES_MAX // 2 - 7
    room.blobs.bytes_read = 0
    await room.spill.read_bytes(room.store, ACME, whole.id, middle, WINDOW_BYTES_MAX)
    assert room.blobs.bytes_read == 2 * CHUNK_BYTES
    room.blobs.bytes_read = 0
    await room.spill.read_bytes(room.store, ACME, whole.id, BYTES_MAX - 1, WINDOW_BYTES_MAX)
    assert room.blobs.bytes_read == CHUNK_BYTES
    room.blobs.bytes_read = 0
    window = await room.spill.read_lines(room.store, ACME, whole.id, 9_000, 3)
    assert window.lines == ("line",) * 3
    assert room.blobs.bytes_read <= 2 * CHUNK_BYTES
    room.blobs.bytes_read = 0
    text = await room.spill.read_window(room.store, ACME, whole.id, BYTES_MAX - 9, 9)
    assert text.text == "ne\nline\nx"
    assert room.blobs.bytes_read == CHUNK_BYTES
    with pytest.raises(WindowRefused):
        await room.spill.whole(room.store, ACME, whole.id)


@pytest.mark.parametrize(("limit", "accepted"), [(99, False), (100, True), (101, True)])
async def test_a_whole_read_is_bounded(room: Room, limit: int, *, accepted: bool) -> None:
    stored = await room.put(b"x" * 100)
    if accepted:
        assert await room.spill.whole(room.store, ACME, stored.id, limit) == b"x" * 100
        return
    with pytest.raises(WindowRefused):
        await room.spill.whole(room.store, ACME, stored.id, limit)


async def test_no_limit_of_a_caller_exceeds_the_limit_of_all(room: Room) -> None:
    stored = await room.put(b"x" * (WHOLE_BYTES_MAX + 1), "application/octet-stream")
    with pytest.raises(WindowRefused):
        await room.spill.whole(room.store, ACME, stored.id, 10 * WHOLE_BYTES_MAX)


async def damage(room: Room, artifact: Artifact, at: int) -> None:
    with room.file(artifact).open("r+b") as file:
        file.seek(at)
        byte = file.read(1)
        file.seek(at)
        file.write(bytes([byte[0] ^ 1]))


async def test_one_damaged_bit_is_never_shown_and_fails_the_artifact(room: Room) -> None:
    stored = await room.put(DATA)
    await damage(room, stored, CHUNK_BYTES + 5)
    before = await room.spill.read_bytes(room.store, ACME, stored.id, 0, CHUNK_BYTES)
    assert before.data == DATA[:CHUNK_BYTES]
    with pytest.raises(ArtifactCorrupt):
        await room.spill.read_bytes(room.store, ACME, stored.id, CHUNK_BYTES, 1)
    assert await room.state(stored) == "failed"
    with pytest.raises(ArtifactNotReady):
        await room.spill.read_bytes(room.store, ACME, stored.id, 0, 1)


async def test_a_whole_read_finds_damage_too(room: Room) -> None:
    stored = await room.put(DATA)
    await damage(room, stored, len(DATA) - 1)
    with pytest.raises(ArtifactCorrupt):
        await room.spill.whole(room.store, ACME, stored.id)
    assert await room.state(stored) == "failed"


@pytest.mark.parametrize("size", [0, 5, len(DATA) - 1])
async def test_cut_off_bytes_are_damage(room: Room, size: int) -> None:
    stored = await room.put(DATA)
    os.truncate(room.file(stored), size)
    with pytest.raises(ArtifactCorrupt):
        await room.spill.whole(room.store, ACME, stored.id)
    assert await room.state(stored) == "failed"


async def test_lost_bytes_are_missing_and_fail_the_artifact(room: Room) -> None:
    stored = await room.put(DATA)
    room.file(stored).unlink()
    with pytest.raises(ArtifactMissing):
        await room.spill.read_bytes(room.store, ACME, stored.id, 0, 1)
    assert await room.state(stored) == "failed"


@pytest.mark.parametrize(("late", "shown"), [(-1, True), (0, False), (1, False)])
async def test_an_expired_artifact_is_not_shown(room: Room, late: int, *, shown: bool) -> None:
    stored = await room.put(b"abc", retention="ephemeral")
    clock = room.kit.clock
    assert isinstance(clock, ManualClock)
    clock.advance(stored.expires_at - clock.now() + timedelta(microseconds=late))
    if shown:
        assert (await room.spill.read_bytes(room.store, ACME, stored.id, 0, 3)).data == b"abc"
        return
    with pytest.raises(ArtifactNotReady):
        await room.spill.read_bytes(room.store, ACME, stored.id, 0, 3)


async def test_an_unknown_artifact_is_missing(room: Room) -> None:
    with pytest.raises(ArtifactMissing):
        await room.spill.read_bytes(room.store, ACME, "nothing", 0, 1)


async def test_another_tenant_reads_nothing_even_with_the_id(room: Room) -> None:
    stored = await room.put(b"abc")
    with pytest.raises(ScopeViolation):
        await room.spill.read_bytes(room.store, OTHER, stored.id, 0, 1)
    with pytest.raises(ArtifactMissing):
        await Windows(room.kit, room.blobs).read_bytes(room.kit.store, OTHER, stored.id, 0, 1)
