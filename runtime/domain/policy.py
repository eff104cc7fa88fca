"""Policies: versioned rules that are read again at dispatch (INV-5).

Deterministic: the same policy and the same terms give the same answer.
"""

from __future__ import annotations

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


def forbids(policy: Policy, effect: str, text: str) -> str | None:
    """Why the policy forbids this effect with this text, or None."""
    if effect not in policy.allowed_effects:
        return f"policy {policy.version} does not allow {effect}"
    lowered = text.casefold()
    for term in policy.blocked_terms:
        if term.casefold() in lowered:
            return f"policy {policy.version} blocks the term “{term}”"
    return None
