"""The running sandbox that each test gets: fresh, in memory, on a port of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.bot.sandbox.world_kit import Sandbox, sandbox


@pytest.fixture
async def box() -> AsyncIterator[Sandbox]:
    async with sandbox() as running:
        yield running
