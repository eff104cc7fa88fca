"""Spill: whole or failed, never in between; the same bytes again are the same artifact (INV-10)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from runtime.blobs.files import FileBlobs
from runtime.domain import operation as operations
from runtime.domain.artifact import (
    BYTES_MAX,
    CHUNK_BYTES,
    RETENTION,
    WRITING_WITHIN,
    Artifact,
    ArtifactFailed,
    Ready,
    Writing,
    blob_name,
)
from runtime.domain.operation import Goal, Operation, Pending
from runtime.domain.values import Trust, sha256
from runtime.engine.kit import Kit
from runtime.engine.retention import sweep
from runtime.engine.spill import Spill, fenced_by
from runtime.engine.work import Work
from runtime.errors import (
    AlreadyExists,
    ArtifactNotReady,
    BadInput,
    FenceLost,
    ScopeViolation,
    StoreUnavailable,
)
from runtime.ports import Blobs, Commit, Put, Reads, Store
from runtime.stores.collections import ARTIFACTS, OPERATIONS
from runtime.stores.scoped import Scoped
from tests.world import ACME, OTHER, ManualClock, ReplyLosing, make_kit

TEXT = b"one\ntwo\n" * 20_000


class Room:
    """A kit, blobs and a spill over one folder."""

    def __init__(self, kit: Kit, blobs: Blobs) -> None:
        self.kit = kit
        self.blobs = blobs
        self.spill = Spill(kit, blobs)
        self.store: Store = Scoped(kit.store, (ACME,))

    async def put(self, data: bytes | AsyncIterator[bytes], **changes: object) -> Artifact:
        declared: dict[str, Any] = {
            "job": "job-1",
            "content_type": "text/plain",
            "trust": Trust.EXTERNAL,
            "producer": "test",
            "retention": "source",
        }
        return await self.spill.store(self.store, ACME, data, **(declared | changes))

    async def stored(self, id_: str) -> Artifact:
        found = await self.store.get(ARTIFACTS.key(ACME, id_))
        assert found is not None
        return found

    async def size(self, artifact: Artifact) -> int | None:
        return await self.blobs.size(blob_name(ACME, artifact))


@pytest.fixture(params=[None, ReplyLosing], ids=["plain", "replies lost"])
async def room(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Room]:
    kit = await make_kit(tmp_path, wrap=request.param)
    yield Room(kit, FileBlobs(tmp_path / "blobs"))
    await kit.store.close()


async def pieces(*data: bytes) -> AsyncIterator[bytes]:
    for piece in data:
        yield piece


async def broken(*data: bytes) -> AsyncIterator[bytes]:
    for piece in data:
        yield piece
    raise ConnectionResetError


async def test_what_was_stored_is_ready_with_its_digests(room: Room) -> None:
    artifact = await room.put(TEXT, file_name="a.txt")
    now = room.kit.clock.now()
    assert artifact == await room.stored(artifact.id)
    assert artifact.state == Ready(at=now)
    assert artifact.expires_at == now + RETENTION["source"]
    assert (artifact.bytes, artifact.sha256) == (len(TEXT), sha256(TEXT))
    assert artifact.chunks == tuple(
        sha256(TEXT[start : start + CHUNK_BYTES]) for start in range(0, len(TEXT), CHUNK_BYTES)
    )
    assert artifact.lines == 40_000
    assert TEXT.decode().startswith(artifact.head)
    assert TEXT.decode().endswith(artifact.tail)


async def test_a_stream_makes_the_same_artifact_as_its_bytes(room: Room) -> None:
    streamed = await room.put(pieces(TEXT[:100_001], TEXT[100_001:]))
    whole = await room.put(TEXT)
    assert streamed.model_copy(update={"id": whole.id}) == whole


async def test_the_record_is_there_before_the_first_byte_is_asked_for(room: Room) -> None:
    seen: list[str] = []

    async def watching() -> AsyncIterator[bytes]:
        seen.append((await room.stored("a1")).state.name)
        yield b"x"

    await room.put(watching(), artifact_id="a1")
    assert seen == ["writing"]


async def test_equal_bytes_again_are_the_same_ready_artifact(room: Room) -> None:
    first = await room.put(TEXT, artifact_id="a1")
    again = await room.put(pieces(TEXT), artifact_id="a1")
    assert again == first


@pytest.mark.parametrize("other", [b"other", TEXT + b"x", TEXT[:-1]])
async def test_other_bytes_under_a_ready_id_are_refused(room: Room, other: bytes) -> None:
    first = await room.put(TEXT, artifact_id="a1")
    with pytest.raises(AlreadyExists):
        await room.put(other, artifact_id="a1")
    assert await room.stored("a1") == first
    assert await room.spill.whole(room.store, ACME, "a1") == TEXT


async def test_trust_never_rises_by_storing_again(room: Room) -> None:
    await room.put(TEXT, artifact_id="a1")
    with pytest.raises(AlreadyExists):
        await room.put(TEXT, artifact_id="a1", trust=Trust.SYSTEM)


@pytest.mark.parametrize("after", ["record", "bytes"])
async def test_a_crash_in_the_middle_is_completed_by_the_same_work(room: Room, after: str) -> None:
    began = asyncio.Event()
    never = asyncio.Event()

    async def dying() -> AsyncIterator[bytes]:
        yield TEXT
        began.set()
        await never.wait()

    dead = asyncio.create_task(room.put(dying(), artifact_id="a1"))
    await began.wait()
    dead.cancel()
    with pytest.raises(asyncio.CancelledError):
        await dead
    written = await room.stored("a1")
    assert isinstance(written.state, Writing)
    if after == "bytes":
        await room.blobs.write(blob_name(ACME, written), pieces(TEXT))
    done = await room.put(TEXT, artifact_id="a1")
    assert done.state.name == "ready"
    assert await room.spill.whole(room.store, ACME, "a1") == TEXT


async def test_other_bytes_after_a_crash_are_refused_until_it_is_given_up(room: Room) -> None:
    clock = room.kit.clock
    assert isinstance(clock, ManualClock)
    offered = await room.put(b"first", artifact_id="a0")
    writing = offered.model_copy(
        update={"id": "a1", "state": Writing(until=clock.now() + WRITING_WITHIN)}
    )
    await room.blobs.write(blob_name(ACME, writing), pieces(b"first"))

    async def body(_: Reads) -> Commit[None]:
        return Commit(None, (Put(ARTIFACTS.key(ACME, "a1"), writing),))

    await room.store.transact(body)
    with pytest.raises(AlreadyExists):
        await room.put(b"other", artifact_id="a1")
    assert (await room.stored("a1")).state.name == "writing"
    clock.advance(WRITING_WITHIN)
    await sweep(room.kit, room.blobs, 10)
    assert (await room.put(b"other", artifact_id="a1")).state.name == "ready"


async def test_a_failure_keeps_only_its_class(room: Room) -> None:
    with pytest.raises(ConnectionResetError):
        await room.put(broken(b"half"), artifact_id="a1")
    failed = await room.stored("a1")
    assert failed.state == ArtifactFailed(at=room.kit.clock.now(), reason="ConnectionResetError")
    assert await room.size(failed) is None


async def test_failed_work_may_be_repeated_and_old_bytes_do_not_stay(room: Room) -> None:
    with pytest.raises(ConnectionResetError):
        await room.put(broken(b"half"), artifact_id="a1")
    failed = await room.stored("a1")
    await room.blobs.write(blob_name(ACME, failed), pieces(b"left by a zombie"))
    done = await room.put(TEXT, artifact_id="a1")
    assert (done.state.name, done.generation) == ("ready", 1)
    assert await room.size(failed) is None


async def test_a_late_writer_of_a_given_up_generation_leaves_no_bytes(room: Room) -> None:
    clock = room.kit.clock
    assert isinstance(clock, ManualClock)

    async def slow() -> AsyncIterator[bytes]:
        yield b"late"
        clock.advance(WRITING_WITHIN)
        await sweep(room.kit, room.blobs, 10)

    with pytest.raises(ArtifactNotReady):
        await room.put(slow(), artifact_id="a1")
    failed = await room.stored("a1")
    assert failed.state.name == "failed"
    assert await room.size(failed) is None


async def test_equal_writers_at_once_end_at_one_artifact(tmp_path: Path) -> None:
    room = Room(await make_kit(tmp_path), FileBlobs(tmp_path / "blobs"))
    ended = await asyncio.gather(
        *(room.put(pieces(TEXT[:9], TEXT[9:]), artifact_id="a1") for _ in range(5))
    )
    assert len({artifact.model_dump_json() for artifact in ended}) == 1
    await room.kit.store.close()


async def test_one_failing_writer_does_not_fail_another(room: Room) -> None:
    async def overtaken() -> AsyncIterator[bytes]:
        yield b"x"
        await room.put(TEXT, artifact_id="a1")
        raise ConnectionResetError

    with pytest.raises(ConnectionResetError):
        await room.put(overtaken(), artifact_id="a1")
    assert (await room.stored("a1")).state.name == "ready"


@pytest.mark.parametrize("data", [b"", b"x" * 8])
async def test_no_byte_is_no_artifact(room: Room, data: bytes) -> None:
    if data:
        assert (await room.put(data[:1], artifact_id="a1")).bytes == 1
        return
    with pytest.raises(BadInput):
        await room.put(data, artifact_id="a1")
    assert await room.store.get(ARTIFACTS.key(ACME, "a1")) is None
    with pytest.raises(BadInput):
        await room.put(pieces(), artifact_id="a1")
    assert (await room.stored("a1")).state.name == "failed"


class Sink:
    """Blobs that count what comes and keep nothing: for sizes that no test should write."""

    def __init__(self) -> None:
        self.count = 0

    async def write(self, name: str, chunks: AsyncIterator[bytes]) -> int:
        del name
        async for chunk in chunks:
            self.count += len(chunk)
        return self.count

    async def read(self, name: str, start: int, count: int) -> bytes:
        raise NotImplementedError

    async def size(self, name: str) -> int | None:
        raise NotImplementedError

    async def delete(self, name: str) -> bool:
        raise NotImplementedError


@pytest.mark.parametrize(("more", "accepted"), [(-1, True), (0, True), (1, False)])
async def test_the_size_is_bounded_to_the_byte(room: Room, more: int, *, accepted: bool) -> None:
    block = bytes(8 * 1024 * 1024)

    async def stream() -> AsyncIterator[bytes]:
        for _ in range(BYTES_MAX // len(block) - 1):
            yield block
        yield block[: len(block) + min(more, 0)]
        if more > 0:
            yield b"x" * more

    large = Room(room.kit, Sink())
    if accepted:
        stored = await large.put(
            stream(), artifact_id="a1", content_type="application/octet-stream"
        )
        assert stored.bytes == BYTES_MAX + more
        return
    with pytest.raises(BadInput):
        await large.put(stream(), artifact_id="a1", content_type="application/octet-stream")
    assert (await room.stored("a1")).state.name == "failed"


async def test_a_full_disk_fails_the_artifact_in_words_of_ours(room: Room, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder", encoding="utf-8")
    bad = Room(room.kit, FileBlobs(tmp_path / "file"))
    with pytest.raises(StoreUnavailable):
        await bad.put(TEXT, artifact_id="a1")
    failed = await room.stored("a1")
    assert isinstance(failed.state, ArtifactFailed)
    assert failed.state.reason == "StoreUnavailable"


async def test_another_tenants_handle_stores_nothing_here(room: Room) -> None:
    room.store = Scoped(room.kit.store, (OTHER,))
    with pytest.raises(ScopeViolation):
        await room.put(TEXT, artifact_id="a1")


async def claimed(room: Room) -> Work:
    goal = Goal(kind="stage.read", digest="d" * 64)
    now = room.kit.clock.now()
    born = Operation(
        id="op-1",
        kind="stage.read",
        goal=goal,
        acceptance=(),
        correlation="c-1",
        created_at=now,
        state=Pending(ready_at=now),
    )
    operation = operations.claim(born, "a" * 64, now)
    assert isinstance(operation, Operation)

    async def body(_: Reads) -> Commit[None]:
        return Commit(None, (Put(OPERATIONS.key(ACME, "op-1"), operation),))

    await room.store.transact(body)
    return Work(room.kit, ACME, operation)


async def test_a_handler_stores_under_its_fence(room: Room) -> None:
    work = await claimed(room)
    done = await room.put(TEXT, artifact_id="a1", commit=fenced_by(work))
    assert done.state.name == "ready"


async def test_a_stale_worker_stores_nothing(room: Room) -> None:
    work = await claimed(room)
    key = OPERATIONS.key(ACME, "op-1")

    async def taken(reads: Reads) -> Commit[None]:
        operation = await reads.get(key)
        assert operation is not None
        now = room.kit.clock.now()
        again = operations.claim(operations.release(operation, now), "b" * 64, now)
        assert isinstance(again, Operation)
        return Commit(None, (Put(key, again),))

    await room.store.transact(taken)
    with pytest.raises(FenceLost):
        await room.put(TEXT, artifact_id="a1", commit=fenced_by(work))
    assert await room.store.get(ARTIFACTS.key(ACME, "a1")) is None


async def test_writing_is_given_its_time_and_no_more(room: Room) -> None:
    clock = room.kit.clock
    assert isinstance(clock, ManualClock)

    async def slow(wait: timedelta) -> AsyncIterator[bytes]:
        yield b"x"
        clock.advance(wait)
        await sweep(room.kit, room.blobs, 10)

    tick = timedelta(microseconds=1)
    assert (await room.put(slow(WRITING_WITHIN - tick), artifact_id="a1")).state.name == "ready"
    with pytest.raises(ArtifactNotReady):
        await room.put(slow(WRITING_WITHIN), artifact_id="a2")
