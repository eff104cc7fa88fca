"""Keys: made once, private, the same for every process."""

from __future__ import annotations

import asyncio
import stat
from pathlib import Path

import pytest

from bot.keys import FileKeys
from runtime.errors import SettingsError
from runtime.system import SystemIds


def test_a_key_is_made_once_and_kept(tmp_path: Path) -> None:
    first = FileKeys(tmp_path / "keys", SystemIds()).ensure("grant-key")
    again = FileKeys(tmp_path / "keys", SystemIds())
    assert again.ensure("grant-key") == first == again.read("grant-key")
    assert again.read("another") is None


def test_only_this_user_reads_it(tmp_path: Path) -> None:
    FileKeys(tmp_path / "keys", SystemIds()).ensure("grant-key")
    assert stat.S_IMODE((tmp_path / "keys").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "keys/grant-key").stat().st_mode) == 0o600
    assert [path.name for path in (tmp_path / "keys").iterdir()] == ["grant-key"]


async def test_processes_that_start_at_once_use_one_key(tmp_path: Path) -> None:
    made = [FileKeys(tmp_path / "keys", SystemIds()) for _ in range(8)]
    keys = await asyncio.gather(*(asyncio.to_thread(key.ensure, "grant-key") for key in made))
    assert len(set(keys)) == 1


def test_a_file_without_a_key_is_refused(tmp_path: Path) -> None:
    keys = FileKeys(tmp_path / "keys", SystemIds())
    (tmp_path / "keys/grant-key").write_bytes(b"short")
    with pytest.raises(SettingsError):
        keys.ensure("grant-key")
