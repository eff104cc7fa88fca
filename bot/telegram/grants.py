"""Grants: the buttons of a card get their tokens, and each token its stored grant.

Keeps: callback data is an opaque token of at most 64 bytes; what it may do is stored in the commit
that begins to send the card, before anybody can press it.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from bot.telegram.view import Offer, View
from runtime.domain.grant import CALLBACK_BYTES_MAX, Grant, grant_id, token
from runtime.errors import InvariantBroken
from runtime.ports import Button, Content

GRANT_KEY: Final = "grant-key"
"""The secret's name in the Secrets port."""
VALID_FOR: Final = timedelta(days=30)
"""For buttons whose subject has no end of its own."""
TRUTH_FOR: Final = timedelta(days=30)
"""A decision's buttons outlive its deadline, so that a late press is told what happened."""


def invitation_code(key: bytes, operation: str) -> str:
    """The pairing code that an operation made: shown by its card, stored nowhere."""
    mac = hmac.new(key, f"invitation\x1f{operation}".encode(), hashlib.sha256).digest()
    return base64.b32encode(mac[:10]).decode().lower()


def with_buttons(
    view: View, key: bytes, destination: str, now: datetime
) -> tuple[Content, tuple[Grant, ...]]:
    """The view's content with its buttons, and their grants."""
    rows: list[tuple[Button, ...]] = []
    grants: list[Grant] = []
    ends = now + VALID_FOR if view.expires_at is None else view.expires_at + TRUTH_FOR
    for offers in view.offers:
        row = [_button(offer, key, destination) for offer in offers]
        rows.append(tuple(row))
        grants += [
            _grant(offer, button.data, destination, ends)
            for offer, button in zip(offers, row, strict=True)
        ]
    return replace(view.content, buttons=tuple(rows)), tuple(grants)


def _button(offer: Offer, key: bytes, destination: str) -> Button:
    data = token(key, offer.action, offer.subject, offer.digest or "", destination)
    if len(data.encode()) > CALLBACK_BYTES_MAX:
        raise InvariantBroken(invariant="S19", detail=f"callback data of {len(data)} characters")
    return Button(offer.label, data)


def _grant(offer: Offer, data: str, destination: str, ends: datetime) -> Grant:
    return Grant(
        id=grant_id(data),
        action=offer.action,
        subject=offer.subject,
        digest=offer.digest,
        role=offer.role,
        destination=destination,
        expires_at=ends,
    )
