"""Packs on a real disk: created once, classified truthfully, provable, tampering found."""

from __future__ import annotations

import errno
import os
import resource
import signal
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from connectors.content_pack.connector import DISK_FULL_RETRY, ContentPack
from connectors.content_pack.errors import PackReferenceRefused
from connectors.content_pack.place import WORKSHOP, Place
from runtime.domain.effect import (
    AnswerAbsent,
    AnswerApplied,
    AnswerNotEntered,
    AnswerRejected,
    AnswerUnknown,
    Command,
)
from runtime.domain.values import sha256
from tests.connectors.content_pack.children import fork, sender
from tests.effects_made import command
from tests.world import ACME, OTHER, START, ManualClock


@pytest.fixture
def pack(tmp_path: Path) -> ContentPack:
    return ContentPack(tmp_path / "packs", ManualClock())


async def applied(pack: ContentPack, sent: Command | None = None) -> AnswerApplied:
    answer = await pack.execute(sent or command())
    assert isinstance(answer, AnswerApplied), answer
    return answer


def files(root: Path) -> list[str]:
    """Every file below a folder."""
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())


async def test_a_pack_is_one_private_file_named_by_title_and_command(
    pack: ContentPack, tmp_path: Path
) -> None:
    answer = await applied(pack)
    assert answer.reference.startswith("acme/main/Launch-Бесплатно-")
    path = pack.path(ACME, answer.reference)
    assert answer.digest == sha256(path.read_bytes())
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.stat().st_nlink == 1
    assert files(tmp_path / "packs") == [answer.reference]


async def test_the_same_command_again_finds_its_own_pack(pack: ContentPack) -> None:
    first = await applied(pack)
    inode = pack.path(ACME, first.reference).stat().st_ino
    assert await applied(pack) == first
    assert pack.path(ACME, first.reference).stat().st_ino == inode


async def test_another_file_of_that_name_is_never_overwritten(pack: ContentPack) -> None:
    first = await applied(pack)
    path = pack.path(ACME, first.reference)
    path.write_bytes(b"something of somebody")
    answer = await pack.execute(command())
    assert isinstance(answer, AnswerRejected)
    assert "nothing was overwritten" in answer.reason
    assert path.read_bytes() == b"something of somebody"


@pytest.mark.parametrize("cut", [0, 1, -1])
async def test_a_beginning_of_the_pack_is_not_the_pack(pack: ContentPack, cut: int) -> None:
    first = await applied(pack)
    path = pack.path(ACME, first.reference)
    whole = path.read_bytes()
    path.write_bytes(whole[:cut] if cut >= 0 else whole[:-1])
    assert isinstance(await pack.execute(command()), AnswerRejected)
    assert isinstance(await pack.reconcile(command()), AnswerUnknown)


async def test_a_payload_that_is_none_is_rejected_and_writes_nothing(
    pack: ContentPack, tmp_path: Path
) -> None:
    stored = command()
    empty = stored.model_copy(update={"terms": stored.terms.model_copy(update={"payload": "{}"})})
    assert isinstance(await pack.execute(empty), AnswerRejected)
    assert isinstance(await pack.reconcile(empty), AnswerUnknown)
    assert not (await pack.verify(empty, "x")).ok
    assert not (tmp_path / "packs").exists()


async def test_prepare_gives_back_exactly_the_payload_or_a_reason(pack: ContentPack) -> None:
    terms = command().terms
    assert await pack.prepare(terms) == terms.payload
    refused = await pack.prepare(terms.model_copy(update={"payload": terms.payload + "\n"}))
    assert not isinstance(refused, str)
    assert not refused.ok


# --- what a disk says -----------------------------------------------------------------------------


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


# --- looks ----------------------------------------------------------------------------------------


async def test_a_look_finds_what_was_sent(pack: ContentPack) -> None:
    sent = await applied(pack)
    assert await pack.reconcile(command()) == sent


async def test_absence_is_proved_and_stays_true(pack: ContentPack) -> None:
    """INV-6: a sender of the closed attempt writes nothing, one of the next attempt does."""
    answer = await pack.reconcile(command())
    assert isinstance(answer, AnswerAbsent)
    late = await pack.execute(command())
    assert isinstance(late, AnswerNotEntered)
    assert "closed" in late.reason
    assert isinstance(await pack.reconcile(command()), AnswerAbsent)
    assert isinstance(await pack.execute(command(attempt=2)), AnswerApplied)


async def test_closed_attempts_never_open_again(pack: ContentPack) -> None:
    assert isinstance(await pack.reconcile(command(attempt=3)), AnswerAbsent)
    assert isinstance(await pack.reconcile(command(attempt=1)), AnswerAbsent)
    assert isinstance(await pack.execute(command(attempt=3)), AnswerNotEntered)
    assert isinstance(await pack.execute(command(attempt=4)), AnswerApplied)


async def test_a_damaged_record_of_closed_attempts_opens_nothing(
    pack: ContentPack, tmp_path: Path
) -> None:
    await pack.reconcile(command())
    (record,) = (tmp_path / "packs").rglob("*.closed")
    record.write_text("minus one")
    assert isinstance(await pack.execute(command(attempt=2)), AnswerNotEntered)
    assert isinstance(await pack.reconcile(command(attempt=2)), AnswerUnknown)


async def test_a_look_while_somebody_sends_is_uncertain(pack: ContentPack, tmp_path: Path) -> None:
    from connectors.content_pack.names import pack_key

    with (
        Place(tmp_path / "packs", ("acme", "main"), pack_key(command().id)) as place,
        place.holding(1) as held,
    ):
        assert held
        answer = await pack.reconcile(command())
    assert isinstance(answer, AnswerUnknown)
    assert "still writing" in answer.reason
    assert isinstance(await pack.reconcile(command()), AnswerAbsent)


async def test_a_frozen_sender_makes_a_look_uncertain_until_it_ends(
    pack: ContentPack, tmp_path: Path
) -> None:
    """A real process, stopped by a real signal just before its file appears."""
    child = sender(tmp_path / "packs", command(), (link_call(tmp_path), signal.SIGSTOP))
    child.stopped()
    assert isinstance(await pack.reconcile(command()), AnswerUnknown)
    child.go_on()
    answer = AnswerApplied.model_validate_json(child.answer())
    assert await pack.reconcile(command()) == answer


async def test_a_sender_that_thaws_after_absence_was_proved_writes_nothing(
    pack: ContentPack, tmp_path: Path
) -> None:
    """INV-6: it froze before it took the lock, which no lock can show."""
    child = sender(tmp_path / "packs", command(), (1, signal.SIGSTOP))
    child.stopped()
    assert isinstance(await pack.reconcile(command()), AnswerAbsent)
    child.go_on()
    late = AnswerNotEntered.model_validate_json(child.answer())
    assert "closed" in late.reason
    assert files(tmp_path / "packs" / "acme" / "main") == [f"{WORKSHOP}/{name(tmp_path)}"]


def name(tmp_path: Path) -> str:
    """The record of closed attempts, the only file that is left."""
    (record,) = (tmp_path / "packs").rglob("*.closed")
    return record.name


def link_call(tmp_path: Path) -> int:
    """The number of the call by which a pack appears, found by trying."""
    for number in range(1, 40):
        packs = tmp_path / f"try-{number}"
        child = sender(packs, command(), (number, signal.SIGKILL))
        assert child.answer() == ""
        if list(packs.rglob("*.zip")):
            return number - 1
    message = "no call makes a pack appear"
    raise AssertionError(message)


# --- verification ---------------------------------------------------------------------------------


def rewritten(change: Callable[[dict[str, bytes]], None], path: Path) -> None:
    """Unpack, change, and pack again soundly, as somebody with a file manager would."""
    with zipfile.ZipFile(path) as archive:
        contents = {info.filename: archive.read(info) for info in archive.infolist()}
    change(contents)
    with zipfile.ZipFile(path, "w") as archive:
        for entry, data in contents.items():
            archive.writestr(entry, data)


TAMPERING: dict[str, tuple[Callable[[Path], object], str]] = {
    "deleted": (lambda path: path.unlink(), "is not there"),
    "emptied": (lambda path: path.write_bytes(b""), "0 bytes instead of"),
    "truncated": (lambda path: path.write_bytes(path.read_bytes()[:-30]), "not a whole archive"),
    "one byte of a text": (
        lambda path: path.write_bytes(path.read_bytes().replace(b"Friday", b"Monday", 1)),
        "draft.json is damaged",
    ),
    "appended": (lambda path: path.write_bytes(path.read_bytes() + b"x"), "bytes instead of"),
    "prefixed": (lambda path: path.write_bytes(b"#!" + path.read_bytes()), "bytes instead of"),
    "replaced by a folder": (
        lambda path: path.rename(path.with_name("moved")).with_name(path.name).mkdir(),
        "could not be read",
    ),
    "another text, packed soundly": (
        lambda path: rewritten(
            lambda files: files.update({"draft.md": b"# Something else\n"}), path
        ),
        "draft.md has 17 bytes",
    ),
    "same length, packed soundly": (
        lambda path: rewritten(
            lambda files: files.update(
                {"draft.md": files["draft.md"].replace(b"Friday", b"Monday")}
            ),
            path,
        ),
        "draft.md differs from what was approved, from byte",
    ),
    "an entry more": (
        lambda path: rewritten(lambda files: files.update({"evil.exe": b"x"}), path),
        "'evil.exe' does not belong",
    ),
    "an entry less": (
        lambda path: rewritten(lambda files: files.__delitem__("sources.json"), path),
        "sources.json is missing",
    ),
    "a bomb in place of an entry": (
        lambda path: rewritten(lambda files: files.update({"draft.md": b"0" * 5_000_000}), path),
        "is not a whole archive",
    ),
}


@pytest.mark.parametrize("what", TAMPERING)
async def test_tampering_after_the_receipt_is_found_and_said(pack: ContentPack, what: str) -> None:
    answer = await applied(pack)
    tamper, said = TAMPERING[what]
    tamper(pack.path(ACME, answer.reference))
    finding = await pack.verify(command(), answer.reference)
    assert not finding.ok
    assert said in finding.evidence
    assert finding.digest is None or finding.digest != answer.digest


async def test_every_single_changed_byte_is_found(pack: ContentPack) -> None:
    answer = await applied(pack)
    path = pack.path(ACME, answer.reference)
    whole = path.read_bytes()
    for position in range(0, len(whole), 7):
        changed = bytearray(whole)
        changed[position] ^= 1
        path.write_bytes(changed)
        finding = pack._verify(command(), answer.reference)
        assert not finding.ok, position


async def test_what_is_as_approved_is_verified_with_its_digest(pack: ContentPack) -> None:
    answer = await applied(pack)
    finding = await pack.verify(command(), answer.reference)
    assert finding.ok
    assert (finding.method, finding.digest) == ("pack_reread", answer.digest)


async def test_another_reference_than_the_commands_own_is_refused(pack: ContentPack) -> None:
    answer = await applied(pack)
    for reference in ("", "../x.zip", "/etc/passwd", answer.reference.replace("main", "other")):
        assert not (await pack.verify(command(), reference)).ok
        with pytest.raises(PackReferenceRefused):
            pack.path(ACME, reference)
    with pytest.raises(PackReferenceRefused):
        pack.path(OTHER, answer.reference)
    with pytest.raises(PackReferenceRefused):
        pack.path(ACME, "acme/main/.work/x")
