"""Artifacts: any large result, stored whole, read in bounded windows that verify.

Keeps INV-10: only ready, unexpired, digest-valid artifacts are evidence. Each artifact carries the
digest of every chunk and the line number at which each chunk starts, so that a window is verified by
reading the chunks it touches and nothing else.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated, Final, Literal

from pydantic import Field

from runtime.domain.operation import Refused
from runtime.domain.values import Digest, Id, Record, Trust, UtcTime

CHUNK_BYTES: Final = 64 * 1024
BYTES_MAX: Final = 256 * 1024 * 1024
"""Keeps a record's list of chunk digests (66 bytes each) well under 1 MiB."""
WINDOW_BYTES_MAX: Final = 64 * 1024
WINDOW_LINES_MAX: Final = 200
PREVIEW_CHARS: Final = 1_024
WRITING_WITHIN: Final = timedelta(minutes=10)

Retention = Literal["source", "operational", "audit", "ephemeral"]

RETENTION: Final[dict[Retention, timedelta]] = {
    "ephemeral": timedelta(days=7),
    "operational": timedelta(days=90),
    "source": timedelta(days=365),
    "audit": timedelta(days=3650),
}


class Writing(Record):
    """Bytes are on their way; past `until` it has failed."""

    name: Literal["writing"] = "writing"
    until: UtcTime


class Ready(Record):
    """Whole, with known digests."""

    name: Literal["ready"] = "ready"
    at: UtcTime


class ArtifactFailed(Record):
    """The bytes never became whole, or were found damaged."""

    name: Literal["failed"] = "failed"
    at: UtcTime
    reason: str


class ArtifactExpired(Record):
    """Retention ended; the bytes are deleted (`deleted` once that is done)."""

    name: Literal["expired"] = "expired"
    at: UtcTime
    deleted: bool


ArtifactState = Annotated[
    Writing | Ready | ArtifactFailed | ArtifactExpired, Field(discriminator="name")
]

TRANSITIONS: Final[dict[str, tuple[str, ...]]] = {
    "writing": ("ready", "failed"),
    "ready": ("expired", "failed"),
    "failed": (),
    "expired": (),
}


class Artifact(Record):
    """Metadata of stored bytes. `id` is opaque; `head` and `tail` are the preview."""

    id: Id
    job: Id | None
    content_type: Annotated[str, Field(max_length=200)]
    file_name: Annotated[str, Field(max_length=300)] = ""
    trust: Trust
    producer: Annotated[str, Field(max_length=200)]
    retention: Retention
    bytes: int = 0
    sha256: Digest | None = None
    chunks: tuple[Digest, ...] = ()
    chunk_lines: tuple[int, ...] = ()
    """For text: how many line breaks come before each chunk."""
    head: Annotated[str, Field(max_length=PREVIEW_CHARS)] = ""
    tail: Annotated[str, Field(max_length=PREVIEW_CHARS)] = ""
    created_at: UtcTime
    expires_at: UtcTime
    state: ArtifactState


def evidence(artifact: Artifact | None, now: datetime) -> Artifact | Refused:
    """The artifact, if it may be shown as evidence now (its bytes are checked on reading)."""
    if artifact is None:
        return Refused("only existing artifacts are evidence", "missing")
    if not isinstance(artifact.state, Ready):
        return Refused("only ready artifacts are evidence", artifact.state.name)
    if now >= artifact.expires_at:
        return Refused("only unexpired artifacts are evidence", "expired")
    return artifact


def fail(artifact: Artifact, reason: str, now: datetime) -> Artifact:
    """Writing or ready → failed."""
    return _leave(artifact, ArtifactFailed(at=now, reason=reason))


def expire(artifact: Artifact, now: datetime) -> Artifact:
    """Ready past its retention → expired, bytes still to be deleted."""
    if now < artifact.expires_at:
        return artifact
    return _leave(artifact, ArtifactExpired(at=now, deleted=False))


def chunks_of(start: int, count: int) -> range:
    """Which chunks a byte window touches."""
    if count <= 0:
        return range(0)
    return range(start // CHUNK_BYTES, (start + count - 1) // CHUNK_BYTES + 1)


def _leave(artifact: Artifact, state: ArtifactState) -> Artifact:
    if state.name not in TRANSITIONS[artifact.state.name]:
        return artifact
    return artifact.model_copy(update={"state": state})
