"""The emulator behaves as the API's documentation says, seen through Google's own client."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx
import pytest
from google import genai
from google.genai import errors, types

from tests.bot.agent import shown
from tests.emulators import gemini

MESSAGE = shown.projection("chat", shown.block("question", "hello")).text
CONFIG = types.GenerateContentConfig(system_instruction='Your internal name is "chat".')


@pytest.fixture
async def server() -> AsyncIterator[gemini.GeminiServer]:
    """The emulator."""
    async with gemini.serving() as state:
        yield state


def client(server: gemini.GeminiServer, key: str = gemini.KEY) -> genai.Client:
    """Google's client, pointed at the emulator."""
    return genai.Client(
        vertexai=False, api_key=key, http_options=types.HttpOptions(base_url=server.address)
    )


async def test_it_answers_whole_and_streamed_alike(server: gemini.GeminiServer) -> None:
    async with client(server).aio as asking:
        whole = await asking.models.generate_content(
            model="gemini-2.5-flash", contents=MESSAGE, config=CONFIG
        )
        stream = await asking.models.generate_content_stream(
            model="gemini-2.5-flash", contents=MESSAGE, config=CONFIG
        )
        pieces = [piece.text or "" async for piece in stream]
    assert whole.text is not None
    assert "chat_answer" in whole.text
    assert "".join(pieces) == whole.text
    assert [asked.query for asked in server.ledger] == ["", "alt=sse"]


@pytest.mark.parametrize(
    ("model", "key", "code"),
    [("gemini-2.5-flash", "wrong", 400), ("gemini-0", gemini.KEY, 404)],
)
async def test_a_wrong_key_and_an_unknown_model_are_refused(
    server: gemini.GeminiServer, model: str, key: str, code: int
) -> None:
    async with client(server, key).aio as asking:
        with pytest.raises(errors.ClientError) as caught:
            await asking.models.generate_content(model=model, contents=MESSAGE, config=CONFIG)
    assert caught.value.code == code


@pytest.mark.parametrize(
    ("body", "headers", "code"),
    [
        ('{"contents": [{"parts": [{"text": "x"}]}]}', {}, 403),
        ("{", {"x-goog-api-key": gemini.KEY}, 400),
        ('{"contents": []}', {"x-goog-api-key": gemini.KEY}, 400),
        (
            '{"contents": [{"parts": []}], "generationConfig": {"maxOutputTokens": 65537}}',
            {"x-goog-api-key": gemini.KEY},
            400,
        ),
        (
            '{"contents": [{"parts": []}], "generationConfig": {"responseSchema": {"const": "x"}}}',
            {"x-goog-api-key": gemini.KEY},
            400,
        ),
    ],
)
async def test_a_request_that_the_api_would_refuse_is_refused(
    server: gemini.GeminiServer, body: str, headers: dict[str, str], code: int
) -> None:
    async with httpx.AsyncClient(base_url=server.address) as asking:
        answer = await asking.post(
            "/v1beta/models/gemini-2.5-flash:generateContent", content=body, headers=headers
        )
    assert answer.status_code == code
