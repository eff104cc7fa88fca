"""Applies one-line defects to a copy of the project and sees whether a test notices.

A mutant names the invariant it breaks, a file, a fragment that stands there exactly once, what
replaces it, and the tests that must fail. The copy is made once per test process; one file in it
is changed, the named tests run in a fresh interpreter, and the file is put back.

A mutated file gets a modification time of its own, since Python trusts compiled code by time and
size and a defect often changes neither within a second.
"""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
COPIED = ("bot", "runtime", "connectors", "tests")
COPIED_FILES = ("pyproject.toml", ".env.example")
SECONDS_MAX = 120
FAILED = 1
"""Pytest's exit code for "tests ran and some failed"; collection errors and no tests differ."""

# A defect that merely does not start proves nothing about the tests.
BROKEN_START = re.compile(
    r"(ImportError|ModuleNotFoundError|SyntaxError|IndentationError|NameError|UnboundLocalError)\b"
)
_stamps = count(4_000_000_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """One defect. `tests` are pytest node IDs; each run must fail, not break."""

    invariant: str
    file: str
    before: str
    after: str
    tests: tuple[str, ...]

    @property
    def name(self) -> str:
        """What pytest shows and `-k` selects."""
        return f"{self.invariant}: {self.file}: {self.after.strip() or 'nothing'}"


@dataclass(frozen=True, slots=True)
class Run:
    """How a run of pytest in the copy ended."""

    code: int
    output: str

    @property
    def caught(self) -> bool:
        """Whether a test failed by its own judgement."""
        return self.code == FAILED and any(
            not BROKEN_START.search(line.partition(" - ")[2])
            for line in self.output.splitlines()
            if line.startswith("FAILED ")
        )


def flaws(mutant: Mutant, root: Path = ROOT) -> list[str]:
    """What makes an entry of the table unusable: it must be one line, unique, and still Python."""
    path = root / mutant.file
    if not path.is_file():
        return [f"{mutant.file} does not exist"]
    text = path.read_text(encoding="utf-8")
    found: list[str] = []
    if text.count(mutant.before) != 1:
        found.append(f"the fragment stands {text.count(mutant.before)} times in {mutant.file}")
    if mutant.before == mutant.after:
        found.append("the replacement changes nothing")
    if "\n" in mutant.before or "\n" in mutant.after:
        found.append("a mutant is a one-line defect")
    if not re.fullmatch(r"INV-\d+", mutant.invariant):
        found.append(f"{mutant.invariant} is no invariant")
    if not mutant.tests:
        found.append("no test is named")
    found += [
        f"{node} does not exist"
        for node in mutant.tests
        if not (root / node.partition("::")[0]).exists()
    ]
    if not found:
        found += _not_a_defect(text, mutant)
    return found


def _not_a_defect(text: str, mutant: Mutant) -> list[str]:
    try:
        mutated = ast.dump(ast.parse(text.replace(mutant.before, mutant.after)))
    except SyntaxError as error:
        return [f"the replacement is not Python: {error.msg}"]
    if mutated == ast.dump(ast.parse(text)):
        return ["the replacement changes only comments or spaces"]
    return []


def copy_project(target: Path) -> Path:
    """Copy what the tests need into an empty folder; modification times come along."""
    ignored = shutil.ignore_patterns("__pycache__", "*.pyc", ".hypothesis")
    for name in COPIED:
        shutil.copytree(ROOT / name, target / name, ignore=ignored)
    for name in COPIED_FILES:
        shutil.copy2(ROOT / name, target / name)
    return target


@contextmanager
def mutated(copy: Path, mutant: Mutant) -> Iterator[None]:
    """Apply a mutant inside the copy for the length of the block."""
    path = copy / mutant.file
    original = path.read_text(encoding="utf-8")
    stat = path.stat()
    path.write_text(original.replace(mutant.before, mutant.after), encoding="utf-8")
    stamp = next(_stamps)
    os.utime(path, (stamp, stamp))
    try:
        yield
    finally:
        path.write_text(original, encoding="utf-8")
        os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))


def run_tests(copy: Path, nodes: tuple[str, ...], *, stop_at_first: bool = True) -> Run:
    """Run the given tests inside the copy, in an interpreter of their own."""
    environment = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith(("PYTEST_", "COV_", "COVERAGE_", "PYTHON"))
    }
    environment["PYTHONPYCACHEPREFIX"] = str(copy / ".compiled")
    command = [
        *(sys.executable, "-m", "pytest", *nodes),
        *("-q", "-rfE", "-p", "no:xdist", "-p", "no:cacheprovider", "--tb=line"),
        f"--timeout={SECONDS_MAX // 2}",
        *(("-x",) if stop_at_first else ()),
    ]
    done = subprocess.run(
        command,
        cwd=copy,
        env=environment,
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        check=False,
    )
    return Run(done.returncode, done.stdout + done.stderr)
