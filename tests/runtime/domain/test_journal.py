"""The journal: a model call is the same if its operation, step and input are."""

from __future__ import annotations

from runtime.domain.journal import call_id


def test_a_call_is_named_by_operation_step_and_basis_alone() -> None:
    made = call_id("op", "read:1", "b")
    assert made == call_id("op", "read:1", "b")
    others = {
        call_id("op2", "read:1", "b"),
        call_id("op", "read:2", "b"),
        call_id("op", "read:1", "c"),
        call_id("opread:", "1", "b"),
    }
    assert made not in others
    assert len(others) == 4
