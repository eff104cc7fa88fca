"""Worlds for the acceptance tests: one for each module that only looks, or one for each test."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.acceptance.world import World, opened


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def shared(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    """A world that the tests of a module share: Ana is admin, Bo approver, Sam nobody."""
    folder = tmp_path_factory.mktemp("world")
    async with opened(folder) as world:
        await world.sandbox()
        process = await world.up(HARMONIA_LINK_ALLOW="127.0.0.0/8")
        await world.pair(process)
        await world.invite("bo")
        yield world


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def alone(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    """One `harmonia up` without a token, as `make up` starts it; Ana is admin."""
    folder: Path = tmp_path_factory.mktemp("alone")
    async with opened(folder) as world:
        await world.pair(await world.up())
        yield world
