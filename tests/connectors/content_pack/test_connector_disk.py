"""What a disk says, and when: each refusal and fault is classified truthfully. INV-6."""

from __future__ import annotations

import errno
import os
import resource
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from connectors.content_pack.connector import DISK_FULL_RETRY, ContentPack
from connectors.content_pack.names import pack_key
from runtime.domain.effect import (
    AnswerAbsent,
    AnswerApplied,
    AnswerNotEntered,
    AnswerUnknown,
)
from tests.connectors.content_pack.children import at_call, fork
from tests.connectors.content_pack.packing import applied, files, pack_in
from tests.effects_made import command
from tests.world import ACME, START, ManualClock


@pytest.fixture
def pack(tmp_path: Path) -> ContentPack:
    return pack_in(tmp_path)


async def test_a_folder_that_is_a_file_is_not_entered_and_a_person_must_help(
    tmp_path: Path,
) -> None:
    (tmp_path / "packs").write_text("not a folder")
    answer = await ContentPack(tmp_path / "packs", ManualClock()).execute(command())
    assert isinstance(answer, AnswerNotEntered)
    assert answer.credential_gap
    assert "not a folder" in answer.reason
    assert str(tmp_path) not in answer.reason


async def test_a_tenant_folder_that_is_a_link_is_not_followed(
    pack: ContentPack, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (tmp_path / "packs").mkdir()
    (tmp_path / "packs" / "acme").symlink_to(elsewhere)
    answer = await pack.execute(command())
    assert isinstance(answer, AnswerNotEntered)
    assert answer.credential_gap
    assert files(elsewhere) == []


async def test_a_name_that_is_a_link_is_neither_followed_nor_believed(
    pack: ContentPack, tmp_path: Path
) -> None:
    first = await applied(pack)
    path = pack.path(ACME, first.reference)
    path.rename(tmp_path / "moved")
    path.symlink_to(tmp_path / "moved")
    assert isinstance(await pack.execute(command()), AnswerNotEntered)
    assert isinstance(await pack.reconcile(command()), AnswerUnknown)
    assert not (await pack.verify(command(), first.reference)).ok


def in_child(packs: Path, limit: Callable[[], None]) -> AnswerNotEntered:
    """Execute in a process that the system limits."""

    def work(pipe: int) -> str:
        del pipe
        limit()
        return ContentPack(packs, ManualClock())._execute(command()).model_dump_json()

    return AnswerNotEntered.model_validate_json(fork(work).answer())


def test_a_disk_that_takes_no_more_bytes_is_not_entered_and_nothing_is_left(
    tmp_path: Path,
) -> None:
    """The system itself refuses the write half-way."""
    packs = tmp_path / "packs"

    def small_files() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, 1_000))

    answer = in_child(packs, small_files)
    assert "no file of that size" in answer.reason
    assert files(packs) == []


def test_a_folder_without_permission_is_not_entered(tmp_path: Path) -> None:
    packs = tmp_path / "packs"
    packs.mkdir(mode=0o700)
    if os.geteuid() != 0:
        packs.chmod(0o500)

    def stranger() -> None:
        if os.geteuid() == 0:  # a superuser is refused nothing
            os.setgroups([])
            os.setgid(65_534)
            os.setuid(65_534)

    answer = in_child(packs, stranger)
    assert answer.credential_gap
    assert "permission denied" in answer.reason
    assert files(packs) == []


@pytest.mark.parametrize(
    ("number", "later", "gap"),
    [
        (errno.ENOSPC, True, False),
        (errno.EDQUOT, True, False),
        (errno.EROFS, False, True),
        (errno.EIO, False, False),
        (errno.EMFILE, False, False),
    ],
)
def test_a_full_disk_is_tried_later_and_a_forbidden_one_asks_a_person(
    pack: ContentPack, number: int, *, later: bool, gap: bool
) -> None:
    answer = pack._not_entered(OSError(number, "", "/secret"))
    assert answer.retry_at == (START + DISK_FULL_RETRY if later else None)
    assert answer.credential_gap is gap
    assert "/secret" not in answer.reason


async def test_the_connection_is_validated_by_writing(pack: ContentPack, tmp_path: Path) -> None:
    assert (await pack.validate_connection()).ok
    assert files(tmp_path / "packs") == []
    (tmp_path / "file").write_text("x")
    found = await ContentPack(tmp_path / "file", ManualClock()).validate_connection()
    assert not found.ok
    assert "not a folder" in found.evidence


def with_trouble(packs: Path, trouble: Callable[[Path], None]) -> str:
    """Execute in a process in which something happens just before the pack appears."""

    def work(pipe: int) -> str:
        del pipe
        at_call("os.link", lambda: trouble(packs))
        return ContentPack(packs, ManualClock())._execute(command()).model_dump_json()

    return fork(work).answer()


def failing(number: int) -> Callable[[Path], None]:
    """The link itself fails with this error."""

    def fail(packs: Path) -> None:
        del packs
        raise OSError(number, "")

    return fail


async def test_a_link_that_fails_undecidedly_is_unknown_until_a_look_decides(
    pack: ContentPack, tmp_path: Path
) -> None:
    told = with_trouble(tmp_path / "packs", failing(errno.EIO))
    assert "the disk reports an error" in AnswerUnknown.model_validate_json(told).reason
    assert isinstance(await pack.reconcile(command()), AnswerAbsent)


def test_a_link_that_is_refused_is_not_entered(tmp_path: Path) -> None:
    told = with_trouble(tmp_path / "packs", failing(errno.EPERM))
    assert AnswerNotEntered.model_validate_json(told).credential_gap
    assert files(tmp_path / "packs") == []


async def test_a_file_that_appears_at_the_last_moment_is_not_overwritten(
    pack: ContentPack, tmp_path: Path
) -> None:
    """By somebody who knows no lock: other bytes are a refusal, the same ones are the pack."""
    made = await applied(ContentPack(tmp_path / "model", ManualClock()))
    same = (tmp_path / "model" / made.reference).read_bytes()
    for number, (content, state) in enumerate(((b"other", "rejected"), (same, "applied"))):
        packs = tmp_path / f"packs-{number}"

        def appear(packs: Path, content: bytes = content) -> None:
            (packs / made.reference).write_bytes(content)

        assert f'"name":"{state}"' in with_trouble(packs, appear)
        assert (packs / made.reference).read_bytes() == content


async def test_a_pack_that_the_disk_did_not_confirm_is_unknown_until_a_look_finds_it(
    pack: ContentPack, tmp_path: Path
) -> None:
    def unreadable(packs: Path) -> None:
        del packs
        at_call("open", lambda: failing(errno.EIO)(tmp_path))

    told = with_trouble(tmp_path / "packs", unreadable)
    assert "did not confirm" in AnswerUnknown.model_validate_json(told).reason
    assert isinstance(await pack.reconcile(command()), AnswerApplied)


async def test_what_a_dead_process_left_is_never_written_into(
    pack: ContentPack, tmp_path: Path
) -> None:
    """It died between the link and the end: its unfinished file is the pack that was moved away."""
    answer = await applied(pack)
    there = tmp_path / "packs" / answer.reference
    os.link(there, there.parent / ".work" / f"{pack_key(command().id)}.part")
    moved = there.rename(tmp_path / "moved.zip")
    assert (await applied(pack)).digest == answer.digest
    assert not there.samefile(moved)
    assert moved.stat().st_nlink == 1
