"""Values: scopes that cannot be forged, times whose text order is time order (INV-18)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from runtime.domain.lease import Lease
from runtime.domain.values import DIRECTORY, Fence, Id, Tenant, UtcTime, identity, short, time_text
from runtime.errors import BadInput

times = st.datetimes(min_value=datetime(1, 1, 2), max_value=datetime(9999, 12, 30))  # noqa: DTZ001 - hypothesis wants naive bounds
words = st.text(max_size=6)


@given(st.text(max_size=12), st.text(max_size=12))
def test_a_tenants_names_cannot_forge_a_path(workspace: str, brand: str) -> None:
    """INV-18: no name holds a separator, so two tenants never share a prefix of keys."""
    try:
        made = Tenant(workspace=workspace, brand=brand)
    except ValidationError:
        return
    assert made.path.split("/") == ["workspaces", workspace, "brands", brand]


@pytest.mark.parametrize("name", ["a/b", "", "a b", "..", "x" * 65, "a\n", "é"])
def test_a_name_outside_the_alphabet_is_refused(name: str) -> None:
    with pytest.raises(ValidationError):
        Tenant(workspace=name, brand="main")
    assert DIRECTORY.path == "directory"


@pytest.mark.parametrize("id_", ["a/b", "", "a b", "x" * 301, "a\n", "ü"])
def test_an_id_outside_the_alphabet_is_refused(id_: str) -> None:
    with pytest.raises(ValidationError):
        Fence(operation=id_, epoch=1)


def test_an_id_at_its_bound_is_accepted() -> None:
    assert TypeAdapter(Id).validate_python("x" * 300)


@given(times, times)
def test_text_order_is_time_order(one: datetime, other: datetime) -> None:
    first, second = one.replace(tzinfo=UTC), other.replace(tzinfo=UTC)
    assert (time_text(first) < time_text(second)) is (first < second)


def test_a_time_is_utc_with_microseconds_and_needs_a_zone() -> None:
    paris = datetime(2027, 1, 4, 10, tzinfo=timezone(timedelta(hours=1)))
    assert time_text(paris) == "2027-01-04T09:00:00.000000Z"
    read: TypeAdapter[datetime] = TypeAdapter(UtcTime)
    assert read.validate_python(paris).tzinfo is UTC
    with pytest.raises(ValidationError):
        read.validate_python(datetime(2027, 1, 4, 10))  # noqa: DTZ001 - the refused thing itself


@given(st.lists(words, max_size=4), st.lists(words, max_size=4))
def test_an_identity_depends_on_where_its_parts_end(one: list[str], other: list[str]) -> None:
    assert (identity(*one) == identity(*other)) is (one == other)


def test_people_compare_a_short_part_of_a_digest() -> None:
    assert short("abcdef0123") == "abcdef"


def test_a_record_is_frozen_and_refuses_unknown_fields() -> None:
    fence = Fence(operation="o", epoch=1)
    with pytest.raises(ValidationError):
        fence.epoch = 2  # type: ignore[misc]  # the refused thing itself
    with pytest.raises(ValidationError):
        Fence.model_validate({"operation": "o", "epoch": 1, "more": 1})


FENCE = Fence(operation="op", epoch=1)


@given(st.integers(), st.text(max_size=8))
def test_a_copy_is_what_the_constructor_would_make(epoch: int, operation: str) -> None:
    """A record is valid since it was made, also when it was made as a copy."""
    try:
        made = Fence(operation=operation, epoch=epoch)
    except ValidationError:
        with pytest.raises(BadInput):
            FENCE.model_copy(update={"operation": operation, "epoch": epoch})
        return
    copied = FENCE.model_copy(update={"operation": operation, "epoch": epoch})
    assert copied == made
    assert hash(copied) == hash(made)
    assert copied.model_dump_json() == made.model_dump_json()
    assert FENCE.epoch == 1


def test_a_copy_takes_no_field_that_is_not_there() -> None:
    with pytest.raises(BadInput) as refused:
        FENCE.model_copy(update={"epok": 2})
    assert refused.value.fields == {"record": "Fence", "field": "epok", "cause": "extra"}


def test_a_refused_copy_shows_no_value() -> None:
    """INV-20."""
    with pytest.raises(BadInput) as refused:
        FENCE.model_copy(update={"epoch": "a secret draft"})
    assert "secret" not in str(refused.value)


def test_a_copied_time_is_brought_to_utc() -> None:
    berlin = timezone(timedelta(hours=1))
    lease = Lease(id="l", owner="0" * 64, epoch=1, until=datetime(2027, 1, 1, tzinfo=UTC))
    later = lease.model_copy(update={"until": datetime(2027, 1, 1, 2, tzinfo=berlin)})
    assert later.until.utcoffset() == timedelta(0)
    assert later == Lease.model_validate_json(later.model_dump_json())
