"""People: codes that pair once, roles that include the ones below, chats that move."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from runtime.domain import people
from runtime.domain.people import (
    Binding,
    Member,
    PairingCode,
    PairingRefused,
    Role,
    code_digest,
    enrol,
    may,
    pair,
    tenant_of,
)
from runtime.domain.values import Tenant

NOW = datetime(2027, 1, 4, 9, 0, tzinfo=UTC)
ACME = Tenant(workspace="acme", brand="main")


def code(**changes: object) -> PairingCode:
    made = PairingCode(
        id=code_digest("abc"), tenant=ACME, role=Role.APPROVER, by="harmonia", expires_at=NOW
    )
    return made.model_copy(update=changes)


def member(role: Role) -> Member:
    return Member(id="telegram:1", role=role, display="Ana", since=NOW, by="harmonia")


def test_a_code_is_looked_up_by_its_digest_without_blanks_around_it() -> None:
    assert code_digest(" abc\n") == code_digest("abc")
    assert code_digest("abc") != code_digest("ABC")


@pytest.mark.parametrize(("early", "pairs"), [(1, True), (0, False), (-1, False)])
def test_a_code_ends_exactly_at_its_time(early: int, *, pairs: bool) -> None:
    used = pair(code(), "telegram:1", NOW - timedelta(microseconds=early))
    assert isinstance(used, PairingCode) is pairs


def test_a_code_pairs_one_person_and_says_so_to_the_same_one_again() -> None:
    before = NOW - timedelta(hours=1)
    used = pair(code(), "telegram:1", before)
    assert isinstance(used, PairingCode)
    assert (used.used_by, used.used_at) == ("telegram:1", before)
    assert pair(used, "telegram:1", NOW + timedelta(days=1)) == used
    refused = pair(used, "telegram:2", before)
    assert refused == PairingRefused("this code has been used")


def test_an_unknown_code_is_refused() -> None:
    assert isinstance(pair(None, "telegram:1", NOW), PairingRefused)


@pytest.mark.parametrize("needed", list(Role))
@pytest.mark.parametrize("role", list(Role))
def test_each_role_includes_the_ones_below(role: Role, needed: Role) -> None:
    assert may(member(role), needed) is (role >= needed)
    assert not may(None, needed)


@pytest.mark.parametrize("role", list(Role))
def test_a_code_never_lowers_a_role(role: Role) -> None:
    again = enrol(member(role), code(), "telegram:1", NOW)
    assert again.role == max(role, Role.APPROVER)
    assert again.display == "Ana"


def test_a_new_member_is_shown_by_number_until_a_name_is_known() -> None:
    assert enrol(None, code(), "telegram:77", NOW).display == "77"


def test_a_chat_that_moved_speaks_for_nobody_and_its_successor_for_the_tenant() -> None:
    binding = Binding(id="telegram:-5", tenant=ACME, by="telegram:1", since=NOW)
    old, new = people.move(binding, "telegram:-1005", NOW)
    assert tenant_of(binding) == tenant_of(new) == ACME
    assert tenant_of(old) is None
    assert tenant_of(None) is None


def test_the_first_loss_counts_until_the_chat_is_heard_again() -> None:
    binding = Binding(id="telegram:1", tenant=ACME, by="telegram:1", since=NOW)
    lost = people.lose(binding, "blocked", NOW)
    assert people.lose(lost, "again", NOW + timedelta(days=1)) == lost
    assert people.regain(lost) == binding
