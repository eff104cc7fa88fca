"""Marks: what a commit changed is said in the same commit, in its own tenant."""

from __future__ import annotations

from runtime.engine.marks import dirty
from tests.world import ACME, OTHER, START


def test_a_mark_stands_in_the_tenant_of_what_it_marks() -> None:
    here = dirty(ACME, "job", "job-1", START, "a")
    there = dirty(OTHER, "job", "job-1", START, "a")
    assert here.key.scope == ACME
    assert here.key != there.key
    assert here.record.subject == "job-1"


def test_a_later_mark_of_one_subject_replaces_the_earlier_and_differs_from_it() -> None:
    first = dirty(ACME, "job", "job-1", START, "a")
    second = dirty(ACME, "job", "job-1", START, "b")
    assert first.key == second.key
    assert first.record != second.record
