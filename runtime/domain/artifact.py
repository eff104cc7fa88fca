"""Artifacts: any large result, stored whole, read in bounded windows that verify.

Keeps INV-10: only ready, unexpired, digest-valid artifacts are evidence. Each artifact carries the
digest of every chunk and, for text, how many line breaks and characters come before each chunk, so
that a window is found and verified by reading the chunks it touches and nothing else.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from datetime import datetime, timedelta
from typing import Annotated, Final, Literal

from pydantic import Field

from runtime.domain.operation import Refused
from runtime.domain.values import Digest, Id, Record, Scope, Trust, UtcTime, identity

CHUNK_BYTES: Final = 64 * 1024
BYTES_MAX: Final = 256 * 1024 * 1024
"""Keeps a record's list of chunk digests (67 bytes each, 4,096 of them) well under 1 MiB."""
WINDOW_BYTES_MAX: Final = 64 * 1024
WINDOW_LINES_MAX: Final = 200
WINDOW_CHARS_MAX: Final = 64 * 1024
WHOLE_BYTES_MAX: Final = 32 * 1024 * 1024
"""The longest text that a source becomes: eight million characters of four bytes."""
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
    """Bytes are on their way; past `until` it has failed. Only its newest writer may fail it."""

    name: Literal["writing"] = "writing"
    until: UtcTime
    writer: str = ""


class Ready(Record):
    """Whole, with known digests."""

    name: Literal["ready"] = "ready"
    at: UtcTime


class ArtifactFailed(Record):
    """The bytes never became whole, or were found damaged; `deleted` once nothing is left."""

    name: Literal["failed"] = "failed"
    at: UtcTime
    reason: str
    deleted: bool = False


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
    "failed": ("writing",),  # the same work stores it again, under a new generation
    "expired": (),
}


class Measures(Record):
    """What was found while the bytes went by. `chars` is None unless they are UTF-8 text."""

    bytes: int
    sha256: Digest
    chunks: tuple[Digest, ...]
    chars: int | None = None
    lines: int | None = None
    chunk_chars: tuple[int, ...] = ()
    chunk_lines: tuple[int, ...] = ()
    head: str = ""
    tail: str = ""


class Artifact(Record):
    """Metadata of stored bytes. `id` is opaque; `head` and `tail` are the preview.

    `generation` counts how often a failed artifact was stored anew: each has its own bytes.
    """

    id: Id
    job: Id | None
    content_type: Annotated[str, Field(max_length=200)]
    file_name: Annotated[str, Field(max_length=300)] = ""
    trust: Trust
    producer: Annotated[str, Field(max_length=200)]
    retention: Retention
    generation: int = 0
    bytes: int = 0
    sha256: Digest | None = None
    chunks: tuple[Digest, ...] = ()
    chars: int | None = None
    """For UTF-8 text: its characters (code points)."""
    lines: int | None = None
    """For text: its lines; a line feed ends one, and the last may end without."""
    chunk_chars: tuple[int, ...] = ()
    """For text: how many characters begin before each chunk."""
    chunk_lines: tuple[int, ...] = ()
    """For text: how many line breaks come before each chunk."""
    head: Annotated[str, Field(max_length=PREVIEW_CHARS)] = ""
    tail: Annotated[str, Field(max_length=PREVIEW_CHARS)] = ""
    created_at: UtcTime
    expires_at: UtcTime
    state: ArtifactState


def text_like(content_type: str) -> bool:
    """Whether this type is text that may be UTF-8 (the bytes decide in the end)."""
    kind, *parameters = [part.strip().lower() for part in content_type.split(";")]
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name == "charset" and value.strip("\"'") not in {"utf-8", "utf8", "us-ascii"}:
            return False
    if kind.startswith("text/") or kind.endswith(("+json", "+xml")):
        return True
    return kind in {"application/json", "application/xml", "application/x-subrip"}


def blob_name(scope: Scope, artifact: Artifact) -> str:
    """The opaque name of its bytes: it tells nothing, and no two tenants share one."""
    return identity(scope.path, artifact.id, str(artifact.generation))


def same_declaration(known: Artifact, offered: Artifact) -> bool:
    """Whether both declare the same thing, so that equal bytes make the same artifact."""
    return (known.job, known.content_type, known.trust, known.retention) == (
        offered.job,
        offered.content_type,
        offered.trust,
        offered.retention,
    )


def begin(known: Artifact | None, offered: Artifact) -> Artifact | Refused:
    """The artifact after a writer announced its bytes; a ready one stays as it is.

    Args:
        known: what is stored under this ID.
        offered: the new artifact, in `writing`.
    """
    if known is None:
        return offered
    # Nothing rests on a failed one, and a link's server may call the same source otherwise.
    failed = isinstance(known.state, ArtifactFailed)
    kept = known.model_copy(update={"content_type": offered.content_type}) if failed else known
    if not same_declaration(kept, offered):
        return Refused("an artifact keeps its declaration", "declared differently")
    match known.state:
        case Ready():
            return known
        case Writing():
            return known.model_copy(update={"state": offered.state})
        case ArtifactFailed():
            return offered.model_copy(update={"generation": known.generation + 1})
        case ArtifactExpired():
            return Refused("an expired artifact does not come back", "expired")


def complete(known: Artifact, measures: Measures, now: datetime) -> Artifact | Refused:
    """Writing → ready with what was measured; a ready one with equal bytes stays."""
    if isinstance(known.state, Ready):
        if known.sha256 == measures.sha256:
            return known
        return Refused("an artifact's bytes never change", "other bytes")
    if not isinstance(known.state, Writing):
        return Refused("only an artifact being written becomes ready", known.state.name)
    found = {name: getattr(measures, name) for name in Measures.model_fields}
    return known.model_copy(update={**found, "state": Ready(at=now)})


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


def give_up(artifact: Artifact, now: datetime) -> Artifact:
    """Writing past its time → failed: at `until` exactly and later."""
    state = artifact.state
    if not isinstance(state, Writing) or now < state.until:
        return artifact
    return fail(artifact, "not written in time", now)


def expire(artifact: Artifact, now: datetime) -> Artifact:
    """Ready past its retention → expired, bytes still to be deleted."""
    if now < artifact.expires_at:
        return artifact
    return _leave(artifact, ArtifactExpired(at=now, deleted=False))


def unforgotten(artifact: Artifact) -> bool:
    """Whether it failed and its bytes may still be there."""
    return isinstance(artifact.state, ArtifactFailed) and not artifact.state.deleted


def forget(artifact: Artifact) -> Artifact:
    """Its bytes are gone: an expired or failed artifact says so."""
    state = artifact.state
    if not isinstance(state, ArtifactExpired | ArtifactFailed) or state.deleted:
        return artifact
    gone = state.model_copy(update={"deleted": True})
    return artifact.model_copy(update={"state": gone, "head": "", "tail": ""})


# --- windows ----------------------------------------


def chunks_of(start: int, count: int) -> range:
    """Which chunks a byte window touches."""
    if count <= 0:
        return range(0)
    return range(start // CHUNK_BYTES, (start + count - 1) // CHUNK_BYTES + 1)


def chunk_of_char(artifact: Artifact, char: int) -> int:
    """The chunk in which a character begins."""
    return bisect_right(artifact.chunk_chars, char) - 1


def chunk_of_break(artifact: Artifact, line: int) -> int:
    """The chunk holding the line break before a line (counted from 0); the first for line 0."""
    return max(bisect_left(artifact.chunk_lines, line) - 1, 0)


def _leave(artifact: Artifact, state: ArtifactState) -> Artifact:
    if state.name not in TRANSITIONS[artifact.state.name]:
        return artifact
    return artifact.model_copy(update={"state": state})
