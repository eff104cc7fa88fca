"""Fixtures of the store suite: each test runs on every kind of store."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.conformance.stores import Attempts, Backend, ThreadlessBackend


@pytest.fixture(params=["sqlite", "sqlite_threadless"])
async def backend(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Backend]:
    """One set of data of one kind of store; closed after the test."""
    kinds = {"sqlite": Backend, "sqlite_threadless": ThreadlessBackend}
    made = kinds[request.param](tmp_path)
    yield made
    await made.close()


@pytest.fixture
def store(backend: Backend) -> Attempts:
    """A handle on the data."""
    return backend.open()
