"""Grants: what a button may do, for whom, until when.

A button carries only an opaque token. The token is an HMAC of the grant's content under a secret
that is not in the store, so cards can be rendered again to the same bytes; the grant itself is
stored under the token's digest. Nothing about the effect or the tenant comes from the client.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from datetime import datetime
from typing import Annotated, Final, Literal

from pydantic import Field

from runtime.domain.people import Role
from runtime.domain.values import Digest, Id, Record, UtcTime, identity, sha256

TOKEN_BYTES: Final = 24
CALLBACK_BYTES_MAX: Final = 64
"""The Bot API's limit for callback data."""

GrantAction = Literal["approve", "reject", "edit", "show", "open", "abandon", "retry", "stop"]


class Grant(Record):
    """What one button may do. `id` is the SHA-256 of its token."""

    id: Digest
    action: GrantAction
    subject: Annotated[str, Field(max_length=300)]
    digest: Digest | None
    """The digest that was shown with the button, where the action decides about content."""
    role: Role
    destination: Id
    expires_at: UtcTime


def token(secret: bytes, action: str, subject: str, digest: str, destination: str) -> str:
    """The button's callback data: 32 characters, unguessable, the same on every rendering."""
    parts = identity(action, subject, digest, destination).encode()
    mac = hmac.new(secret, parts, hashlib.sha256).digest()[:TOKEN_BYTES]
    return base64.urlsafe_b64encode(mac).decode()


def grant_id(callback_data: str) -> str:
    """Where the grant of a token is stored."""
    return sha256(callback_data.encode())


def usable(grant: Grant | None, now: datetime) -> bool:
    """Whether the button still works at all; at `expires_at` exactly it does not."""
    return grant is not None and now < grant.expires_at
