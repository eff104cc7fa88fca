"""Canonical JSON: equal to RFC 8785 on our subset, and nothing outside it is hashed."""

from __future__ import annotations

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from runtime.domain.canonical import (
    DEPTH_MAX,
    INTEGER_MAX,
    canonical_bytes,
    canonical_digest,
    canonical_text,
)
from runtime.domain.values import Tenant, identity
from runtime.errors import NotCanonical

ascii_keys = st.text(st.characters(codec="ascii"), max_size=8)
texts = st.text(st.characters(codec="utf-8"), max_size=12)
leaves = st.none() | st.booleans() | st.integers(-INTEGER_MAX, INTEGER_MAX) | texts
values = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(ascii_keys, inner, max_size=4),
    max_leaves=20,
)


@given(values)
def test_the_bytes_are_those_of_rfc_8785(value: object) -> None:
    assert canonical_bytes(value) == rfc8785.dumps(value)  # type: ignore[arg-type] # plain JSON
    assert canonical_text(value).encode() == canonical_bytes(value)


@given(st.dictionaries(ascii_keys, leaves, min_size=2, max_size=6))
def test_the_order_of_keys_does_not_matter(value: dict[str, object]) -> None:
    turned = dict(reversed(list(value.items())))
    assert canonical_digest(value) == canonical_digest(turned)


@pytest.mark.parametrize(
    ("value", "where"),
    [
        (1.5, "$"),
        ({"a": [1, 2.0]}, "$.a[1]"),
        ({"ключ": 1}, "$"),
        ({1: 2}, "$"),
        ("\ud800", "$"),
        (b"bytes", "$"),
        ({"a": {1, 2}}, "$.a"),
    ],
)
def test_values_without_canonical_bytes_are_refused_by_path(value: object, where: str) -> None:
    with pytest.raises(NotCanonical) as refused:
        canonical_bytes(value)
    assert refused.value.fields["path"] == where


@pytest.mark.parametrize(("offset", "fine"), [(-1, True), (0, True), (1, False)])
def test_integers_end_where_doubles_stop_being_exact(offset: int, fine: bool) -> None:
    for sign in (1, -1):
        value = sign * (INTEGER_MAX + offset)
        if fine:
            assert canonical_bytes(value) == str(value).encode()
        else:
            with pytest.raises(NotCanonical):
                canonical_bytes(value)


@pytest.mark.parametrize(("offset", "fine"), [(-1, True), (0, True), (1, False)])
def test_nesting_is_bounded(offset: int, fine: bool) -> None:
    value: object = 1
    for _ in range(DEPTH_MAX + offset):
        value = [value]
    if fine:
        assert canonical_bytes(value)
    else:
        with pytest.raises(NotCanonical):
            canonical_bytes(value)


def test_a_record_is_hashed_by_its_fields() -> None:
    tenant = Tenant(workspace="a", brand="b")
    assert canonical_bytes(tenant) == b'{"brand":"b","workspace":"a"}'


@given(st.lists(texts, max_size=4), st.lists(texts, max_size=4))
def test_identities_do_not_shift_borders(one: list[str], two: list[str]) -> None:
    assert (identity(*one) == identity(*two)) == (one == two)
