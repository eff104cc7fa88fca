"""Every kept invariant is cited by code and by a test and has a mutant; the open list shrinks."""

from __future__ import annotations

import pytest

from tests.mutants.table import MUTANTS
from tests.tidy.invariants import COUNT, Invariant, cited, ranges, table
from tests.tidy.tree import ROOT, report, sample, sources

# Not kept yet. Only ever remove from this list: an invariant that was kept stays kept.
OPEN = frozenset({11, 12, 14})

KEPT = tuple(row for row in table() if row.state == "kept")
NOT_EVIDENCE = ("tests/tidy/", "tests/mutants/")


def test_the_table_has_each_number_once_and_a_state() -> None:
    assert [row.number for row in table()] == list(range(1, COUNT + 1))
    assert {row.state for row in table()} <= {"kept", "open"}
    assert all(row.statement.endswith(".") for row in table())


def test_the_open_list_is_the_one_that_only_shrinks() -> None:
    assert {row.number for row in table() if row.state == "open"} == OPEN


def test_no_citation_names_an_unknown_invariant() -> None:
    known = {row.number for row in table()}
    scanned = [*sources(), *sources("tests")]
    assert any(cited(source) for source in scanned)
    problems = [
        f"{source.path}: INV-{number}" for source in scanned for number in cited(source) - known
    ]
    assert not problems, report(problems)


def test_each_citation_is_written_out() -> None:
    assert ranges("keeps INV-1" + "..4")
    assert not ranges(sample("# INV-1, INV-2").text)
    problems = [f"{source.path}: {found}" for source in sources() for found in ranges(source.text)]
    assert not problems, report(problems)


@pytest.mark.parametrize("row", KEPT, ids=lambda row: row.name)
def test_a_kept_invariant_is_cited_where_the_table_says(row: Invariant) -> None:
    assert row.kept_by, f"{row.name}: say which module keeps it"
    assert row.tests, f"{row.name}: say which test holds it"
    for path in (*row.kept_by, *row.tests):
        assert (ROOT / path).is_file(), f"{row.name}: {path} does not exist"
    code = {source.path for source in sources() if row.number in cited(source)}
    tests = {
        source.path
        for source in sources("tests")
        if row.number in cited(source) and not source.path.startswith(NOT_EVIDENCE)
    }
    assert set(row.kept_by) <= code, f"{row.name} is not cited by {set(row.kept_by) - code}"
    assert set(row.tests) <= tests, f"{row.name} is not cited by {set(row.tests) - tests}"


@pytest.mark.parametrize("row", KEPT, ids=lambda row: row.name)
def test_a_kept_invariant_has_a_mutant(row: Invariant) -> None:
    assert any(mutant.invariant == row.name for mutant in MUTANTS)


def test_kept_and_open_together_are_all() -> None:
    assert len(KEPT) + len(OPEN) == COUNT
