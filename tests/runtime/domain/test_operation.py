"""Operations: claims, leases, epochs and what a fence may do."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.domain import operation as operations
from runtime.domain.operation import (
    ATTEMPTS_MAX,
    LEASE,
    RETRY_CEILING,
    TRANSITIONS,
    Cancelled,
    Claimed,
    Failed,
    Goal,
    Operation,
    OperatorRequired,
    Pending,
    Refused,
    Succeeded,
    Waiting,
)
from runtime.domain.values import Fence, sha256
from tests.world import START

OWNER, OTHER = sha256(b"one"), sha256(b"two")
TICK = timedelta(microseconds=1)


def pending(**changes: object) -> Operation:
    made = Operation(
        id="op",
        kind="stage.read",
        goal=Goal(kind="stage.read", digest=sha256(b"goal")),
        acceptance=("done",),
        correlation="c",
        lane="chat",
        in_lane="chat",
        created_at=START,
        state=Pending(ready_at=START),
    )
    return made.model_copy(update=changes)


def claimed() -> Operation:
    taken = operations.claim(pending(), OWNER, START)
    assert isinstance(taken, Operation)
    return taken


def test_a_claim_raises_epoch_and_attempt_by_one() -> None:
    taken = claimed()
    assert (taken.epoch, taken.attempt) == (1, 1)
    assert taken.state == Claimed(owner=OWNER, claimed_at=START, until=START + LEASE)


@pytest.mark.parametrize(("early", "claimable"), [(TICK, False), (0 * TICK, True), (-TICK, True)])
def test_an_operation_is_claimable_from_its_ready_time_on(
    early: timedelta, claimable: bool
) -> None:
    found = operations.claim(pending(), OWNER, START - early)
    assert isinstance(found, Operation) is claimable


@pytest.mark.parametrize(("late", "claimable"), [(-TICK, True), (0 * TICK, False), (TICK, False)])
def test_an_operation_is_not_started_at_its_deadline(late: timedelta, claimable: bool) -> None:
    deadline = START + timedelta(hours=1)
    found = operations.claim(pending(deadline=deadline), OWNER, deadline + late)
    assert isinstance(found, Operation) is claimable
    assert (operations.exhausted(pending(deadline=deadline), deadline + late) is None) is claimable


@pytest.mark.parametrize(
    ("spent", "claimable"),
    [(ATTEMPTS_MAX - 1, True), (ATTEMPTS_MAX, False), (ATTEMPTS_MAX + 1, False)],
)
def test_the_retry_budget_bounds_the_claims(spent: int, claimable: bool) -> None:
    found = operations.claim(pending(attempt=spent), OWNER, START)
    assert isinstance(found, Operation) is claimable
    assert (operations.exhausted(pending(attempt=spent), START) is None) is claimable


def test_a_live_or_expired_claim_is_not_taken_by_another() -> None:
    taken = claimed()
    for when in (START, START + LEASE, START + 2 * LEASE):
        assert isinstance(operations.claim(taken, OTHER, when), Refused)


def test_a_fence_writes_only_while_claimed_at_its_epoch() -> None:
    taken = claimed()
    assert operations.fenced(taken, taken.fence) == taken
    assert isinstance(operations.fenced(None, taken.fence), Refused)
    assert isinstance(operations.fenced(taken, Fence(operation="op", epoch=0)), Refused)
    assert isinstance(operations.fenced(taken, Fence(operation="op", epoch=2)), Refused)
    done = operations.succeed(taken, START)
    assert isinstance(operations.fenced(done, taken.fence), Refused)


def test_a_fence_does_not_look_at_the_clock() -> None:
    taken = claimed()
    assert operations.lease_expired(taken, START + LEASE)
    assert operations.fenced(taken, taken.fence) == taken


@pytest.mark.parametrize(("offset", "expired"), [(-TICK, False), (0 * TICK, True), (TICK, True)])
def test_a_lease_has_run_out_at_its_end(offset: timedelta, expired: bool) -> None:
    assert operations.lease_expired(claimed(), START + LEASE + offset) is expired


def test_a_lease_never_shrinks() -> None:
    taken = claimed()
    later = operations.renew(taken, START + LEASE / 2)
    assert isinstance(later.state, Claimed)
    assert later.state.until == START + LEASE / 2 + LEASE
    assert operations.renew(later, START) == later
    assert operations.renew(pending(), START) == pending()


def test_leaving_an_operation_frees_its_lane() -> None:
    taken = claimed()
    for left in (
        operations.succeed(taken, START),
        operations.fail(taken, "why", START),
        operations.wait(taken, "approval", START + LEASE),
        operations.require_operator(taken, "why", START),
    ):
        assert left.in_lane is None
    assert operations.release(taken, START).in_lane == "chat"
    for left in (operations.succeed(taken, START), operations.wait(taken, "a", START)):
        assert operations.release(left, START) == left


def test_waking_gives_a_fresh_retry_budget_and_keeps_the_epoch() -> None:
    waiting = operations.wait(claimed(), "approval", START + LEASE)
    woken = operations.wake(waiting, START)
    assert (woken.attempt, woken.epoch) == (0, 1)
    assert woken.state == Pending(ready_at=START)
    done = operations.succeed(claimed(), START)
    assert operations.wake(done, START) == done


@given(st.integers(min_value=-5, max_value=10_000))
def test_retry_delays_rise_to_a_ceiling(attempt: int) -> None:
    delay = operations.retry_delay(attempt)
    assert timedelta(0) < delay <= RETRY_CEILING
    assert delay <= operations.retry_delay(attempt + 1)


STATES = {
    "pending": Pending(ready_at=START),
    "claimed": Claimed(owner=OWNER, claimed_at=START, until=START + LEASE),
    "waiting": Waiting(on="x", until=START),
    "succeeded": Succeeded(at=START),
    "failed": Failed(at=START, reason="r"),
    "cancelled": Cancelled(at=START, reason="r"),
    "operator_required": OperatorRequired(at=START, reason="r"),
}


@given(st.sampled_from(sorted(STATES)), st.integers(0, 6))
def test_every_move_is_in_the_table_and_terminal_states_absorb(start: str, move: int) -> None:
    before = pending(state=STATES[start], epoch=3, attempt=1)
    after = (
        operations.succeed(before, START),
        operations.fail(before, "r", START),
        operations.cancel(before, "r", START),
        operations.require_operator(before, "r", START),
        operations.wait(before, "x", START),
        operations.wake(before, START),
        before if isinstance(taken := operations.claim(before, OWNER, START), Refused) else taken,
    )[move]
    assert after.epoch >= before.epoch
    if after.state != before.state:
        assert after.state.name in TRANSITIONS[before.state.name]
    if before.finished:
        assert after == before
