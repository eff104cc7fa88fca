"""Policies: versioned rules that are read again at dispatch (INV-5).

Deterministic: the same policy and the same terms give the same answer.
"""

from __future__ import annotations

import unicodedata
from datetime import timedelta
from typing import Annotated, Final

from pydantic import Field

from runtime.domain.values import Record, UtcTime

DECIDE_WITHIN: Final = timedelta(days=7)
VALID_FOR: Final = timedelta(days=2)


class Policy(Record):
    """What a tenant allows. `id` is always "current"; each change raises `version`."""

    id: str = "current"
    version: Annotated[int, Field(ge=1)] = 1
    allowed_effects: tuple[str, ...] = ("content_pack.export",)
    approvals_needed: Annotated[int, Field(ge=1, le=9)] = 1
    decide_within: timedelta = DECIDE_WITHIN
    valid_for: timedelta = VALID_FOR
    blocked_terms: tuple[str, ...] = ()
    since: UtcTime


def plain(text: str) -> str:
    """The text as a reader sees it: one spelling of each character, nothing invisible."""
    spelled = unicodedata.normalize("NFKC", text).casefold()
    return "".join(char for char in spelled if unicodedata.category(char) != "Cf")


def forbids(policy: Policy, effect: str, text: str) -> str | None:
    """Why the policy forbids this effect with this text, or None."""
    if effect not in policy.allowed_effects:
        return f"policy {policy.version} does not allow {effect}"
    if not policy.blocked_terms:
        return None
    read = plain(text)
    for term in policy.blocked_terms:
        if (looked_for := plain(term)) and looked_for in read:
            return f"policy {policy.version} blocks the term “{term}”"
    return None
