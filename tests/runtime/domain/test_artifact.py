"""Artifacts: which states follow which, what is evidence, and where a window lies (INV-10)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.domain import artifact as artifacts
from runtime.domain.artifact import (
    BYTES_MAX,
    CHUNK_BYTES,
    TRANSITIONS,
    Artifact,
    ArtifactExpired,
    ArtifactFailed,
    ArtifactState,
    Ready,
    Writing,
)
from runtime.domain.measure import Measuring
from runtime.domain.operation import Refused
from runtime.domain.values import DIRECTORY, Tenant, Trust
from runtime.ports import Key
from runtime.stores.codec import Codec
from runtime.stores.collections import ARTIFACTS

NOW = datetime(2027, 1, 4, 9, 0, tzinfo=UTC)
TICK = timedelta(microseconds=1)
TENANT = Tenant(workspace="acme", brand="main")


def artifact(state: ArtifactState, **changes: object) -> Artifact:
    fields = {
        "id": "a1",
        "job": "job-1",
        "content_type": "text/plain",
        "trust": Trust.EXTERNAL,
        "producer": "test",
        "retention": "source",
        "created_at": NOW,
        "expires_at": NOW + timedelta(days=1),
        "state": state,
        **changes,
    }
    return Artifact.model_validate(fields)


STATES: dict[str, ArtifactState] = {
    "writing": Writing(until=NOW + timedelta(minutes=1), writer="w1"),
    "ready": Ready(at=NOW),
    "failed": ArtifactFailed(at=NOW, reason="OSError"),
    "expired": ArtifactExpired(at=NOW, deleted=False),
}


def measured(data: bytes, *, text: bool = True) -> artifacts.Measures:
    measuring = Measuring("text/plain", text=text)
    measuring.feed(data)
    return measuring.done()


@pytest.mark.parametrize("name", STATES)
def test_only_the_table_decides_what_follows_a_state(name: str) -> None:
    known = artifact(STATES[name])
    late = known.expires_at
    for after in (artifacts.fail(known, "x", NOW), artifacts.expire(known, late)):
        assert after == known or after.state.name in TRANSITIONS[name]
    failed = artifacts.fail(known, "x", NOW).state.name
    assert (failed == "failed") is (name in {"writing", "ready", "failed"})


@pytest.mark.parametrize(
    ("name", "expected"),
    [("writing", "writing"), ("ready", None), ("failed", "failed"), ("expired", "expired")],
)
def test_only_a_ready_artifact_is_evidence(name: str, expected: str | None) -> None:
    found = artifacts.evidence(artifact(STATES[name]), NOW)
    assert (found.found if isinstance(found, Refused) else None) == expected


def test_an_absent_artifact_is_no_evidence() -> None:
    assert isinstance(artifacts.evidence(None, NOW), Refused)


@pytest.mark.parametrize(("offset", "shown"), [(-TICK, True), (0 * TICK, False), (TICK, False)])
def test_evidence_ends_at_its_expiry_exactly(offset: timedelta, *, shown: bool) -> None:
    known = artifact(Ready(at=NOW))
    now = known.expires_at + offset
    assert isinstance(artifacts.evidence(known, now), Artifact) is shown
    assert (artifacts.expire(known, now) == known) is shown


@pytest.mark.parametrize(("offset", "given_up"), [(-TICK, False), (0 * TICK, True), (TICK, True)])
def test_writing_is_given_up_at_its_time_exactly(offset: timedelta, *, given_up: bool) -> None:
    state = STATES["writing"]
    assert isinstance(state, Writing)
    after = artifacts.give_up(artifact(state), state.until + offset)
    assert (after.state.name == "failed") is given_up


def test_a_second_writer_takes_over_an_unfinished_writing() -> None:
    offered = artifact(Writing(until=NOW + timedelta(hours=1), writer="w2"))
    begun = artifacts.begin(artifact(STATES["writing"]), offered)
    assert begun == offered


def test_a_failed_artifact_is_stored_anew_under_other_bytes() -> None:
    known = artifact(STATES["failed"])
    begun = artifacts.begin(known, artifact(STATES["writing"]))
    assert isinstance(begun, Artifact)
    assert begun.generation == 1
    assert artifacts.blob_name(TENANT, begun) != artifacts.blob_name(TENANT, known)


def test_an_expired_artifact_does_not_come_back() -> None:
    begun = artifacts.begin(artifact(STATES["expired"]), artifact(STATES["writing"]))
    assert isinstance(begun, Refused)


@pytest.mark.parametrize(
    "other",
    [
        {"job": "job-2"},
        {"content_type": "text/html"},
        {"trust": Trust.SYSTEM},
        {"retention": "audit"},
    ],
)
@pytest.mark.parametrize("name", ["writing", "ready", "failed"])
def test_an_artifact_keeps_its_declaration(name: str, other: dict[str, object]) -> None:
    if name == "failed" and "content_type" in other:
        return
    offered = artifact(STATES["writing"], **other)
    assert isinstance(artifacts.begin(artifact(STATES[name]), offered), Refused)


def test_a_failed_artifact_may_come_again_under_another_type() -> None:
    """A link's server may call the same source otherwise the next time; nothing rests on it."""
    begun = artifacts.begin(
        artifact(STATES["failed"]), artifact(STATES["writing"], content_type="text/html")
    )
    assert isinstance(begun, Artifact)
    assert (begun.content_type, begun.generation) == ("text/html", 1)


def test_complete_keeps_what_was_measured() -> None:
    measures = measured(b"one\ntwo")
    ready = artifacts.complete(artifact(STATES["writing"]), measures, NOW)
    assert isinstance(ready, Artifact)
    assert (ready.bytes, ready.chars, ready.lines, ready.head) == (7, 7, 2, "one\ntwo")
    assert artifacts.complete(ready, measures, NOW + TICK) == ready
    assert isinstance(artifacts.complete(ready, measured(b"other"), NOW), Refused)


@pytest.mark.parametrize("name", ["failed", "expired"])
def test_nothing_becomes_ready_but_what_is_being_written(name: str) -> None:
    assert isinstance(artifacts.complete(artifact(STATES[name]), measured(b"x"), NOW), Refused)


def test_forgetting_takes_the_preview_with_the_bytes() -> None:
    known = artifact(STATES["expired"], head="secret", tail="end")
    gone = artifacts.forget(known)
    assert (gone.head, gone.tail) == ("", "")
    assert artifacts.forget(gone) == gone
    ready = artifact(STATES["ready"], head="kept")
    assert artifacts.forget(ready) == ready


def test_two_tenants_never_share_bytes() -> None:
    known = artifact(STATES["ready"])
    other = Tenant(workspace="acme", brand="other")
    names = {artifacts.blob_name(scope, known) for scope in (TENANT, other, DIRECTORY)}
    assert len(names) == 3


@pytest.mark.parametrize(
    ("content_type", "expected"),
    [
        ("text/plain", True),
        ("Text/Markdown; charset=UTF-8", True),
        ("text/plain; charset=us-ascii", True),
        ('text/plain; charset="utf-8"', True),
        ("text/plain; charset=latin-1", False),
        ("application/json", True),
        ("application/ld+json", True),
        ("image/svg+xml", True),
        ("application/pdf", False),
        ("application/octet-stream", False),
        ("", False),
    ],
)
def test_text_is_told_by_its_type(content_type: str, *, expected: bool) -> None:
    assert artifacts.text_like(content_type) is expected


@pytest.mark.parametrize(
    ("start", "count", "expected"),
    [
        (0, 0, range(0)),
        (0, 1, range(1)),
        (0, CHUNK_BYTES - 1, range(1)),
        (0, CHUNK_BYTES, range(1)),
        (0, CHUNK_BYTES + 1, range(2)),
        (CHUNK_BYTES - 1, 1, range(1)),
        (CHUNK_BYTES - 1, 2, range(2)),
        (CHUNK_BYTES, 1, range(1, 2)),
        (1, CHUNK_BYTES, range(2)),
    ],
)
def test_a_window_touches_only_its_chunks(start: int, count: int, expected: range) -> None:
    assert artifacts.chunks_of(start, count) == expected


def test_the_largest_artifact_fits_a_record() -> None:
    chunks = BYTES_MAX // CHUNK_BYTES
    largest = artifact(
        Ready(at=NOW),
        bytes=BYTES_MAX,
        chars=BYTES_MAX,
        lines=BYTES_MAX,
        sha256="f" * 64,
        chunks=("f" * 64,) * chunks,
        chunk_chars=(BYTES_MAX,) * chunks,
        chunk_lines=(BYTES_MAX,) * chunks,
        head="\x00" * 1_024,
        tail="\x00" * 1_024,
    )
    key = Key(ARTIFACTS, TENANT, "a1")
    assert len(Codec(ARTIFACTS).encode(key, largest)) < 600_000


@given(st.lists(st.integers(0, 3), min_size=1, max_size=30), st.data())
def test_each_line_break_is_in_the_chunk_that_is_named_for_it(
    breaks: list[int], data: st.DataObject
) -> None:
    before = [sum(breaks[:index]) for index in range(len(breaks))]
    known = artifact(Ready(at=NOW), chunk_lines=tuple(before))
    if not sum(breaks):
        return
    line = data.draw(st.integers(1, sum(breaks)))
    chunk = artifacts.chunk_of_break(known, line)
    assert before[chunk] < line <= before[chunk] + breaks[chunk]
    assert artifacts.chunk_of_break(known, 0) == 0
