"""Service leases: one holder at a time, epochs that only rise."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.domain import lease as leases
from runtime.domain.lease import SERVICE_LEASE, Lease
from runtime.domain.values import sha256
from tests.world import START

ONE, TWO = sha256(b"one"), sha256(b"two")
TICK = timedelta(microseconds=1)


def held_by_one() -> Lease:
    lease = leases.take(None, "projector", ONE, START)
    assert lease is not None
    return lease


@pytest.mark.parametrize(("offset", "free"), [(-TICK, False), (0 * TICK, True), (TICK, True)])
def test_a_lease_is_free_for_others_at_its_end(offset: timedelta, free: bool) -> None:
    taken = leases.take(held_by_one(), "projector", TWO, START + SERVICE_LEASE + offset)
    assert (taken is not None) is free


def test_renewing_keeps_the_epoch_and_a_new_holder_raises_it() -> None:
    renewed = leases.take(held_by_one(), "projector", ONE, START + SERVICE_LEASE / 2)
    assert renewed is not None
    assert renewed.epoch == 1
    other = leases.take(renewed, "projector", TWO, renewed.until)
    assert other is not None
    assert other.epoch == 2


def test_only_the_holder_gives_a_lease_back() -> None:
    lease = held_by_one()
    assert leases.free(lease, TWO, START) == lease
    assert leases.take(leases.free(lease, ONE, START), "projector", TWO, START) is not None


@given(st.lists(st.tuples(st.sampled_from([ONE, TWO]), st.integers(0, 40)), max_size=30))
def test_two_owners_never_hold_at_once_and_epochs_never_fall(asks: list[tuple[str, int]]) -> None:
    lease: Lease | None = None
    now = START
    for owner, seconds in asks:
        now += timedelta(seconds=seconds)
        taken = leases.take(lease, "projector", owner, now)
        if taken is not None:
            if lease is not None:
                assert taken.epoch >= lease.epoch
                assert owner == lease.owner or now >= lease.until
                assert (taken.epoch == lease.epoch) is (owner == lease.owner)
            lease = taken
        else:
            assert lease is not None
            assert owner != lease.owner
            assert now < lease.until
