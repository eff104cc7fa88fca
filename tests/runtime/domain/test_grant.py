"""Grants: tokens that say nothing, fit anywhere, and end exactly."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.domain.grant import CALLBACK_BYTES_MAX, Grant, grant_id, token, usable
from runtime.domain.people import Role

NOW = datetime(2027, 1, 4, 9, 0, tzinfo=UTC)
SECRET = b"a secret of the instance"
PART = st.text(st.characters(codec="utf-8", exclude_characters="\x1f"), max_size=300)


@given(PART, PART, PART, PART)
def test_every_token_fits_callback_data(action: str, subject: str, digest: str, to: str) -> None:
    """Case 9: bytes are counted, not characters."""
    made = token(SECRET, action, subject, digest, to)
    assert made.isascii()
    assert len(made.encode()) == 32 <= CALLBACK_BYTES_MAX
    assert token(SECRET, action, subject, digest, to) == made
    assert len(grant_id(made)) == 64


def test_each_part_of_a_grant_changes_its_token() -> None:
    made = {
        token(SECRET, "approve", "a", "d", "telegram:1"),
        token(SECRET, "reject", "a", "d", "telegram:1"),
        token(SECRET, "approve", "b", "d", "telegram:1"),
        token(SECRET, "approve", "a", "e", "telegram:1"),
        token(SECRET, "approve", "a", "d", "telegram:2"),
        token(b"another secret", "approve", "a", "d", "telegram:1"),
    }
    assert len(made) == 6


@pytest.mark.parametrize(("early", "works"), [(1, True), (0, False), (-1, False)])
def test_a_button_ends_exactly_at_its_time(early: int, *, works: bool) -> None:
    grant = Grant(
        id=grant_id("t"),
        action="show",
        subject="a",
        digest=None,
        role=Role.VIEWER,
        destination="telegram:1",
        expires_at=NOW,
    )
    assert usable(grant, NOW - timedelta(microseconds=early)) is works
    assert not usable(None, NOW)
