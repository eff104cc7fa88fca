"""The real clock and the real randomness behave as their ports promise."""

from __future__ import annotations

import re
from datetime import UTC

from runtime.domain.values import Fence
from runtime.system import SystemClock, SystemIds


async def test_the_clock_is_utc_and_its_monotonic_time_never_goes_back() -> None:
    clock = SystemClock()
    assert clock.now().tzinfo is UTC
    before = clock.monotonic()
    await clock.sleep(0)
    assert clock.monotonic() >= before


def test_ids_are_fresh_say_what_they_name_and_fit_a_key() -> None:
    ids = SystemIds()
    made = {ids.new("job") for _ in range(1_000)}
    assert len(made) == 1_000
    assert all(re.fullmatch(r"job-[0-9a-f]{20}", id_) for id_ in made)
    assert Fence(operation=(id_ := made.pop()), epoch=1).operation == id_


def test_tokens_hold_192_bits_and_are_safe_in_a_url() -> None:
    ids = SystemIds()
    made = {ids.token() for _ in range(1_000)}
    assert len(made) == 1_000
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{32}", token) for token in made)


def test_a_fraction_is_at_least_zero_and_below_one() -> None:
    ids = SystemIds()
    made = [ids.fraction() for _ in range(1_000)]
    assert all(0 <= fraction < 1 for fraction in made)
    assert len(set(made)) > 900
