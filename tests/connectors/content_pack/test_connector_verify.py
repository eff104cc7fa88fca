"""A second look finds whatever happened to a pack after its receipt, and says what. INV-7."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from connectors.content_pack.connector import ContentPack
from connectors.content_pack.errors import PackReferenceRefused
from tests.connectors.content_pack.packing import applied, pack_in
from tests.effects_made import command
from tests.world import ACME, OTHER


@pytest.fixture
def pack(tmp_path: Path) -> ContentPack:
    return pack_in(tmp_path)


def rewritten(change: Callable[[dict[str, bytes]], None], path: Path) -> None:
    """Unpack, change, and pack again soundly, as somebody with a file manager would."""
    with zipfile.ZipFile(path) as archive:
        contents = {info.filename: archive.read(info) for info in archive.infolist()}
    change(contents)
    with zipfile.ZipFile(path, "w") as archive:
        for entry, data in contents.items():
            archive.writestr(entry, data)


def repacked(path: Path, method: int) -> bytes:
    """The same contents in another archive."""
    with zipfile.ZipFile(path) as archive:
        contents = {info.filename: archive.read(info) for info in archive.infolist()}
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", method) as archive:
        for entry, data in contents.items():
            archive.writestr(entry, data)
    return made.getvalue()


def damaged(data: bytes) -> bytes:
    """The first entry's packed bytes, turned over."""
    return data[:50] + bytes(byte ^ 0xFF for byte in data[50:60]) + data[60:]


def from_the_future(data: bytes) -> bytes:
    """The version needed to read the first entry of the directory, raised."""
    place = data.index(b"PK\x01\x02") + 6
    return data[:place] + b"\xff" + data[place + 1 :]


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
    "compressed": (
        lambda path: path.write_bytes(repacked(path, zipfile.ZIP_DEFLATED)),
        "draft.md is compressed",
    ),
    "compressed, then damaged": (
        lambda path: path.write_bytes(damaged(repacked(path, zipfile.ZIP_DEFLATED))),
        "is compressed",
    ),
    "of a version of the format that nobody reads": (
        lambda path: path.write_bytes(from_the_future(path.read_bytes())),
        "not a whole archive",
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
        changed[position] ^= 0xFF
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
