"""The codec: versions are lifted step by step, and free fields are told from fixed ones."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from enum import StrEnum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from runtime.domain.values import Record
from runtime.errors import BadInput, RecordUnreadable
from runtime.ports import Collection
from runtime.stores.codec import Codec, Field, has_field, plain
from tests.conformance.records import ACME, LOOSE, TASKS, Loose, Tally, Task


class Third(Record):
    """The newest shape."""

    full_name: str
    score: int


THIRDS = Collection("thirds", Third, codec=3)
UPGRADES = {
    "thirds": {
        1: lambda old: {"full_name": old["name"]},
        2: lambda old: old | {"score": 0},
    }
}


def test_a_record_of_an_older_version_is_lifted_step_by_step() -> None:
    codec = Codec(THIRDS, UPGRADES)
    assert codec.decode("k", 1, b'{"name": "Ada"}') == Third(full_name="Ada", score=0)
    assert codec.decode("k", 2, b'{"full_name": "Ada"}') == Third(full_name="Ada", score=0)
    assert codec.decode("k", 3, b'{"full_name": "Ada", "score": 7}').score == 7


@pytest.mark.parametrize(
    ("version", "body", "cause"),
    [
        (4, b'{"full_name": "Ada", "score": 7}', "codec version 4; this one knows 1 to 3"),
        (0, b"{}", "codec version 0"),
        ("1", b"{}", "codec version str"),
        (None, b"{}", "codec version NoneType"),
        (1, b"{", "invalid JSON"),
        (1, b"{}", "the upgrade of version 1 failed with KeyError"),
        (1, b"[]", "the upgrade of version 1 failed with TypeError"),
        (2, b'{"name": "s3cret"}', "missing at full_name and 1 more"),
        (3, None, "json_type at the top"),
        (3, 5, "json_type at the top"),
    ],
)
def test_what_no_version_accepts_is_unreadable(version: object, body: object, cause: str) -> None:
    with pytest.raises(RecordUnreadable) as caught:
        Codec(THIRDS, UPGRADES).decode("k", version, body)
    assert cause in str(caught.value.fields["cause"])
    assert "s3cret" not in str(caught.value)


def test_a_codec_without_all_its_upgrades_is_refused_when_it_is_made() -> None:
    with pytest.raises(BadInput, match=r"no upgrade of versions \[2\]"):
        Codec(THIRDS, {"thirds": {1: UPGRADES["thirds"][1]}})


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner, max_size=4)
    ),
    max_leaves=20,
)


@given(st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), JSON, max_size=5))
def test_any_json_comes_back_identical(data: dict[str, Any]) -> None:
    codec = Codec(LOOSE)
    body, back = codec.encode(LOOSE.key(ACME, "l"), Loose(data=data))
    assert repr(codec.decode("k", 1, body)) == repr(back) == repr(Loose(data=data))


class Listed(Record):
    """A list: fixed in type, not in content."""

    names: list[str]


class Fixed(Record):
    """Tuples all the way."""

    names: tuple[tuple[str, int], ...]
    inner: Third | None = None


class Free(Record):
    """Free below a fixed level."""

    inner: tuple[Loose, ...]


class Jsonic(Record):
    """Any JSON."""

    value: JsonValue


class Measured(Record):
    """A fraction."""

    value: float


@pytest.mark.parametrize(
    ("record", "shareable"),
    [
        (Fixed, True),
        (Third, True),
        (Task, True),
        (Listed, False),
        (Free, False),
        (Jsonic, False),
        (Measured, False),
        (Loose, False),
    ],
)
def test_only_records_that_cannot_change_are_shared(
    record: type[Record], *, shareable: bool
) -> None:
    assert Codec(Collection("c", record)).shareable is shareable


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_a_fraction_that_json_lacks_is_refused(value: float) -> None:
    measured = Collection("measured", Measured)
    with pytest.raises(BadInput):
        Codec(measured).encode(measured.key(ACME, "m"), Measured(value=value))


class Mood(StrEnum):
    """A word."""

    CALM = "calm"


class Mixed(Record):
    """A field of each kind that a query may compare, and one that it may not."""

    text: str = "x"
    mood: Mood = Mood.CALM
    flag: bool = True
    number: int = 3
    nothing: str | None = None
    names: tuple[str, ...] = ("a",)
    inner: Tally = Tally(value=4)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("text", "x"),
        ("mood", "calm"),
        ("flag", 1),
        ("number", 3),
        ("nothing", None),
        ("nothing.more", None),
        ("inner.value", 4),
        ("inner.other", None),
        ("text.upper", None),
    ],
)
def test_a_queried_field_is_read_as_stores_compare_it(path: str, value: object) -> None:
    found = Field(path).read(Mixed())
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize("path", ["names", "inner"])
def test_a_field_that_has_no_order_cannot_be_queried(path: str) -> None:
    with pytest.raises(BadInput, match=path):
        Field(path).read(Mixed())


@pytest.mark.parametrize(
    ("number", "accepted"), [(2**53 - 1, True), (2**53, False), (-(2**53), False)]
)
def test_a_queried_number_fits_every_store(number: int, *, accepted: bool) -> None:
    if accepted:
        assert Field("number").read(Mixed(number=number)) == number
        return
    with pytest.raises(BadInput, match="number"):
        Field("number").read(Mixed(number=number))


def test_a_declared_path_must_exist_in_some_state() -> None:
    assert has_field(Task, "state.ready_at")
    assert has_field(Task, "state.at")
    assert has_field(Task, "state")
    assert not has_field(Task, "state.until")
    assert not has_field(Task, "stat.at")
    assert not has_field(Task, "rank.more")
    assert TASKS.record is Task


def test_query_values_are_compared_as_text_in_time_order() -> None:
    zone = timezone(timedelta(hours=2))
    assert plain(datetime(2027, 1, 4, 11, tzinfo=zone)) == "2027-01-04T09:00:00.000000Z"
    assert plain(True) == 1
    with pytest.raises(BadInput):
        plain(datetime(2027, 1, 4, 11))  # noqa: DTZ001 - the refused case
