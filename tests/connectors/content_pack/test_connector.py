"""Packs on a real disk: created once, never overwritten, absence provable. INV-6."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from connectors.content_pack.connector import ContentPack
from connectors.content_pack.place import WORKSHOP, Place
from runtime.domain.effect import (
    AnswerAbsent,
    AnswerApplied,
    AnswerNotEntered,
    AnswerRejected,
    AnswerUnknown,
)
from runtime.domain.values import sha256
from tests.connectors.content_pack.children import sender
from tests.connectors.content_pack.packing import applied, files, pack_in
from tests.effects_made import command
from tests.world import ACME


@pytest.fixture
def pack(tmp_path: Path) -> ContentPack:
    return pack_in(tmp_path)


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
