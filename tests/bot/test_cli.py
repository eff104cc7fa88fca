"""The command line: light to start, a fault is one sentence and exit code 2."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.processes
ROOT = Path(__file__).resolve().parents[2]
HEAVY = ("google", "telegram", "pypdf", "mammoth", "bs4", "uvicorn", "starlette")


def run(folder: Path, *arguments: str, **settings: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), **settings}
    return subprocess.run(
        [sys.executable, "-m", "bot.cli", *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_help_lists_the_commands(tmp_path: Path) -> None:
    shown = run(tmp_path, "--help")
    assert shown.returncode == 0
    for command in ("up", "sandbox", "doctor"):
        assert command in shown.stdout


def test_starting_the_command_line_imports_nothing_heavy(tmp_path: Path) -> None:
    code = f"import sys, bot.cli; print([m for m in {HEAVY!r} if m in sys.modules])"
    shown = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert shown.stdout.strip() == "[]"


@pytest.mark.parametrize("command", ["up", "sandbox", "doctor"])
def test_a_setting_that_is_not_understood_is_one_sentence(tmp_path: Path, command: str) -> None:
    shown = run(tmp_path, command, HARMONIA_LISTEN_PORT="ninety")
    assert shown.returncode == 2
    assert len(shown.stderr.strip().splitlines()) == 1
    assert "HARMONIA_LISTEN_PORT" in shown.stderr


def test_the_doctor_ends_with_1_when_something_is_missing(tmp_path: Path) -> None:
    assert run(tmp_path, "doctor").returncode == 0
    shown = run(tmp_path, "doctor", TELEGRAM_WEBHOOK_URL="https://bot.example")
    assert shown.returncode == 1
    assert "TELEGRAM_WEBHOOK_SECRET" in shown.stdout
