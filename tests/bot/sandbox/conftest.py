"""Fixtures of the sandbox's tests."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from sys import path

import pytest

path.insert(0, str(Path(__file__).parent))

from world_kit import Sandbox, sandbox  # noqa: E402 - the kit stands beside the tests


@pytest.fixture
async def box() -> AsyncIterator[Sandbox]:
    async with sandbox() as running:
        yield running
