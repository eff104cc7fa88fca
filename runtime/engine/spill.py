"""Spill: large results go to an artifact, whole; what is needed comes back in bounded windows.

Keeps INV-10. The record is stored in `writing` before the first byte, and becomes `ready` with its
digests after the last one is durable. Storing the same bytes under the same ID again, after a crash
or a lost reply, ends at the same ready artifact; other bytes are refused. A window is returned only
if its artifact is ready and unexpired and each chunk that it touches has its digest.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Protocol, TypeVar

from runtime.domain import artifact as artifacts
from runtime.domain.artifact import (
    BYTES_MAX,
    CHUNK_BYTES,
    RETENTION,
    WRITING_WITHIN,
    Artifact,
    ArtifactFailed,
    Measures,
    Ready,
    Retention,
    Writing,
    blob_name,
    text_like,
    unforgotten,
)
from runtime.domain.measure import Measuring
from runtime.domain.operation import Operation, Refused
from runtime.domain.values import Scope, Trust
from runtime.engine.kit import Kit
from runtime.engine.windows import Windows
from runtime.engine.work import Step, Work
from runtime.errors import AlreadyExists, ArtifactNotReady, BadInput
from runtime.ports import Blobs, Body, Commit, Create, Put, Reads, Store
from runtime.stores.collections import ARTIFACTS

T = TypeVar("T")


class Committing(Protocol):
    """Runs one transaction. `fenced_by(work)` makes one that only the current claim may use."""

    async def __call__(self, body: Body[T]) -> T:
        """The outcome of the commit that stood."""
        ...


def fenced_by(work: Work) -> Committing:
    """Commits that happen only while `work` is the newest claim of its operation (INV-3)."""

    async def commit(body: Body[T]) -> T:
        async def step(reads: Reads, _: Operation) -> Step[T]:
            decided = await body(reads)
            return Step(decided.outcome, decided.writes)

        return await work.commit(step)

    return commit


class Spill(Windows):
    """Stores artifacts, and reads them in windows."""

    async def store(
        self,
        store: Store,
        scope: Scope,
        data: bytes | AsyncIterator[bytes],
        *,
        job: str | None,
        content_type: str,
        file_name: str = "",
        trust: Trust,
        producer: str,
        retention: Retention,
        artifact_id: str | None = None,
        commit: Committing | None = None,
    ) -> Artifact:
        """Store bytes as a ready artifact.

        Args:
            store: a handle scoped to `scope`.
            scope: whose bytes these are.
            data: the bytes, or pieces of them in order.
            job: the job they belong to, if any.
            content_type: what they are declared to be.
            file_name: what they were called outside; shown, never used as a path.
            trust: how far they may be believed.
            producer: who made them.
            retention: how long they are kept.
            artifact_id: a derived ID for work that may be repeated; None for a fresh one.
            commit: how to commit; `fenced_by(work)` inside a handler.

        Raises:
            BadInput: no byte, or more than `BYTES_MAX`.
            AlreadyExists: the ID is taken by other bytes or another declaration.
            ArtifactNotReady: it expired, or another writer failed it meanwhile.
            FenceLost: a newer claim exists.
        """
        if isinstance(data, bytes):
            _bounded(len(data))
        now = self._kit.clock.now()
        offered = Artifact(
            id=artifact_id or self._kit.ids.new("artifact"),
            job=job,
            content_type=content_type,
            file_name=file_name,
            trust=trust,
            producer=producer,
            retention=retention,
            created_at=now,
            expires_at=now + RETENTION[retention],
            state=Writing(until=now + WRITING_WITHIN, writer=self._kit.ids.new("writer")),
        )
        run = _Storing(self._kit, self._blobs, scope, commit or _by(self._kit, store))
        return await run.store(offered, data)


def _by(kit: Kit, store: Store) -> Committing:
    async def commit(body: Body[T]) -> T:
        return await kit.commit(body, store)

    return commit


def _bounded(count: int) -> None:
    if not 1 <= count <= BYTES_MAX:
        raise BadInput(field="bytes", found=count, cause=f"an artifact has 1 to {BYTES_MAX} bytes")


class _Storing:
    """One storing of one artifact."""

    def __init__(self, kit: Kit, blobs: Blobs, scope: Scope, commit: Committing) -> None:
        self._kit = kit
        self._blobs = blobs
        self._scope = scope
        self._commit = commit

    async def store(self, offered: Artifact, data: bytes | AsyncIterator[bytes]) -> Artifact:
        begun = await self._begin(offered)
        if isinstance(begun.state, ArtifactFailed):
            await self._clear(begun)
            begun = await self._begin(offered)
        measuring = Measuring(offered.content_type, text=text_like(offered.content_type))
        try:
            if isinstance(begun.state, Ready):
                return await self._compare(begun, measuring, data)
            await self._blobs.write(blob_name(self._scope, begun), _measured(data, measuring))
            return await self._complete(begun, measuring.done())
        except (AlreadyExists, ArtifactNotReady):
            # Not this writing's own failure: the bytes or the record belong to another one.
            raise
        except Exception as error:
            await self._fail(offered, type(error).__name__)
            raise

    async def _begin(self, offered: Artifact) -> Artifact:
        key = ARTIFACTS.key(self._scope, offered.id)

        async def body(reads: Reads) -> Commit[Artifact]:
            known = await reads.get(key)
            if known is not None and unforgotten(known):
                return Commit(known)
            begun = artifacts.begin(known, offered)
            if isinstance(begun, Refused):
                if begun.found == "expired":
                    raise ArtifactNotReady(artifact=offered.id, state=begun.found)
                raise AlreadyExists(key=key.path)
            if known is None:
                return Commit(begun, (Create(key, begun),))
            return Commit(begun, () if begun == known else (Put(key, begun),))

        return await self._commit(body)

    async def _clear(self, failed: Artifact) -> None:
        """Delete the bytes of a failed generation before a new one hides their name."""
        key = ARTIFACTS.key(self._scope, failed.id)
        await self._blobs.delete(blob_name(self._scope, failed))

        async def body(reads: Reads) -> Commit[None]:
            known = await reads.get(key)
            if known is None or known.generation != failed.generation:
                return Commit(None)
            return Commit(None, (Put(key, artifacts.forget(known)),))

        await self._commit(body)

    async def _compare(
        self, ready: Artifact, measuring: Measuring, data: bytes | AsyncIterator[bytes]
    ) -> Artifact:
        async for _ in _measured(data, measuring):
            pass
        if measuring.done().sha256 != ready.sha256:
            raise AlreadyExists(key=ARTIFACTS.key(self._scope, ready.id).path)
        return ready

    async def _complete(self, begun: Artifact, measures: Measures) -> Artifact:
        key = ARTIFACTS.key(self._scope, begun.id)

        async def body(reads: Reads) -> Commit[Artifact | Refused]:
            known = await reads.get(key)
            if known is None or known.generation != begun.generation:
                return Commit(Refused("only the newest generation is written", "another"))
            done = artifacts.complete(known, measures, self._kit.clock.now())
            if isinstance(done, Refused) or done == known:
                return Commit(done)
            return Commit(done, (Put(key, done),))

        done = await self._commit(body)
        if isinstance(done, Refused):
            # Whoever gave this generation up may have looked for its bytes before they were there.
            await self._blobs.delete(blob_name(self._scope, begun))
            raise ArtifactNotReady(artifact=begun.id, state=done.found)
        return done

    async def _fail(self, offered: Artifact, reason: str) -> None:
        key = ARTIFACTS.key(self._scope, offered.id)

        async def body(reads: Reads) -> Commit[None]:
            known = await reads.get(key)
            if known is None or known.state != offered.state:
                return Commit(None)
            return Commit(None, (Put(key, artifacts.fail(known, reason, self._kit.clock.now())),))

        await self._commit(body)


async def _measured(
    data: bytes | AsyncIterator[bytes], measuring: Measuring
) -> AsyncIterator[bytes]:
    if isinstance(data, bytes):
        for start in range(0, len(data), CHUNK_BYTES):
            piece = data[start : start + CHUNK_BYTES]
            measuring.feed(piece)
            yield piece
        return
    async for piece in data:
        measuring.feed(piece)
        if measuring.bytes > BYTES_MAX:
            _bounded(measuring.bytes)
        yield piece
    _bounded(measuring.bytes)
