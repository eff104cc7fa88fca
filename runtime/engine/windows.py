"""Windows: bounded reads of artifacts that check scope, state, expiry and digests.

Keeps INV-10: a window shows bytes only from a ready, unexpired artifact, and only after every chunk
that it touches had its stored digest; nothing else of the artifact is read. Damage found on the way
marks the artifact failed, in a commit of its own, and is raised.
"""

from __future__ import annotations

import codecs
from dataclasses import dataclass
from typing import Final

from runtime.domain import artifact as artifacts
from runtime.domain.artifact import (
    CHUNK_BYTES,
    WHOLE_BYTES_MAX,
    WINDOW_BYTES_MAX,
    WINDOW_CHARS_MAX,
    WINDOW_LINES_MAX,
    Artifact,
    Ready,
    blob_name,
    chunk_of_break,
    chunk_of_char,
    chunks_of,
    evidence,
)
from runtime.domain.measure import CONTINUATION
from runtime.domain.operation import Refused
from runtime.domain.values import Scope, sha256
from runtime.engine.kit import Kit
from runtime.errors import ArtifactCorrupt, ArtifactMissing, ArtifactNotReady, WindowRefused
from runtime.ports import Blobs, Commit, Put, Reads, Store
from runtime.stores.collections import ARTIFACTS

CHARACTER_BYTES_MAX: Final = 4


@dataclass(frozen=True, slots=True)
class Window:
    """Bytes `start` to `end` of an artifact."""

    artifact: Artifact
    start: int
    data: bytes

    @property
    def end(self) -> int:
        """One past the last byte."""
        return self.start + len(self.data)


@dataclass(frozen=True, slots=True)
class TextWindow:
    """Characters `start` to `end` of a text artifact."""

    artifact: Artifact
    start: int
    text: str

    @property
    def end(self) -> int:
        """One past the last character."""
        return self.start + len(self.text)


@dataclass(frozen=True, slots=True)
class LineWindow:
    """Lines from `first` (counted from 0) of a text artifact; `lines` have no line feed.

    `start` and `end` are the bytes they span. `cut` says that the byte limit came before the asked
    lines did: the last line may be a beginning only, and what follows starts at byte `end`.
    """

    artifact: Artifact
    first: int
    lines: tuple[str, ...]
    start: int
    end: int
    cut: bool


class Windows:
    """Reads artifacts. `store` is always a handle scoped to `scope`."""

    def __init__(self, kit: Kit, blobs: Blobs) -> None:
        self._kit = kit
        self._blobs = blobs

    async def evidence(self, store: Store, scope: Scope, id_: str) -> Artifact:
        """The record of a ready, unexpired artifact. Raises ArtifactMissing, ArtifactNotReady."""
        decided = evidence(await store.get(ARTIFACTS.key(scope, id_)), self._kit.clock.now())
        if isinstance(decided, Refused):
            if decided.found == "missing":
                raise ArtifactMissing(artifact=id_)
            raise ArtifactNotReady(artifact=id_, state=decided.found)
        return decided

    async def read_bytes(
        self, store: Store, scope: Scope, id_: str, start: int, count: int
    ) -> Window:
        """Bytes from `start`, at most `count` and at most to the end.

        Raises:
            WindowRefused: outside the artifact, or more than `WINDOW_BYTES_MAX`.
            ArtifactMissing: no such artifact, or no such bytes.
            ArtifactNotReady: not ready, or expired.
            ArtifactCorrupt: a chunk is not what was stored; the artifact is failed now.
        """
        artifact = await self.evidence(store, scope, id_)
        _inside(artifact, start, count, WINDOW_BYTES_MAX, artifact.bytes)
        end = min(start + count, artifact.bytes)
        chunks = chunks_of(start, end - start)
        data = await self._chunks(store, scope, artifact, chunks)
        base = chunks.start * CHUNK_BYTES
        return Window(artifact, start, data[start - base : end - base])

    async def read_lines(
        self, store: Store, scope: Scope, id_: str, first: int, count: int
    ) -> LineWindow:
        """At most `count` lines from line `first` (counted from 0), at most `WINDOW_BYTES_MAX`.

        Raises:
            WindowRefused: not text, outside the artifact, or more than `WINDOW_LINES_MAX`.
            ArtifactMissing, ArtifactNotReady, ArtifactCorrupt: as `read_bytes`.
        """
        artifact = await self.evidence(store, scope, id_)
        _inside(artifact, first, count, WINDOW_LINES_MAX, artifact.lines)
        chunk = chunk_of_break(artifact, first)
        data = await self._chunks(store, scope, artifact, range(chunk, chunk + 1))
        base = chunk * CHUNK_BYTES
        start = base + _after_breaks(data, first - artifact.chunk_lines[chunk])
        end = min(start + WINDOW_BYTES_MAX, artifact.bytes)
        last = chunks_of(start, end - start)[-1]
        if last > chunk:
            data += await self._chunks(store, scope, artifact, range(chunk + 1, last + 1))
        return _lines(artifact, first, count, start, data[start - base : end - base])

    async def read_window(
        self, store: Store, scope: Scope, id_: str, start: int, count: int
    ) -> TextWindow:
        """Characters from `start`, at most `count` and at most to the end.

        Raises:
            WindowRefused: not text, outside the artifact, or more than `WINDOW_CHARS_MAX`.
            ArtifactMissing, ArtifactNotReady, ArtifactCorrupt: as `read_bytes`.
        """
        artifact = await self.evidence(store, scope, id_)
        _inside(artifact, start, count, WINDOW_CHARS_MAX, artifact.chars)
        end = min(start + count, artifact.chars or 0)
        first = chunk_of_char(artifact, start)
        stop = chunk_of_char(artifact, end - 1) + 1
        if stop < len(artifact.chunks) and end == artifact.chunk_chars[stop]:
            stop += 1  # the last character may run over into the next chunk
        data = await self._chunks(store, scope, artifact, range(first, stop))
        text = _decoded(data, start - artifact.chunk_chars[first], end - start)
        return TextWindow(artifact, start, text)

    async def whole(
        self, store: Store, scope: Scope, id_: str, limit: int = WHOLE_BYTES_MAX
    ) -> bytes:
        """All bytes of an artifact of at most `limit`, verified by its digest.

        Raises:
            WindowRefused: the artifact is larger.
            ArtifactMissing, ArtifactNotReady, ArtifactCorrupt: as `read_bytes`.
        """
        artifact = await self.evidence(store, scope, id_)
        if artifact.bytes > min(limit, WHOLE_BYTES_MAX):
            raise WindowRefused(artifact=id_, start=0, count=artifact.bytes, limit=limit)
        data = await self._chunks(store, scope, artifact, range(len(artifact.chunks)))
        if sha256(data) != artifact.sha256:
            raise await self._damaged(store, scope, artifact, sha256(data))
        return data

    async def _chunks(self, store: Store, scope: Scope, artifact: Artifact, chunks: range) -> bytes:
        """The bytes of some chunks in a row, each with its digest."""
        start = chunks.start * CHUNK_BYTES
        count = min(chunks.stop * CHUNK_BYTES, artifact.bytes) - start
        try:
            data = await self._blobs.read(blob_name(scope, artifact), start, count)
        except ArtifactMissing:
            raise await self._damaged(store, scope, artifact, "missing") from None
        for place, index in enumerate(chunks):
            found = sha256(data[place * CHUNK_BYTES : (place + 1) * CHUNK_BYTES])
            if found != artifact.chunks[index]:
                raise await self._damaged(store, scope, artifact, found)
        return data

    async def _damaged(
        self, store: Store, scope: Scope, artifact: Artifact, found: str
    ) -> ArtifactCorrupt | ArtifactMissing | ArtifactNotReady:
        """Mark it failed, unless its state changed meanwhile, which then is the reason."""
        key = ARTIFACTS.key(scope, artifact.id)
        reason = "missing bytes" if found == "missing" else "damaged bytes"

        async def body(reads: Reads) -> Commit[Artifact | None]:
            known = await reads.get(key)
            if known is None or known.state != artifact.state:
                return Commit(known)
            failed = artifacts.fail(known, reason, self._kit.clock.now())
            return Commit(failed, (Put(key, failed),))

        now = await self._kit.commit(body, store)
        if now is None or found == "missing":
            return ArtifactMissing(artifact=artifact.id)
        if isinstance(now.state, Ready) or now.state.name == "expired":
            return ArtifactNotReady(artifact=artifact.id, state=now.state.name)
        return ArtifactCorrupt(artifact=artifact.id, expected=artifact.sha256, found=found)


def _inside(artifact: Artifact, start: int, count: int, limit: int, total: int | None) -> None:
    """Refuse what is not a bounded window that begins inside the artifact (`total` units)."""
    if total is None or not 0 <= start < total or not 1 <= count <= limit:
        raise WindowRefused(
            artifact=artifact.id, start=start, count=count, limit=limit, total=total
        )


def _after_breaks(data: bytes, breaks: int) -> int:
    """The offset behind the `breaks`-th line feed of `data`."""
    offset = 0
    for _ in range(breaks):
        offset = data.index(b"\n", offset) + 1
    return offset


def _decoded(data: bytes, skipped: int, count: int) -> str:
    """`count` characters of UTF-8 bytes that may begin and end inside a character."""
    # What continues a character of the chunk before is not this window's.
    whole = data[:CHARACTER_BYTES_MAX].lstrip(CONTINUATION) + data[CHARACTER_BYTES_MAX:]
    text = codecs.getincrementaldecoder("utf-8")().decode(whole)
    return text[skipped : skipped + count]


def _lines(artifact: Artifact, first: int, count: int, start: int, data: bytes) -> LineWindow:
    """The first `count` lines of `data`, which begins at byte `start` of the artifact."""
    size = 0
    for _ in range(count):
        found = data.find(b"\n", size)
        if found < 0:
            size = len(data)
            break
        size = found + 1
    whole = data[:size].endswith(b"\n") or start + size == artifact.bytes
    text = codecs.getincrementaldecoder("utf-8")().decode(data[:size])
    lines = text.removesuffix("\n").split("\n")
    return LineWindow(
        artifact=artifact,
        first=first,
        lines=tuple(lines),
        start=start,
        end=start + len(text.encode()),
        cut=not whole or (len(lines) < count and start + size < artifact.bytes),
    )
