"""The offline model: a model for ADK that really works on what it is shown, and calls nobody.

It is deterministic and extractive: the same projection gives the same answer on every machine, and
what it says of a source is that source's own text. It answers in the asked JSON shape and goes
through the same guard and the same strict reading as any other model.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Final

from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.genai import types

from bot.agent import compose, converse, extract
from bot.agent.answers import Answer
from bot.agent.material import material
from runtime.domain.projection import Agent

NAME: Final = "offline-extractive-1"


class OfflineLlm(BaseLlm):
    """One agent of the offline team."""

    model: str = NAME
    agent: Agent

    async def generate_content_async(
        self,
        llm_request: LlmRequest,
        stream: bool = False,  # noqa: ARG002, FBT001, FBT002 - the library's own signature
    ) -> AsyncGenerator[LlmResponse, None]:
        """The answer to the projection that the request carries."""
        shown = "".join(
            part.text or "" for content in llm_request.contents for part in content.parts or []
        )
        text = f'{{"answer":{respond(self.agent, shown).model_dump_json()}}}'
        yield LlmResponse(
            content=types.Content(role="model", parts=[types.Part(text=text)]),
            finish_reason=types.FinishReason.STOP,
            usage_metadata=types.GenerateContentResponseUsageMetadata(
                prompt_token_count=0, candidates_token_count=0, total_token_count=0
            ),
        )


def respond(agent: Agent, projection: str) -> Answer:
    """What the offline model says to a projection. Pure."""
    shown = material(projection)
    match agent:
        case "reader":
            return extract.read_window(shown)
        case "analyst":
            return extract.analyse(shown)
        case "strategist":
            return extract.strategise(shown, NAME)
        case "writer":
            return compose.write(shown)
        case "reviewer":
            return compose.review(shown)
        case "chat":
            return converse.answer(shown, NAME)
