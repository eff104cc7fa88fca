"""Tests stand where their subject stands, and no module is left that nothing uses."""

from __future__ import annotations

import re

from tests.tidy.names import references
from tests.tidy.tree import PACKAGES, ROOT, Source, report, sources

# Where the interpreter enters: nothing imports these, and why.
ENTRANCES = {
    "bot.cli": "the console script of pyproject.toml",
    "bot.sandbox.client": "drives the sandbox's people, for scripts outside: the demo, the tests",
    "runtime.domain.states": "writes docs/states.md, by hand (python -m)",
}


def subjects(path: str) -> list[str]:
    """The places in the packages that a test file may be about.

    `tests/runtime/stores/test_sqlite_two_processes.py` may be about `sqlite_two_processes`,
    `sqlite_two` or `sqlite` in `runtime/stores/`, each as a module or as a folder.
    """
    folder, _, file = path.removeprefix("tests/").rpartition("/")
    words = file.removeprefix("test_").removesuffix(".py").split("_")
    names = ["_".join(words[:count]) for count in range(len(words), 0, -1)]
    return [f"{folder}/{name}{ending}" for name in names for ending in (".py", "")]


def unused(modules: tuple[Source, ...]) -> list[str]:
    """Modules that no other module of the packages imports or names as a text."""
    wanted = {source.module for source in modules if not source.path.endswith("__init__.py")}
    used: set[str] = set()
    for source in modules:
        names = {reference.name for reference in references(source)}
        named = set(re.findall(r"[\"']([a-z_]+(?:\.[a-z_]+)+)", source.text))
        for name in names | named:
            parts = name.split(".")
            used.update(
                ".".join(parts[:count])
                for count in range(2, len(parts) + 1)
                if ".".join(parts[:count]) != source.module
            )
    return sorted(wanted - used - ENTRANCES.keys())


def test_the_subject_is_found_by_the_beginning_of_its_name() -> None:
    found = subjects("tests/runtime/stores/test_sqlite_lost_replies.py")
    assert "runtime/stores/sqlite.py" in found
    assert "runtime/stores/lost.py" not in found


def test_tests_stand_where_their_subject_stands() -> None:
    scanned = [
        source.path
        for source in sources("tests")
        if source.path.startswith(tuple(f"tests/{package}/" for package in PACKAGES))
        and source.path.rpartition("/")[2].startswith("test_")
    ]
    assert scanned
    problems = [
        f"{path}: no subject of this name stands in the mirrored folder"
        for path in scanned
        if not any((ROOT / subject).exists() for subject in subjects(path))
    ]
    assert not problems, report(problems)


def test_no_module_is_dead() -> None:
    problems = unused(sources())
    assert not problems, report(problems)
