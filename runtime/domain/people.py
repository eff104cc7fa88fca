"""People, roles, chat bindings and pairing codes.

Numeric IDs are identity; names are display only. A role is read in the transaction that uses it
(INV-15). Pairing codes are stored as digests and are consumed once.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import IntEnum
from typing import Annotated, Final

from pydantic import Field

from runtime.domain.values import Digest, Id, Record, Tenant, UtcTime, sha256

PAIRING_VALID: Final = timedelta(hours=24)
CODE_CHARS_MAX: Final = 64


class Role(IntEnum):
    """What a person may do; each role includes the ones below it."""

    VIEWER = 1
    APPROVER = 2
    ADMIN = 3

    @property
    def word(self) -> str:
        """The role as people write it."""
        return self.name.lower()


class Member(Record):
    """One person's role in one tenant. `id` is `telegram:<numeric id>`."""

    id: Id
    role: Role
    display: Annotated[str, Field(max_length=200)]
    since: UtcTime
    by: Id


class Binding(Record):
    """Which tenant a chat works for. `id` is `telegram:<chat id>`."""

    id: Id
    tenant: Tenant
    by: Id
    since: UtcTime


class PairingCode(Record):
    """A one-time invitation. `id` is the SHA-256 of the code, which itself is never stored."""

    id: Digest
    tenant: Tenant
    role: Role
    by: Id
    expires_at: UtcTime
    used_by: Id | None = None
    used_at: UtcTime | None = None


@dataclass(frozen=True, slots=True)
class PairingRefused:
    """Why a code does not pair; said to the person in these words."""

    reason: str


def code_digest(code: str) -> str:
    """How a pairing code is stored and looked up."""
    return sha256(code.strip().encode())


def pair(code: PairingCode | None, person: str, now: datetime) -> PairingCode | PairingRefused:
    """Use a code once. The same person using it again finds the same result."""
    if code is None:
        return PairingRefused("this code is not known here")
    if code.used_by == person:
        return code
    if code.used_by is not None:
        return PairingRefused("this code has been used")
    if now >= code.expires_at:
        return PairingRefused("this code has expired")
    return code.model_copy(update={"used_by": person, "used_at": now})


def may(member: Member | None, role: Role) -> bool:
    """Whether a person has at least `role` here."""
    return member is not None and member.role >= role
