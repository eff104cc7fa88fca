"""Lock and build files pin by hash and name no host, so that any index may serve them."""

from __future__ import annotations

import re

import pytest

from tests.tidy.tree import ROOT

LOCKS = ("run.txt", "dev.txt", "build.txt")
BUILD_FILES = (
    *(f"requirements/{name}" for name in LOCKS),
    "pyproject.toml",
    "Makefile",
    ".ci/run",
    ".ci/setup.py",
    ".pre-commit-config.yaml",
    ".importlinter",
)
HOST = re.compile(
    r"[a-z]+://|--(?:extra-)?index-url|--find-links|--trusted-host|git\+|@ file|pypi|pythonhosted",
    re.IGNORECASE,
)
PIN = re.compile(r"^([A-Za-z0-9._-]+)==(\S+)")


def pins(name: str) -> dict[str, str]:
    """Package -> version of a lock file."""
    text = (ROOT / "requirements" / name).read_text(encoding="utf-8")
    found = {match[1]: match[2] for line in text.splitlines() if (match := PIN.match(line))}
    assert found, f"{name} pins nothing"
    return found


@pytest.mark.parametrize("path", BUILD_FILES)
def test_no_build_file_names_a_host(path: str) -> None:
    lines = (ROOT / path).read_text(encoding="utf-8").splitlines()
    assert lines
    assert [line for line in lines if HOST.search(line)] == []


@pytest.mark.parametrize("name", LOCKS)
def test_every_package_is_pinned_with_its_hashes(name: str) -> None:
    text = (ROOT / "requirements" / name).read_text(encoding="utf-8")
    entries = [entry for entry in re.split(r"\n(?=\S)", text.strip()) if entry[0] != "#"]
    assert len(entries) == len(pins(name))
    for entry in entries:
        assert PIN.match(entry), entry
        assert "--hash=sha256:" in entry, entry


def test_a_developer_runs_what_an_operator_runs() -> None:
    developer = pins("dev.txt")
    assert {name: developer.get(name) for name in pins("run.txt")} == pins("run.txt")
    build = pins("build.txt")
    shared = build.keys() & developer.keys()
    assert "hatchling" in shared
    assert {name: developer[name] for name in shared} == {name: build[name] for name in shared}
