"""Which model answers, chosen from settings: Gemini where there is a key, else the offline model.

Importing this module is cheap: model libraries are imported at the first thought. The key is
in no description, representation or error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from bot.agent.cognition import DEADLINE_SECONDS, AdkCognition
from bot.settings import Settings
from runtime.domain.projection import Agent

if TYPE_CHECKING:
    from google.adk.models import BaseLlm

    from bot.agent.gemini import ClassifiedGemini

OFFLINE: Final = "offline-extractive-1"
OFFLINE_SENTENCE: Final = "offline model: extractive, no AI service is contacted"
THINKING_TOKENS: Final = 2_048


def choose(settings: Settings, *, deadline_seconds: float = DEADLINE_SECONDS) -> AdkCognition:
    """The Cognition that these settings ask for."""
    key = settings.gemini_api_key.get_secret_value().strip() if settings.gemini_api_key else ""
    return _gemini(settings, key, deadline_seconds) if key else _offline(deadline_seconds)


def describe(settings: Settings) -> str:
    """The sentence that operators see about the model."""
    return choose(settings).describe()


def _offline(deadline_seconds: float) -> AdkCognition:
    def backend(agent: Agent) -> BaseLlm:
        from bot.agent.offline import OfflineLlm

        return OfflineLlm(agent=agent)

    return AdkCognition(OFFLINE, OFFLINE_SENTENCE, backend, deadline_seconds=deadline_seconds)


def _gemini(settings: Settings, key: str, deadline_seconds: float) -> AdkCognition:
    made: list[ClassifiedGemini] = []

    def backend(_: Agent) -> BaseLlm:
        from bot.agent.gemini import gemini

        if not made:
            made.append(
                gemini(
                    settings.gemini_model,
                    key,
                    settings.gemini_base_url,
                    deadline_seconds,
                    THINKING_TOKENS,
                )
            )
        return made[0]

    async def close() -> None:
        for model in made:
            await model.aclose()

    sentence = f"Gemini {settings.gemini_model}: projections are sent to Google's Gemini API"
    return AdkCognition(
        settings.gemini_model,
        sentence,
        backend,
        deadline_seconds=deadline_seconds,
        close=close,
    )
