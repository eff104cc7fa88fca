"""The machine: its clock, its randomness, and how this process collects garbage.

The only module that asks the machine for time or randomness.
"""

from __future__ import annotations

import asyncio
import gc
import secrets
import time
from datetime import UTC, datetime
from typing import Final

YOUNG_OBJECTS_MAX: Final = 50_000


def collect_calmly() -> None:
    """Look for reference cycles less often; called once, by a process that serves or measures.

    Records are many, short-lived and free of cycles, so counting references frees them; the cycle
    collector's usual 700 objects make it look through them dozens of times per second for nothing.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG_OBJECTS_MAX, 20, 50)


class SystemClock:
    """Wall time in UTC, monotonic seconds, real sleeping."""

    def now(self) -> datetime:
        """The machine's time, in UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Seconds from an arbitrary start that never go back."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Let others run for `seconds`."""
        await asyncio.sleep(seconds)


class SystemIds:
    """Unguessable IDs from the operating system."""

    def new(self, prefix: str) -> str:
        """`prefix-` and 80 random bits."""
        return f"{prefix}-{secrets.token_hex(10)}"

    def token(self) -> str:
        """192 random bits, URL-safe."""
        return secrets.token_urlsafe(24)

    def fraction(self) -> float:
        """A number in [0, 1)."""
        return secrets.randbelow(1 << 30) / (1 << 30)
