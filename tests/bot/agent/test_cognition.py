"""Sessions, spans and the one seam: what AdkCognition keeps, leaves behind and lets out."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable
from typing import Any

import pytest
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.sessions import InMemorySessionService

from bot.agent.cognition import AdkCognition
from bot.agent.offline import NAME, OfflineLlm
from runtime.domain.projection import Agent
from runtime.errors import CognitionError
from tests.bot.agent import shown

READING = shown.reading("The harbour bridge opens on 4 December. It is 400 m long.")


class Forgetful(OfflineLlm):
    """Loses every session of its service while it thinks."""

    sessions: Any

    async def generate_content_async(
        self,
        llm_request: LlmRequest,
        stream: bool = False,  # noqa: FBT002 - the library's signature
    ) -> AsyncGenerator[LlmResponse, None]:
        listed = await self.sessions.list_sessions(app_name="harmonia", user_id="op-1")
        assert listed.sessions, "a run has a session of its own"
        for session in listed.sessions:
            await self.sessions.delete_session(
                app_name="harmonia", user_id="op-1", session_id=session.id
            )
        async for response in super().generate_content_async(llm_request, stream):
            yield response


class Broken(BaseLlm):
    """A model with a defect."""

    model: str = "broken"

    async def generate_content_async(
        self,
        llm_request: LlmRequest,
        stream: bool = False,  # noqa: FBT002 - the library's signature
    ) -> AsyncGenerator[LlmResponse, None]:
        yield LlmResponse(error_message=str(len(llm_request.contents) // int(stream)))


class Chatty(OfflineLlm):
    """Gives two answers where one is agreed."""

    async def generate_content_async(
        self,
        llm_request: LlmRequest,
        stream: bool = False,  # noqa: FBT002 - the library's signature
    ) -> AsyncGenerator[LlmResponse, None]:
        for _ in range(2):
            async for response in super().generate_content_async(llm_request, stream):
                yield response


def cognition(
    backend: Callable[[Agent], BaseLlm], sessions: InMemorySessionService | None = None
) -> AdkCognition:
    """A Cognition over one model."""
    return AdkCognition(NAME, "test", backend, sessions=(lambda: sessions) if sessions else None)


async def test_a_session_lost_while_thinking_is_an_answer_that_did_not_come() -> None:
    sessions = InMemorySessionService()

    def backend(agent: Agent) -> BaseLlm:
        return Forgetful(agent=agent, sessions=sessions)

    with pytest.raises(CognitionError) as caught:
        await cognition(backend, sessions).think(READING)
    assert caught.value.fields["kind"] == "busy"


async def test_deleting_every_session_between_two_thoughts_changes_nothing() -> None:
    sessions = InMemorySessionService()
    thinker = cognition(lambda agent: OfflineLlm(agent=agent), sessions)
    first = await thinker.think(READING)
    sessions.sessions.clear()
    assert await thinker.think(READING) == first


async def test_no_session_is_left_after_a_thought_or_a_failure() -> None:
    sessions = InMemorySessionService()
    await cognition(lambda agent: OfflineLlm(agent=agent), sessions).think(READING)
    with pytest.raises(ZeroDivisionError):
        await cognition(lambda _: Broken(), sessions).think(READING)
    listed = await sessions.list_sessions(app_name="harmonia", user_id="op-1")
    assert listed.sessions == []


async def test_a_defect_of_a_model_is_not_turned_into_an_answer() -> None:
    with pytest.raises(ZeroDivisionError):
        await cognition(lambda _: Broken()).think(READING)


async def test_two_answers_are_none() -> None:
    with pytest.raises(CognitionError) as caught:
        await cognition(lambda agent: Chatty(agent=agent)).think(READING)
    assert caught.value.fields["detail"] == "2 responses"


SPANS = """
import asyncio, json
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from bot.agent.models import choose
from bot.settings import Settings
from tests.bot.agent import shown

exporter = InMemorySpanExporter()
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(exporter))
trace.set_tracer_provider(provider)
projection = shown.reading("The harbour bridge opens on 4 December. It is 400 m long.")
asyncio.run(choose(Settings(_env_file=None)).think(projection))
print(json.dumps([span.to_json() for span in exporter.get_finished_spans()]))
"""


def test_spans_hold_no_prompt_and_no_answer() -> None:
    """INV-20; ADK would write both into its spans by default."""
    done = subprocess.run([sys.executable, "-c", SPANS], check=True, capture_output=True, text=True)
    spans = json.loads(done.stdout)
    assert len(spans) >= 2
    assert any("reader" in span for span in spans)
    for secret in ("harbour", "400 m", "operations bot"):
        assert secret not in done.stdout + done.stderr
