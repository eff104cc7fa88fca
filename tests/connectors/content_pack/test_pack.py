"""Packs as bytes: the same on every machine, readable by every unzipper, complete."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from connectors.content_pack.pack import draft_text, entries, pack_bytes
from connectors.content_pack.payload import PackPayload, read_payload
from runtime.domain.values import sha256
from tests.effects_made import SOURCE, command

GOLDEN = "9910605b5c7040af374451aad67c411c707be34df767a8e4c70a264a75de8149"


def packed(title: str = "Launch: Бесплатно 🚀") -> bytes:
    stored = command(title)
    return pack_bytes(entries(stored, payload(title)))


def payload(title: str = "Launch: Бесплатно 🚀") -> PackPayload:
    return read_payload(command(title).terms.payload)


def test_the_bytes_of_a_pack_are_these_and_stay_these() -> None:
    """A release that changes them would make every earlier pack look tampered with."""
    assert sha256(packed()) == GOLDEN


def test_another_interpreter_with_another_seed_locale_and_zone_packs_the_same_bytes() -> None:
    code = (
        "from tests.connectors.content_pack.test_pack import packed\n"
        "from runtime.domain.values import sha256\n"
        "print(sha256(packed()))\n"
    )
    root = Path(__file__).parents[3]
    environment = {**os.environ, "PYTHONHASHSEED": "7", "LC_ALL": "C", "TZ": "Asia/Tokyo"}
    environment["PYTHONPATH"] = str(root)
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=root,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == sha256(packed())


def test_the_standard_library_finds_the_archive_sound() -> None:
    with zipfile.ZipFile(io.BytesIO(packed())) as archive:
        assert archive.testzip() is None
        infos = archive.infolist()
    names = [info.filename for info in infos]
    assert names == ["draft.json", "draft.md", "manifest.json", "sources.json"]
    for info in infos:
        assert info.date_time == (1980, 1, 1, 0, 0, 0)
        assert info.compress_type == zipfile.ZIP_STORED
        assert info.external_attr == 0o100644 << 16
        assert info.create_system == 3


@pytest.mark.skipif(shutil.which("unzip") is None, reason="no unzip on this machine")
def test_another_unzipper_finds_the_archive_sound(tmp_path: Path) -> None:
    (tmp_path / "pack.zip").write_bytes(packed())
    subprocess.run(["unzip", "-tq", str(tmp_path / "pack.zip")], check=True, capture_output=True)


def test_the_markdown_holds_each_approved_text_exactly() -> None:
    text = draft_text(payload())
    assert text == (
        "# Launch: Бесплатно 🚀\n\n## When\n\nLaunch is on Friday.\n\n"
        "“Бесплатно” 🚀 for everyone.\n\nTickets cost nothing.\n"
    )


def test_a_title_over_several_lines_makes_no_other_structure() -> None:
    text = draft_text(payload("One\n\n## Two"))
    assert text.startswith("# One ## Two\n\n## When")


def test_sources_give_each_quote_with_its_place_and_digest() -> None:
    files = entries(command(), payload())
    sources = json.loads(files["sources.json"])
    assert sources["source"]["text_sha256"] == sha256(SOURCE.encode())
    for quote in sources["quotes"]:
        assert SOURCE[quote["start"] : quote["end"]] == quote["text"]
        assert sha256(quote["text"].encode()) == quote["sha256"]


def test_the_manifest_lists_every_other_entry_with_its_digest_and_the_approved_terms() -> None:
    stored = command()
    files = entries(stored, payload())
    manifest = json.loads(files["manifest.json"])
    assert {entry["name"]: entry["sha256"] for entry in manifest["entries"]} == {
        name: sha256(data) for name, data in files.items() if name != "manifest.json"
    }
    assert manifest["terms_sha256"] == stored.terms.digest
    assert manifest["command"] == stored.id


def test_packs_of_two_commands_differ() -> None:
    assert packed("One") != packed("Two")
