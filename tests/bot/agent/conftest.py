"""Fixtures of the agents' tests: a local Gemini server and a Cognition that talks to it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from pydantic import SecretStr

from bot.agent.cognition import AdkCognition
from bot.agent.models import choose
from bot.settings import Settings
from tests.emulators import gemini


@pytest.fixture
async def server() -> AsyncIterator[gemini.GeminiServer]:
    """A local server that speaks the Gemini API."""
    async with gemini.serving() as state:
        yield state


@pytest.fixture
async def thinker(server: gemini.GeminiServer) -> AsyncIterator[AdkCognition]:
    """The Gemini Cognition as settings choose it, pointed at the local server."""
    settings = Settings(
        _env_file=None, gemini_api_key=SecretStr(gemini.KEY), gemini_base_url=server.address
    )
    made = choose(settings)
    yield made
    await made.close()
