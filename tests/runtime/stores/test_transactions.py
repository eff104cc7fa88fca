"""The re-run loop: bounded in number and in time, with jitter, and silent about nothing."""

from __future__ import annotations

import pytest

from runtime.errors import Contention
from runtime.ports import Ask, Body, Commit, Key, Page, Reads
from runtime.stores.transactions import (
    AT_ONCE_MAX,
    ATTEMPTS_MAX,
    PAUSE_SECONDS_MAX,
    Ambiguous,
    Stale,
    Transactions,
)
from tests.conformance.stores import QuickClock, R, SeededIds, T


async def body(reads: Reads) -> Commit[int]:
    return Commit(0)


class NoReads:
    """These bodies read nothing."""

    async def get(self, key: Key[R]) -> R | None:
        pytest.fail(f"read {key}")

    async def find(self, ask: Ask[R]) -> Page[R]:
        pytest.fail(f"asked {ask}")


class Attempt:
    """Fails as told, then succeeds."""

    def __init__(self, clock: QuickClock, *faults: type[Exception], seconds: float = 0) -> None:
        self.clock = clock
        self.faults = list(faults)
        self.seconds = seconds
        self.at: list[float] = []

    async def __call__(self, body: Body[T]) -> T:
        self.at.append(self.clock.seconds)
        self.clock.seconds += self.seconds
        if self.faults:
            raise self.faults.pop(0)
        commit = await body(NoReads())
        return commit.outcome


async def test_conflicts_and_lost_replies_run_the_body_again() -> None:
    clock = QuickClock()
    attempt = Attempt(clock, Stale, Ambiguous, Stale)
    assert await Transactions(clock, SeededIds()).run(body, attempt) == 0
    assert len(attempt.at) == 4


async def test_the_first_runs_come_at_once_and_later_ones_with_a_bounded_pause() -> None:
    clock = QuickClock()
    attempt = Attempt(clock, *[Stale] * 30)
    await Transactions(clock, SeededIds()).run(body, attempt)
    pauses = [later - earlier for earlier, later in zip(attempt.at, attempt.at[1:], strict=False)]
    assert pauses[:AT_ONCE_MAX] == [0] * AT_ONCE_MAX
    assert all(0 < pause < PAUSE_SECONDS_MAX for pause in pauses[AT_ONCE_MAX:])
    assert len(set(pauses[AT_ONCE_MAX:])) == len(pauses[AT_ONCE_MAX:])


async def test_any_other_fault_is_raised_at_once() -> None:
    clock = QuickClock()
    attempt = Attempt(clock, Stale, KeyError)
    with pytest.raises(KeyError):
        await Transactions(clock, SeededIds()).run(body, attempt)
    assert len(attempt.at) == 2


@pytest.mark.parametrize(("seconds", "runs"), [(0.99, 4), (1.0, 3), (1.01, 3)])
async def test_no_run_starts_at_the_deadline_or_later(seconds: float, runs: int) -> None:
    clock = QuickClock()
    attempt = Attempt(clock, *[Stale] * 99, seconds=seconds)
    with pytest.raises(Contention) as caught:
        await Transactions(clock, SeededIds(), deadline_seconds=3).run(body, attempt)
    assert len(attempt.at) == caught.value.fields["attempts"] == runs


async def test_the_number_of_runs_is_bounded() -> None:
    clock = QuickClock()
    attempt = Attempt(clock, *[Stale] * (2 * ATTEMPTS_MAX))
    with pytest.raises(Contention) as caught:
        await Transactions(clock, SeededIds(), deadline_seconds=1e9).run(body, attempt)
    assert len(attempt.at) == caught.value.fields["attempts"] == ATTEMPTS_MAX
