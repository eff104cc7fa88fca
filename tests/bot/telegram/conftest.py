"""A front end for each test: fresh store, fresh sandbox, nothing running by itself."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.bot.telegram.front import Front, alone


@pytest.fixture
async def front(tmp_path: Path) -> AsyncIterator[Front]:
    async with alone(tmp_path) as made:
        yield made
