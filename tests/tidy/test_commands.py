"""The commands are what they say: each documented, none run under conditions that blind it."""

from __future__ import annotations

import os
import re
import subprocess

import pytest

from tests.tidy.tree import ROOT

COMMANDS = ("help", "up", "test", "check", "demo", "bench", "lock", "clean")


def make(*arguments: str, **extra: str) -> subprocess.CompletedProcess[str]:
    """Run make from the root, without what a calling make would hand down."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("MAKE")}
    return subprocess.run(
        ("make", *arguments),
        cwd=ROOT,
        env={**kept, **extra},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )


def test_make_alone_lists_every_command_with_its_purpose() -> None:
    shown = make()
    assert shown.returncode == 0
    listed = re.findall(r"^make (\w+) +\S+ \S+", shown.stdout, re.MULTILINE)
    assert sorted(listed) == sorted(COMMANDS)


def test_every_command_is_phony() -> None:
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    phony = re.search(r"^\.PHONY: (.+)$", text, re.MULTILINE)
    assert phony
    assert sorted(phony[1].split()) == sorted(COMMANDS)


@pytest.mark.parametrize("command", ["test", "check", "demo"])
def test_a_python_without_assertions_is_refused(command: str) -> None:
    refused = make("--dry-run", command, PYTHONOPTIMIZE="1")
    assert refused.returncode != 0
    assert "PYTHONOPTIMIZE" in refused.stderr


def test_ci_runs_the_two_commands_of_a_developer() -> None:
    text = (ROOT / ".ci/run").read_text(encoding="utf-8")
    assert "set -euo pipefail" in text
    assert re.findall(r"^make (\w+)$", text, re.MULTILINE) == ["check", "test"]
    assert os.access(ROOT / ".ci/run", os.X_OK)
