"""Policies: the same rules and the same words give the same answer (INV-5)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from runtime.domain.policy import Policy, forbids
from tests.world import START

EXPORT = "content_pack.export"


def policy(**changes: object) -> Policy:
    return Policy(since=START).model_copy(update=changes)


def test_only_listed_effects_are_allowed() -> None:
    assert forbids(policy(), EXPORT, "text") is None
    found = forbids(policy(version=3), "x.post", "text")
    assert found == "policy 3 does not allow x.post"
    assert forbids(policy(allowed_effects=()), EXPORT, "text") is not None


@pytest.mark.parametrize(
    ("term", "text"),
    [
        ("free", "It is FREE."),
        ("straße", "Die STRASSE"),
        ("БЕСПЛАТНО", "всё бесплатно"),
        ("guaranteed results", "our Guaranteed Results now"),
    ],
)
def test_a_blocked_term_is_found_in_any_case(term: str, text: str) -> None:
    found = forbids(policy(blocked_terms=("other", term)), EXPORT, text)
    assert found is not None
    assert term in found


@given(st.lists(st.text(min_size=1, max_size=5), max_size=4), st.text(max_size=40))
def test_text_is_forbidden_exactly_if_it_holds_a_blocked_term(terms: list[str], text: str) -> None:
    holds = any(term.casefold() in text.casefold() for term in terms)
    rules = policy(blocked_terms=tuple(terms))
    assert (forbids(rules, EXPORT, text) is not None) is holds
    assert forbids(rules, EXPORT, text) == forbids(rules, EXPORT, text)


@pytest.mark.parametrize(("needed", "accepted"), [(0, False), (1, True), (9, True), (10, False)])
def test_the_number_of_approvers_has_bounds(needed: int, accepted: bool) -> None:
    if accepted:
        assert Policy(since=START, approvals_needed=needed).approvals_needed == needed
    else:
        with pytest.raises(ValidationError):
            Policy(since=START, approvals_needed=needed)


WIDE = "".join(chr(ord(char) + 0xFEE0) for char in "guaranteed")


@pytest.mark.parametrize(
    "text", ["GUARANTEED", "gua\u200branteed", WIDE, "guarant\u00adeed", "Guaranteed"]
)
def test_a_blocked_term_is_found_however_it_is_spelled(text: str) -> None:
    policy = Policy(since=START, blocked_terms=("guaranteed",))
    assert forbids(policy, "content_pack.export", f"a {text} b") is not None


def test_composed_and_decomposed_letters_are_the_same_term() -> None:
    policy = Policy(since=START, blocked_terms=("cafe\u0301",))
    assert forbids(policy, "content_pack.export", "CAFÉ") is not None
    assert forbids(policy, "content_pack.export", "cafe") is None
