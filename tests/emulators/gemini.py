"""A local server that speaks the Gemini API: generateContent, streamed or not, with a ledger.

By default it answers as a careful model would, from the request alone. A test can script what it
answers instead; each refusal and each odd answer is one that the API documents or that its users
reported. The ledger keeps every request as it came over the wire.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from tests.emulators import gemini_answers

KEY = "AIza-not-a-real-key-0123456789"
MODELS = frozenset({"gemini-2.5-flash", "gemini-2.5-pro"})
OUTPUT_TOKENS_MAX = 65_536
SCHEMA_FIELDS = frozenset(
    {
        "type",
        "format",
        "title",
        "description",
        "nullable",
        "enum",
        "maxItems",
        "minItems",
        "properties",
        "required",
        "minProperties",
        "maxProperties",
        "minLength",
        "maxLength",
        "pattern",
        "example",
        "anyOf",
        "propertyOrdering",
        "default",
        "items",
        "minimum",
        "maximum",
    }
)
Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Asked:
    """One request as it arrived."""

    path: str
    query: str
    headers: dict[str, str]
    body: Json

    @property
    def instruction(self) -> str:
        """The system instruction."""
        return "".join(part["text"] for part in self.body["systemInstruction"]["parts"])

    @property
    def message(self) -> str:
        """The text of all contents."""
        return "".join(part["text"] for turn in self.body["contents"] for part in turn["parts"])


Script = Callable[[Asked], Json | Response]
"""What to answer: a 200 body, or a whole response."""


@dataclass
class GeminiServer:
    """The server's state. `script` holds answers for the next requests; then come good ones."""

    ledger: list[Asked] = field(default_factory=list)
    script: deque[Script] = field(default_factory=deque)
    hold: asyncio.Event | None = None
    """While set and not fired, requests wait for it: a slow model."""
    arrived: asyncio.Event = field(default_factory=asyncio.Event)
    left: asyncio.Event = field(default_factory=asyncio.Event)
    """A client went away while it was waiting."""
    address: str = ""

    def app(self) -> Starlette:
        """The routes of the API."""
        return Starlette(routes=[Route("/v1beta/models/{call:path}", self._call, methods=["POST"])])

    async def _call(self, request: Request) -> Response:
        model, _, method = str(request.path_params["call"]).partition(":")
        try:
            body = json.loads(await request.body())
        except ValueError:
            return refusal(400, "INVALID_ARGUMENT", "Invalid JSON payload received.")
        asked = Asked(request.url.path, request.url.query, dict(request.headers), body)
        self.ledger.append(asked)
        self.arrived.set()
        refused = _refused(asked, model)
        if refused is not None:
            return refused
        if self.hold is not None and not await self._held(request, self.hold):
            return Response(status_code=499)
        answer = (self.script.popleft() if self.script else good)(asked)
        if isinstance(answer, Response):
            return answer
        if method == "streamGenerateContent":
            return StreamingResponse(_events(answer), media_type="text/event-stream")
        return JSONResponse(answer)

    async def _held(self, request: Request, hold: asyncio.Event) -> bool:
        """Wait for the release; False if the client left first."""
        release = asyncio.ensure_future(hold.wait())
        gone = asyncio.ensure_future(_gone(request))
        done, pending = await asyncio.wait({release, gone}, return_when=asyncio.FIRST_COMPLETED)
        for task in pending:
            task.cancel()
        if gone in done:
            self.left.set()
        return release in done


async def _gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _events(answer: Json) -> Iterator[str]:
    yield f"data: {json.dumps(answer)}\r\n\r\n"


def _refused(asked: Asked, model: str) -> Response | None:
    """What the API refuses before any model sees it."""
    key = asked.headers.get("x-goog-api-key")
    if key is None:
        return refusal(403, "PERMISSION_DENIED", "Method doesn't allow unregistered callers.")
    if key != KEY:
        details = [
            {
                "@type": "type.googleapis.com/google.rpc.ErrorInfo",
                "reason": "API_KEY_INVALID",
                "domain": "googleapis.com",
            }
        ]
        message = "API key not valid. Please pass a valid API key."
        return refusal(400, "INVALID_ARGUMENT", message, details)
    if model not in MODELS:
        return refusal(404, "NOT_FOUND", f"models/{model} is not found for API version v1beta.")
    config = asked.body.get("generationConfig", {})
    if not asked.body.get("contents"):
        return refusal(400, "INVALID_ARGUMENT", "contents is not specified")
    if not 0 < config.get("maxOutputTokens", 1) <= OUTPUT_TOKENS_MAX:
        return refusal(400, "INVALID_ARGUMENT", "max_output_tokens is out of range")
    unknown = _unknown_fields(config.get("responseSchema", {}))
    if unknown:
        message = f'Invalid JSON payload received. Unknown name "{unknown}" at response_schema'
        return refusal(400, "INVALID_ARGUMENT", message)
    return None


def camel(name: str) -> str:
    """A field's JSON name: the API takes the proto's own name (snake case) as well."""
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def _unknown_fields(schema: Json) -> str | None:
    for said, value in schema.items():
        name = camel(said)
        if name not in SCHEMA_FIELDS:
            return said
        children = value.values() if name == "properties" else value if name == "anyOf" else ()
        for child in [*children, *([value] if name == "items" else [])]:
            found = _unknown_fields(child)
            if found:
                return found
    return None


# --- answers ----------------------------------------


def refusal(
    code: int,
    status: str,
    message: str,
    details: list[Json] | None = None,
    headers: dict[str, str] | None = None,
) -> Response:
    """An error body of the API."""
    error: Json = {"code": code, "message": message, "status": status}
    if details:
        error["details"] = details
    return JSONResponse({"error": error}, status_code=code, headers=headers)


def throttled(seconds: float) -> Script:
    """429 with RetryInfo; the message repeats nothing of the request, its details do elsewhere."""
    details: list[Json] = [
        {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": f"{seconds:g}s"}
    ]
    return lambda asked: refusal(
        429, "RESOURCE_EXHAUSTED", f"You exceeded your quota. {asked.message[:40]}", details
    )


def failing(code: int, status: str, headers: dict[str, str] | None = None) -> Script:
    """An error that repeats the request in its message, as some gateways do."""
    return lambda asked: refusal(code, status, f"failed on: {asked.message}", headers=headers)


def answered(*parts: Json, finish: str | None = "STOP", thoughts: int = 0) -> Json:
    """A response with one candidate."""
    candidate: Json = {"content": {"role": "model", "parts": list(parts)}, "index": 0}
    if finish is not None:
        candidate["finishReason"] = finish
    return {
        "candidates": [candidate],
        "usageMetadata": {
            "promptTokenCount": 120,
            "candidatesTokenCount": 30,
            "thoughtsTokenCount": thoughts,
            "totalTokenCount": 150 + thoughts,
        },
        "modelVersion": "gemini-2.5-flash",
    }


def says(text: str, *, finish: str | None = "STOP") -> Script:
    """This text, whatever was asked."""
    return lambda _: answered({"text": text}, finish=finish)


def good(asked: Asked) -> Json:
    """What a careful model answers, after a thought that is marked as one."""
    answer = json.dumps({"answer": gemini_answers.careful(asked.instruction, asked.message)})
    half = len(answer) // 2
    return answered(
        {"text": "Let me look at the material first.", "thought": True},
        {"text": answer[:half]},
        {"text": answer[half:]},
        thoughts=12,
    )


def wrapped(before: str, after: str) -> Script:
    """A good answer with text around it."""

    def script(asked: Asked) -> Json:
        answer = json.dumps({"answer": gemini_answers.careful(asked.instruction, asked.message)})
        return answered({"text": f"{before}{answer}{after}"})

    return script


def candidate(finish: str, **more: object) -> Script:
    """A candidate without content, as the API sends for most finish reasons."""
    body = {
        "candidates": [{"finishReason": finish, "index": 0, **more}],
        "usageMetadata": {"promptTokenCount": 120, "totalTokenCount": 120},
    }
    return lambda _: body


def blocked(reason: str) -> Script:
    """The prompt itself was blocked: feedback and no candidate."""
    return lambda _: {"promptFeedback": {"blockReason": reason}}


def raw(body: str, content_type: str = "application/json", status: int = 200) -> Script:
    """Any bytes, such as a proxy's page."""
    return lambda _: Response(body, status_code=status, media_type=content_type)


def cut_off() -> Script:
    """The connection ends in the middle of the body."""

    async def half() -> AsyncIterator[bytes]:
        yield b'{"candidates": ['
        raise ClientDisconnect

    return lambda _: StreamingResponse(
        half(), media_type="application/json", headers={"content-length": "5000"}
    )


# --- serving ----------------------------------------


class _Quiet(uvicorn.Server):
    """Leaves the process's signals alone."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@contextlib.asynccontextmanager
async def serving() -> AsyncIterator[GeminiServer]:
    """A server on a free port of this machine, until the block ends."""
    state = GeminiServer()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        state.address = f"http://127.0.0.1:{listener.getsockname()[1]}"
        config = uvicorn.Config(
            state.app(), log_config=None, lifespan="off", timeout_graceful_shutdown=1
        )
        server = _Quiet(config)
        task = asyncio.ensure_future(server.serve(sockets=[listener]))
        try:
            yield state
        finally:
            server.should_exit = True
            if state.hold is not None:
                state.hold.set()
            await task


@contextlib.asynccontextmanager
async def resetting() -> AsyncIterator[str]:
    """A server that takes the request and resets the connection without an answer."""

    async def reset(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.transport.abort()

    server = await asyncio.start_server(reset, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
