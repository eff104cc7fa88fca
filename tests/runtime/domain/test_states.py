"""The page of states is what the tables say, and the tables name only states that exist."""

from __future__ import annotations

import subprocess
import sys

import pytest

from runtime.domain.states import HEAD, LIFECYCLES, members, render, summary
from runtime.domain.values import Record


@pytest.mark.parametrize(("title", "union", "table"), LIFECYCLES, ids=lambda row: str(row)[:12])
def test_a_table_names_each_state_of_its_union_and_no_other(
    title: str, union: object, table: dict[str, tuple[str, ...]]
) -> None:
    kinds = members(union)
    assert set(table) == set(kinds), title
    assert {name for following in table.values() for name in following} <= set(kinds)
    assert all(summary(kind) for kind in kinds.values())


def test_the_page_shows_every_transition() -> None:
    page = render()
    assert page.startswith(HEAD.splitlines()[0])
    for title, _, table in LIFECYCLES:
        assert f"## {title}" in page
        for name, following in table.items():
            assert f"| {name} | {', '.join(following) or '—'} |" in page


def test_a_meaning_cannot_break_its_table() -> None:
    class Odd(Record):
        """One | two.

        Three.
        """

    assert summary(Odd) == "One \\| two."


@pytest.mark.processes
def test_the_command_prints_the_page() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "runtime.domain.states"], capture_output=True, check=True
    )
    assert done.stdout.decode() == render()
