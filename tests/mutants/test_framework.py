"""The framework tells a caught defect from a missed one and from one that does not even start."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.mutants.framework import FAILED, Mutant, flaws, mutated, run_tests

CODE = '''"""A lease, for the framework's own tests."""


def expired(now: int, until: int) -> bool:
    return now >= until
'''
TESTS = """from toybox.toy import expired

def test_border() -> None:
    assert expired(5, 5)

def test_far() -> None:
    assert expired(9, 5)
"""


def toy(**changes: object) -> Mutant:
    """A mutant of the toy module below."""
    fields: dict[str, object] = {
        "invariant": "INV-3",
        "file": "toybox/toy.py",
        "before": "now >= until",
        "after": "now > until",
        "tests": ("tests/test_toy.py::test_border",),
    }
    return Mutant(**{**fields, **changes})  # type: ignore[arg-type]  # the table above has the field types


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project of one module and one test file."""
    (tmp_path / "toybox").mkdir()
    (tmp_path / "toybox/__init__.py").touch()
    (tmp_path / "tests").mkdir()
    (tmp_path / "toybox/toy.py").write_text(CODE, encoding="utf-8")
    (tmp_path / "tests/test_toy.py").write_text(TESTS, encoding="utf-8")
    config = (
        '[tool.pytest.ini_options]\npythonpath = ["."]\naddopts = ["--import-mode=importlib"]\n'
    )
    (tmp_path / "pyproject.toml").write_text(config, encoding="utf-8")
    return tmp_path


def test_a_defect_is_caught_and_the_file_is_put_back(project: Path) -> None:
    mutant = toy()
    assert flaws(mutant, project) == []
    assert run_tests(project, mutant.tests).code == 0
    with mutated(project, mutant):
        assert "now > until" in (project / mutant.file).read_text(encoding="utf-8")
        assert run_tests(project, mutant.tests).caught
    assert (project / mutant.file).read_text(encoding="utf-8") == CODE
    assert run_tests(project, mutant.tests).code == 0


def test_a_defect_that_no_test_sees_is_not_caught(project: Path) -> None:
    mutant = toy(tests=("tests/test_toy.py::test_far",))
    with mutated(project, mutant):
        run = run_tests(project, mutant.tests)
    assert run.code == 0
    assert not run.caught


@pytest.mark.parametrize(
    ("before", "after", "code", "cause"),
    [
        ("now >= until", "now >= untill", FAILED, "NameError"),
        ("def expired(", "def expire(", 4, "ImportError"),
    ],
)
def test_a_defect_that_does_not_start_is_not_caught(
    project: Path, before: str, after: str, code: int, cause: str
) -> None:
    mutant = toy(before=before, after=after)
    with mutated(project, mutant):
        run = run_tests(project, mutant.tests)
    assert run.code == code
    assert cause in run.output
    assert not run.caught


def test_a_test_that_is_not_there_is_not_a_catch(project: Path) -> None:
    run = run_tests(project, ("tests/test_toy.py::test_missing",))
    assert run.code == 4  # pytest's "no such test"
    assert not run.caught


@pytest.mark.parametrize(
    "changes",
    [
        {"before": "until"},
        {"before": "never there"},
        {"after": "now >= until"},
        {"after": "now >= until  # a comment"},
        {"after": "now >="},
        {"after": "now\n> until"},
        {"file": "toybox/missing.py"},
        {"tests": ()},
        {"tests": ("tests/missing.py::test",)},
        {"invariant": "leases"},
    ],
)
def test_an_unusable_entry_is_refused(project: Path, changes: dict[str, object]) -> None:
    assert flaws(toy(**changes), project)
