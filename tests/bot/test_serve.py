"""Starting: a Bot API that does not answer at once is waited for, a bounded number of times."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

import pytest
from telegram.error import BadRequest, InvalidToken, NetworkError, RetryAfter, TelegramError

from bot.serve import START_TRIES, patiently


class Pausing:
    """A clock whose pauses are counted and over at once."""

    def __init__(self) -> None:
        self.pauses: list[float] = []

    def now(self) -> datetime:
        return datetime(2027, 1, 4, tzinfo=UTC)

    def monotonic(self) -> float:
        return sum(self.pauses)

    async def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)


def failing(times: int, error: TelegramError) -> tuple[Callable[[], Awaitable[None]], list[int]]:
    calls: list[int] = []

    async def call() -> None:
        calls.append(1)
        if len(calls) <= times:
            raise error

    return call, calls


@pytest.mark.parametrize("error", [NetworkError("502"), RetryAfter(1)])
async def test_an_api_that_comes_back_is_waited_for(error: TelegramError) -> None:
    clock = Pausing()
    call, calls = failing(START_TRIES - 1, error)
    await patiently(clock, call)
    assert len(calls) == START_TRIES
    assert clock.pauses == sorted(clock.pauses)


async def test_an_api_that_stays_away_ends_the_start() -> None:
    call, calls = failing(START_TRIES, NetworkError("502"))
    with pytest.raises(NetworkError):
        await patiently(Pausing(), call)
    assert len(calls) == START_TRIES


@pytest.mark.parametrize("error", [InvalidToken("no"), BadRequest("no")])
async def test_what_no_retry_can_help_is_not_retried(error: TelegramError) -> None:
    call, calls = failing(1, error)
    with pytest.raises(type(error)):
        await patiently(Pausing(), call)
    assert len(calls) == 1
