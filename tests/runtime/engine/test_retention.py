"""Retention: the bytes are really gone, in bounded sweeps that any crash may interrupt (INV-10)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from runtime.blobs.files import FileBlobs
from runtime.domain.artifact import (
    RETENTION,
    WRITING_WITHIN,
    Artifact,
    Retention,
    Writing,
    blob_name,
)
from runtime.domain.values import Tenant, Trust
from runtime.engine.kit import Kit
from runtime.engine.retention import Cursors, Swept, sweep
from runtime.engine.spill import Spill
from runtime.errors import StoreUnavailable
from runtime.ports import Blobs, Commit, Put, Reads
from runtime.stores.collections import ARTIFACTS
from tests.world import ACME, OTHER, ManualClock, ReplyLosing, make_kit

WEEK = RETENTION["ephemeral"]
TICK = timedelta(microseconds=1)


class Room:
    """A kit and blobs over one folder."""

    def __init__(self, kit: Kit, folder: Path) -> None:
        self.kit = kit
        self.folder = folder
        self.blobs: Blobs = FileBlobs(folder)

    @property
    def clock(self) -> ManualClock:
        assert isinstance(self.kit.clock, ManualClock)
        return self.kit.clock

    async def put(
        self, id_: str, scope: Tenant = ACME, retention: Retention = "ephemeral"
    ) -> Artifact:
        return await Spill(self.kit, self.blobs).store(
            self.kit.store,
            scope,
            f"bytes of {id_}".encode(),
            job=None,
            content_type="text/plain",
            trust=Trust.EXTERNAL,
            producer="test",
            retention=retention,
            artifact_id=id_,
        )

    async def change(self, artifact: Artifact, scope: Tenant = ACME) -> None:
        async def body(_: Reads) -> Commit[None]:
            return Commit(None, (Put(ARTIFACTS.key(scope, artifact.id), artifact),))

        await self.kit.store.transact(body)

    async def stored(self, id_: str, scope: Tenant = ACME) -> Artifact:
        found = await self.kit.store.get(ARTIFACTS.key(scope, id_))
        assert found is not None
        return found

    async def sweep(self, limit: int = 100, cursors: Cursors | None = None) -> Swept:
        return await sweep(self.kit, self.blobs, limit, cursors)

    def bytes_left(self) -> list[bytes]:
        return sorted(path.read_bytes() for path in self.folder.rglob("*") if path.is_file())


@pytest.fixture(params=[None, ReplyLosing], ids=["plain", "replies lost"])
async def room(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Room]:
    kit = await make_kit(tmp_path, wrap=request.param)
    yield Room(kit, tmp_path / "blobs")
    await kit.store.close()


async def test_expired_bytes_are_really_gone_and_others_stay(room: Room) -> None:
    await room.put("short")
    await room.put("elsewhere", OTHER)
    await room.put("long", retention="audit")
    room.clock.advance(WEEK)
    swept = await room.sweep()
    assert len(swept.expired) == len(swept.deleted) == 2
    assert room.bytes_left() == [b"bytes of long"]
    for id_, scope in (("short", ACME), ("elsewhere", OTHER)):
        gone = await room.stored(id_, scope)
        assert gone.model_dump()["state"]["deleted"] is True
        assert (gone.head, gone.tail) == ("", "")
        assert gone.sha256 is not None
    assert (await room.stored("long")).state.name == "ready"


@pytest.mark.parametrize(("offset", "expired"), [(-TICK, 0), (0 * TICK, 1), (TICK, 1)])
async def test_an_artifact_expires_at_its_time_exactly(
    room: Room, offset: timedelta, expired: int
) -> None:
    await room.put("short")
    room.clock.advance(WEEK + offset)
    assert len((await room.sweep()).expired) == expired


async def writing(room: Room, id_: str) -> Artifact:
    ready = await room.put(id_)
    unfinished = ready.model_copy(
        update={"state": Writing(until=room.clock.now() + WRITING_WITHIN, writer="w")}
    )
    await room.change(unfinished)
    return unfinished


@pytest.mark.parametrize(("offset", "given_up"), [(-TICK, 0), (0 * TICK, 1), (TICK, 1)])
async def test_unfinished_writing_fails_at_its_time_exactly(
    room: Room, offset: timedelta, given_up: int
) -> None:
    await writing(room, "a1")
    room.clock.advance(WRITING_WITHIN + offset)
    swept = await room.sweep()
    assert len(swept.given_up) == given_up
    assert room.bytes_left() == ([] if given_up else [b"bytes of a1"])
    assert (await room.stored("a1")).state.name == ("failed" if given_up else "writing")


class Dying:
    """Blobs whose process dies at one point of a delete: before it or after it."""

    def __init__(self, blobs: Blobs, *, after: bool) -> None:
        self._blobs = blobs
        self._after = after

    async def write(self, name: str, chunks: AsyncIterator[bytes]) -> int:
        return await self._blobs.write(name, chunks)

    async def read(self, name: str, start: int, count: int) -> bytes:
        return await self._blobs.read(name, start, count)

    async def size(self, name: str) -> int | None:
        return await self._blobs.size(name)

    async def delete(self, name: str) -> bool:
        if self._after:
            await self._blobs.delete(name)
        raise KeyboardInterrupt


@pytest.mark.parametrize("after", [False, True])
async def test_a_crash_around_the_deletion_is_completed_next_time(
    room: Room, *, after: bool
) -> None:
    await room.put("short")
    room.clock.advance(WEEK)
    with pytest.raises(KeyboardInterrupt):
        await sweep(room.kit, Dying(room.blobs, after=after), 10)
    between = await room.stored("short")
    assert between.model_dump()["state"]["name"] == "expired"
    assert between.model_dump()["state"]["deleted"] is False
    swept = await room.sweep()
    assert len(swept.deleted) == 1
    assert room.bytes_left() == []
    assert (await room.sweep()).deleted == ()


class Refusing(Dying):
    """Blobs that cannot delete one name."""

    def __init__(self, blobs: Blobs, name: str) -> None:
        super().__init__(blobs, after=True)
        self._name = name

    async def delete(self, name: str) -> bool:
        if name == self._name:
            raise StoreUnavailable(cause="blobs: EIO")
        return await self._blobs.delete(name)


async def test_what_cannot_be_deleted_never_blocks_the_rest(room: Room) -> None:
    first = await room.put("a0")
    for number in range(1, 6):
        await room.put(f"a{number}")
    room.clock.advance(WEEK)
    blobs = Refusing(room.blobs, blob_name(ACME, first))
    cursors = None
    deleted: list[str] = []
    for _ in range(6):
        swept = await sweep(room.kit, blobs, 1, cursors)
        cursors = swept.cursors
        deleted += swept.deleted
        assert all(cause == "StoreUnavailable" for _, cause in swept.skipped)
    assert len(deleted) >= 4
    assert b"bytes of a0" in room.bytes_left()


async def test_a_sweep_does_no_more_than_its_limit(room: Room) -> None:
    for number in range(5):
        await room.put(f"a{number}")
    room.clock.advance(WEEK)
    first = await room.sweep(limit=2)
    assert (len(first.expired), len(first.deleted)) == (2, 2)
    rest: list[Any] = [*first.expired]
    cursors = first.cursors
    for _ in range(2):
        swept = await room.sweep(limit=2, cursors=cursors)
        cursors = swept.cursors
        rest += swept.expired
    assert len(set(rest)) == 5


async def test_an_idle_sweep_changes_nothing(room: Room) -> None:
    await room.put("short")
    assert await room.sweep() == Swept()
