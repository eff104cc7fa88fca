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
    """Which tenant a chat works for. `id` is `telegram:<chat id>`.

    `moved_to` is the chat that took over (a group became a supergroup): from then on the old chat
    grants nothing and what was meant for it goes there. `unreachable` says since when the chat
    does not accept messages, and why.
    """

    id: Id
    tenant: Tenant
    by: Id
    since: UtcTime
    moved_to: Id | None = None
    unreachable_since: UtcTime | None = None
    unreachable: Annotated[str, Field(max_length=300)] = ""


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


def enrol(known: Member | None, code: PairingCode, person: str, now: datetime) -> Member:
    """The member after a code was used. A code never lowers a role."""
    if known is not None:
        return known.model_copy(update={"role": max(known.role, code.role)})
    display = person.rpartition(":")[2]
    return Member(id=person, role=code.role, display=display, since=now, by=code.by)


def tenant_of(binding: Binding | None) -> Tenant | None:
    """Which tenant a chat may speak for now; a chat that moved speaks for none."""
    return None if binding is None or binding.moved_to is not None else binding.tenant


def move(binding: Binding, to: str, now: datetime) -> tuple[Binding, Binding]:
    """The old and the new binding after a chat went on under another ID."""
    old = binding.model_copy(update={"moved_to": to})
    new = Binding(id=to, tenant=binding.tenant, by=binding.by, since=now)
    return old, new


def lose(binding: Binding, reason: str, now: datetime) -> Binding:
    """The chat does not accept messages any more; the first time counts."""
    if binding.unreachable_since is not None:
        return binding
    return binding.model_copy(update={"unreachable_since": now, "unreachable": reason[:300]})


def regain(binding: Binding) -> Binding:
    """The chat was heard again."""
    return binding.model_copy(update={"unreachable_since": None, "unreachable": ""})


def may(member: Member | None, role: Role) -> bool:
    """Whether a person has at least `role` here."""
    return member is not None and member.role >= role
