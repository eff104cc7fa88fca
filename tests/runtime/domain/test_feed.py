"""The feed's records: sequence numbers and ranks whose text order is their order (INV-13)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import get_args

from hypothesis import given
from hypothesis import strategies as st

from runtime.domain.feed import PRIORITY, ItemKind, change_id, item_id, rank

kinds = st.sampled_from(get_args(ItemKind))
times = st.datetimes(
    min_value=datetime(2001, 9, 10),  # noqa: DTZ001 - hypothesis wants naive bounds
    max_value=datetime(2286, 1, 1),  # noqa: DTZ001 - as above
    timezones=st.just(UTC),
)


@given(st.integers(0, 10**16 - 1), st.integers(0, 10**16 - 1))
def test_the_text_order_of_changes_is_their_sequence(one: int, other: int) -> None:
    assert (change_id(one) < change_id(other)) is (one < other)


@given(kinds, times, kinds, times)
def test_items_order_by_priority_then_age(
    kind: ItemKind, at: datetime, other: ItemKind, later: datetime
) -> None:
    one = (-PRIORITY[kind], at)
    two = (-PRIORITY[other], later)
    assert (rank(kind, at) < rank(other, later)) is (one < two)


def test_every_kind_has_a_priority_and_an_uncertain_effect_comes_first() -> None:
    assert set(PRIORITY) == set(get_args(ItemKind))
    assert max(PRIORITY, key=lambda kind: PRIORITY[kind]) == "uncertain_effect"


def test_there_is_one_item_for_a_kind_and_a_subject() -> None:
    assert item_id("approval", "a:1") == "approval:a:1"
    assert item_id("approval", "a") != item_id("escalation", "a")
