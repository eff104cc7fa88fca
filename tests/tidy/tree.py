"""What the tidy tests look at: the project's own files, each read once.

Every list is checked to be non-empty where it is made, so that no rule passes on nothing.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
PACKAGES = ("runtime", "connectors", "bot")
FOLDERS = (*PACKAGES, "tests", "docs", "deploy", "requirements", ".ci")
TEXT_SUFFIXES = frozenset(
    {"", ".py", ".md", ".toml", ".txt", ".yaml", ".yml", ".html", ".css", ".js", ".json", ".sh"}
)
MODULES_MIN = 15
"""The foundation alone has this many modules; fewer means that the scan is looking elsewhere."""


@dataclass(frozen=True, slots=True)
class Source:
    """One Python file: its path from the root, its text and its syntax tree."""

    path: str
    text: str
    tree: ast.Module

    @property
    def module(self) -> str:
        """The dotted name under which it is imported."""
        return self.path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def read(path: Path) -> Source:
    """Parse one file."""
    text = path.read_text(encoding="utf-8")
    return Source(path.relative_to(ROOT).as_posix(), text, ast.parse(text))


def sample(text: str, path: str = "runtime/sample.py") -> Source:
    """Make a source from a string, for the tests of the rules themselves."""
    return Source(path, text, ast.parse(text))


@cache
def files() -> tuple[Path, ...]:
    """Every file of the project that a person wrote or a tool keeps for us."""
    top = [path for path in ROOT.iterdir() if path.is_file() and path.name != ".coverage"]
    deep = [
        path
        for folder in FOLDERS
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    ]
    found = tuple(sorted([*top, *deep]))
    assert len(found) > MODULES_MIN, "the scan found nothing: is ROOT right?"
    return found


@cache
def texts() -> tuple[tuple[str, str], ...]:
    """(path, text) of every text file, the licence and private `.env` apart."""
    found = tuple(
        (path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8"))
        for path in files()
        if path.suffix in TEXT_SUFFIXES
        and path.name not in {"LICENSE", ".env", ".setup.lock"}
        and "golden" not in path.parts
    )
    assert len(found) > MODULES_MIN
    return found


@cache
def sources(*folders: str) -> tuple[Source, ...]:
    """Every Python file under the given folders (all packages if none is named)."""
    wanted = tuple(f"{folder}/" for folder in folders or PACKAGES)
    found = tuple(
        read(path)
        for path in files()
        if path.suffix == ".py" and path.relative_to(ROOT).as_posix().startswith(wanted)
    )
    assert found, f"no Python file under {wanted}"
    if not folders:
        assert len(found) >= MODULES_MIN
    return found


def functions(source: Source) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Every function and method of a file, nested ones included."""
    return [
        node
        for node in ast.walk(source.tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]


def report(problems: list[str]) -> str:
    """One problem a line, for an assertion's message."""
    return "\n" + "\n".join(problems)
