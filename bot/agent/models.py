"""Which model answers, chosen from settings: Gemini where there is a key, else the offline model.

Importing this module is cheap: model libraries are imported at the first thought. The key stays in
a secret value until the client is made and is in no description, representation or error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pydantic import BaseModel, ConfigDict, Field, SecretStr

from bot.agent.cognition import DEADLINE_SECONDS, AdkCognition
from runtime.domain.projection import Agent

if TYPE_CHECKING:
    from google.adk.models import BaseLlm

OFFLINE: Final = "offline-extractive-1"
OFFLINE_SENTENCE: Final = "offline model: extractive, no AI service is contacted"
GEMINI_MODEL: Final = "gemini-2.5-flash"
THINKING_TOKENS: Final = 2_048


class ModelSettings(BaseModel):
    """What decides about the model. `gemini_base_url` is for tests and gateways."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    gemini_api_key: SecretStr | None = None
    gemini_model: str = Field(default=GEMINI_MODEL, min_length=1, max_length=200)
    gemini_base_url: str | None = None
    gemini_thinking_tokens: int = Field(default=THINKING_TOKENS, ge=0, le=16_384)
    deadline_seconds: float = Field(default=DEADLINE_SECONDS, gt=0, le=900)


def choose(settings: ModelSettings) -> AdkCognition:
    """The Cognition that these settings ask for."""
    key = settings.gemini_api_key
    if key is None or not key.get_secret_value().strip():
        return offline(settings.deadline_seconds)
    return _gemini(settings, key)


def offline(deadline_seconds: float = DEADLINE_SECONDS) -> AdkCognition:
    """The model that needs no account."""

    def backend(agent: Agent) -> BaseLlm:
        from bot.agent.offline import OfflineLlm

        return OfflineLlm(agent=agent)

    return AdkCognition(OFFLINE, OFFLINE_SENTENCE, backend, deadline_seconds=deadline_seconds)


def _gemini(settings: ModelSettings, key: SecretStr) -> AdkCognition:
    made: list[BaseLlm] = []

    def backend(_: Agent) -> BaseLlm:
        from bot.agent.gemini import gemini

        if not made:
            made.append(
                gemini(
                    settings.gemini_model,
                    key.get_secret_value().strip(),
                    settings.gemini_base_url,
                    settings.deadline_seconds,
                    settings.gemini_thinking_tokens,
                )
            )
        return made[0]

    sentence = f"Gemini {settings.gemini_model}: projections are sent to Google's Gemini API"
    return AdkCognition(
        settings.gemini_model, sentence, backend, deadline_seconds=settings.deadline_seconds
    )


def describe(settings: ModelSettings) -> str:
    """The sentence that operators see about the model."""
    return choose(settings).describe()
