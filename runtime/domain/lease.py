"""Leases of services: a poller, a projector, a scheduler is one at a time.

Clocks decide liveness only, and a lease is never authority: what a service writes is guarded by
what it reads in the same transaction, so two holders at once (a clock that jumped, a frozen
process) cost work and nothing else. The epoch, which only rises (INV-4), counts the holders.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from runtime.domain.values import Digest, Id, Record, UtcTime

SERVICE_LEASE: Final = timedelta(seconds=15)


class Lease(Record):
    """Who runs the service `id`, until when. `owner` is the digest of a random token."""

    id: Id
    owner: Digest
    epoch: int
    until: UtcTime


def take(
    existing: Lease | None, id_: str, owner: str, now: datetime, term: timedelta = SERVICE_LEASE
) -> Lease | None:
    """The lease after `owner` asked for it, or None while another holds it.

    The holder renews with the same epoch; a new holder gets the next one. At `until` exactly the
    lease is free.
    """
    if existing is None:
        return Lease(id=id_, owner=owner, epoch=1, until=now + term)
    if existing.owner == owner:
        return existing.model_copy(update={"until": max(existing.until, now + term)})
    if now < existing.until:
        return None
    return Lease(id=id_, owner=owner, epoch=existing.epoch + 1, until=now + term)


def free(existing: Lease, owner: str, now: datetime) -> Lease:
    """The lease after its holder gave it back; others' requests change nothing."""
    return existing.model_copy(update={"until": now}) if existing.owner == owner else existing
