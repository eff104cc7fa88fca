"""Every defect in the table is noticed by the test that claims to hold its invariant."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.mutants.framework import Mutant, flaws, mutated, run_tests
from tests.mutants.table import MUTANTS

NODES = tuple(sorted({node for mutant in MUTANTS for node in mutant.tests}))


def test_each_entry_is_usable_and_there_once() -> None:
    problems = [f"{mutant.name}: {flaw}" for mutant in MUTANTS for flaw in flaws(mutant)]
    assert problems == []
    names = [mutant.name for mutant in MUTANTS]
    assert len(set(names)) == len(names)


def test_the_named_tests_pass_on_the_code_as_it_is(project_copy: Path) -> None:
    if not MUTANTS:
        pytest.skip("the table is empty: no invariant is marked as kept yet")
    run = run_tests(project_copy, NODES, stop_at_first=False)
    assert run.code == 0, run.output


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_the_defect_is_caught(mutant: Mutant, project_copy: Path) -> None:
    with mutated(project_copy, mutant):
        run = run_tests(project_copy, mutant.tests)
    assert run.caught, f"{mutant.name} was not caught (exit code {run.code}):\n{run.output}"
