"""The command line: light to start, a fault is one sentence and exit code 2."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from bot.sandbox.run import open_sandbox
from runtime.system import SystemClock, SystemIds

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
    shown = run(
        tmp_path, "doctor", TELEGRAM_BOT_TOKEN="1:t", TELEGRAM_WEBHOOK_URL="https://bot.example"
    )
    assert shown.returncode == 1
    assert "TELEGRAM_WEBHOOK_SECRET" in shown.stdout


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"HARMONIA_DATA_DIR": "a-file"}, "HARMONIA_DATA_DIR"),
        ({"HARMONIA_LISTEN_HOST": "203.0.113.7"}, "HARMONIA_LISTEN_HOST"),
        ({"TELEGRAM_WEBHOOK_URL": "https://bot.example"}, "it needs TELEGRAM_BOT_TOKEN"),
        (
            {"TELEGRAM_BOT_TOKEN": "1:t", "TELEGRAM_API_URL": "http://127.0.0.1:1"},
            "no answer from the Bot API",
        ),
        (
            {"TELEGRAM_BOT_TOKEN": "1:t", "TELEGRAM_WEBHOOK_URL": "https://bot.example"},
            "TELEGRAM_WEBHOOK_SECRET",
        ),
    ],
)
def test_a_start_that_cannot_be_is_one_sentence_and_exit_code_2(
    tmp_path: Path, settings: dict[str, str], words: str
) -> None:
    (tmp_path / "a-file").write_text("not a folder")
    shown = run(tmp_path, "up", HARMONIA_LISTEN_PORT="0", **settings)
    assert shown.returncode == 2, shown.stderr
    said = [line for line in shown.stderr.splitlines() if not line.startswith("{")]
    assert len(said) == 1, "one sentence, beside the log"
    assert words in said[0]


def test_a_port_that_is_taken_is_named(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        shown = run(tmp_path, "up", HARMONIA_LISTEN_PORT=str(port))
    assert shown.returncode == 2
    assert f"127.0.0.1:{port}: Address already in use." in shown.stderr


def test_two_processes_do_not_play_in_one_sandbox_world(tmp_path: Path) -> None:
    """Each would rewrite the other's people, chats and page token."""
    world = open_sandbox(SystemClock(), SystemIds(), tmp_path / "data" / "sandbox")
    try:
        shown = run(tmp_path, "up", HARMONIA_LISTEN_PORT="0")
    finally:
        os.close(world.lock)
    assert shown.returncode == 2, shown.stderr
    assert "stop the other one, or choose another HARMONIA_DATA_DIR" in shown.stderr


def test_a_defect_is_told_by_its_place_and_never_by_its_values(tmp_path: Path) -> None:
    code = (
        "import bot.cli as cli\n"
        "def broken():\n"
        "    raise ExceptionGroup('services', [ValueError('a secret draft')])\n"
        "cli.app = broken\n"
        "cli.main()\n"
    )
    shown = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert shown.returncode == 70
    assert "ValueError" in shown.stderr
    assert "secret" not in shown.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_gracefully(tmp_path: Path, number: int) -> None:
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "HARMONIA_LISTEN_PORT": "0"}
    with subprocess.Popen(
        [sys.executable, "-m", "bot.cli", "up"],
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("The code works once"):
                break
        process.send_signal(number)
        said, faults = process.communicate(timeout=30)
    assert process.returncode == 0, faults
    assert "Stopping: what runs comes to its end." in said
