"""Reading a source: stored whole before it is looked into, refused in words, repeated safely."""

from __future__ import annotations

from pathlib import Path

import pytest

from runtime.domain.job import Stopped
from runtime.domain.operation import LEASE
from runtime.domain.values import sha256
from runtime.engine.scanner import Scanner
from runtime.errors import ArtifactCorrupt, BadInput, StoreUnavailable
from runtime.stores.collections import ARTIFACTS
from tests.effects_made import Crash
from tests.runtime.engine.carrying import Watched
from tests.runtime.engine.playing import TEXT, Desk, Play, play
from tests.world import ACME, ManualClock


async def again(one: Play) -> None:
    """The worker is gone; its claim runs out and is released."""
    one.clock.advance(LEASE)
    await Scanner(one.kit).once()


async def test_the_bytes_and_the_text_are_stored_before_the_job_goes_on(tmp_path: Path) -> None:
    one = await play(tmp_path)
    await one.begin()
    await one.carry("job-1:read")
    job = await one.job()
    assert (job.stage, job.operation) == ("analyse", "job-1:analyse")
    assert job.source.text_digest == sha256(TEXT.encode())
    assert job.source.text_chars == len(TEXT)
    assert job.steps[-1].note == f"{len(TEXT)} characters; one note"
    for name in ("job-1:raw", "job-1:text"):
        assert await one.spill.whole(one.kit.store, ACME, name) == TEXT.encode()
    assert (await one.operation("job-1:analyse")).state.name == "pending"


@pytest.mark.parametrize("where", ["bring", "convert"])
async def test_a_source_that_cannot_be_used_stops_the_job_in_words(
    tmp_path: Path, where: str
) -> None:
    refusal = BadInput(source="link", cause="an address inside a network is not fetched")
    desk = Desk([refusal]) if where == "bring" else Desk(unreadable=refusal)
    one = await play(tmp_path, desk=desk)
    await one.begin()
    await one.settle()
    state = (await one.job()).state
    assert isinstance(state, Stopped)
    assert (state.how, state.reason) == ("failed", refusal.sentence)
    assert (await one.operation("job-1:read")).state.name == "failed"
    assert one.desk.brought == 1


@pytest.mark.parametrize("content", [b"", b"\xff\xfe\x00"], ids=["empty", "not text"])
async def test_bytes_that_cannot_be_stored_or_read_end_in_words(
    tmp_path: Path, content: bytes
) -> None:
    desk = Desk([content])
    if content:
        desk.unreadable = BadInput(source="file", cause="not UTF-8")
    one = await play(tmp_path, desk=desk)
    await one.begin()
    await one.settle()
    assert isinstance((await one.job()).state, Stopped)


async def test_a_fault_of_ours_is_tried_again(tmp_path: Path) -> None:
    fault = StoreUnavailable(cause="the other side did not answer")
    one = await play(tmp_path, desk=Desk([fault, TEXT.encode()]))
    await one.begin()
    await one.settle()
    assert (await one.job()).stage == "read"
    await one.to_the_end(decide=False)
    assert (await one.job()).stage == "decide_strategy"
    assert one.desk.brought == 2


async def test_a_crash_between_bytes_and_text_keeps_the_first_bytes(tmp_path: Path) -> None:
    """The link says something else at the second attempt: the job works on what came first."""
    desk = Desk([TEXT.encode(), b"Something else."], unreadable=Crash())  # type: ignore[arg-type]  # dies there
    one = await play(tmp_path, desk=desk)
    await one.begin()
    with pytest.raises(Crash):
        await one.carry("job-1:read")
    desk.unreadable = None
    await again(one)
    await one.carry("job-1:read")
    assert desk.brought == 1
    assert (await one.job()).source.text_digest == sha256(TEXT.encode())


async def test_a_crash_at_any_commit_of_reading_converges(tmp_path: Path) -> None:
    """Also if the link says something else each time it is asked."""
    number, commits = 0, 99
    while number < commits:
        number += 1
        folder = tmp_path / str(number)
        clock, desk = ManualClock(), Desk([TEXT.encode(), b"Something else."])
        first = await play(folder, clock=clock, desk=desk, wrap=Watched)
        await first.begin()
        watched = first.kit.store
        assert isinstance(watched, Watched)
        watched.count, watched.crash_at = 0, (number, "before")
        try:
            await first.carry("job-1:read")
        except Crash:
            await first.kit.store.close()
        else:
            commits = watched.count
        second = await play(folder, clock=clock, seed=1, desk=desk)
        second.handlers = {"stage.read": second.handlers["stage.read"]}
        for _ in range(3):
            await again(second)
            await second.settle()
        job = await second.job()
        assert job.stage == "analyse", f"{number}: {job.state}"
        text = await second.spill.whole(second.kit.store, ACME, "job-1:text")
        assert text in {TEXT.encode(), b"Something else."}
        raw = await second.spill.whole(second.kit.store, ACME, "job-1:raw")
        assert raw == text
        await second.kit.store.close()
    assert 4 < commits < 99


async def test_a_server_that_names_another_type_the_next_time_changes_nothing(
    tmp_path: Path,
) -> None:
    """The first attempt died while it stored; the second is told the same bytes are HTML."""
    desk = Desk(types=["text/plain", "text/html; charset=utf-8"])
    clock = ManualClock()
    one = await play(tmp_path, clock=clock, desk=desk, wrap=Watched)
    await one.begin()
    watched = one.kit.store
    assert isinstance(watched, Watched)
    watched.count, watched.crash_at = 0, (3, "before")
    with pytest.raises(Crash):
        await one.carry("job-1:read")
    await one.kit.store.close()
    two = await play(tmp_path, clock=clock, seed=1, desk=desk)
    await again(two)
    stored = await two.kit.store.get(ARTIFACTS.key(ACME, "job-1:raw"))
    assert stored is not None
    assert stored.state.name == "writing"
    await two.carry("job-1:read")
    assert (await two.job()).stage == "analyse"


async def test_bytes_damaged_before_they_were_read_are_not_read(tmp_path: Path) -> None:
    desk = Desk(unreadable=Crash())  # type: ignore[arg-type]  # the process dies there
    one = await play(tmp_path, desk=desk)
    await one.begin()
    with pytest.raises(Crash):
        await one.carry("job-1:read")
    desk.unreadable = None
    for path in (tmp_path / "blobs").rglob("*"):
        if path.is_file() and path.read_bytes() == TEXT.encode():
            path.chmod(0o600)
            path.write_bytes(b"X" * len(TEXT.encode()))
    await again(one)
    with pytest.raises(ArtifactCorrupt):
        await one.carry("job-1:read")
    stored = await one.kit.store.get(ARTIFACTS.key(ACME, "job-1:raw"))
    assert stored is not None
    assert stored.state.name == "failed"
    await again(one)
    await one.carry("job-1:read")
    assert (await one.job()).stage == "analyse"
