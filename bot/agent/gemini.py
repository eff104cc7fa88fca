"""Gemini by API key, over google-genai: an explicit client and classified provider faults.

Nothing is taken from the environment. A provider's error becomes a kind and a status code; its
body, which may repeat the request, goes no further (INV-20): it is classified before ADK could
write it into a log or a span. The client does not retry: the operation's own budget does.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from typing import Final, cast

import httpx
from google import genai
from google.adk.models.google_llm import Gemini
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.genai import errors, types

from bot.agent.answers import Refusal
from bot.agent.guard import CLASSIFIED

BUSY: Final = frozenset({408, 429, 500, 502, 503, 504})
CREDENTIAL: Final = frozenset({401, 403})
KEY_REASONS: Final = frozenset({"API_KEY_INVALID", "API_KEY_SERVICE_BLOCKED"})
RETRY_AFTER_SECONDS_MAX: Final = 3_600.0


def gemini(
    model: str, key: str, base_url: str, timeout_seconds: float, thinking_tokens: int
) -> ClassifiedGemini:
    """A Gemini model that reports faults as data."""
    client = genai.Client(
        vertexai=False,
        api_key=key,
        http_options=types.HttpOptions(
            base_url=base_url or "https://generativelanguage.googleapis.com",
            timeout=int(timeout_seconds * 1_000),
        ),
    )
    return ClassifiedGemini(model=model, client=client, thinking_tokens=thinking_tokens)


class ClassifiedGemini(Gemini):
    """ADK's Gemini, except that a provider's fault is an answer with a kind, not an exception."""

    thinking_tokens: int

    async def aclose(self) -> None:
        """Close the client's connections."""
        if self.client is not None:
            await self.client.aio.aclose()

    async def generate_content_async(
        self,
        llm_request: LlmRequest,
        stream: bool = False,  # noqa: FBT001, FBT002 - the library's own signature
    ) -> AsyncGenerator[LlmResponse, None]:
        """The model's answers, or one classified fault."""
        llm_request.config.thinking_config = types.ThinkingConfig(
            include_thoughts=False, thinking_budget=self.thinking_tokens
        )
        try:
            async for response in super().generate_content_async(llm_request, stream):
                yield response
        except (errors.APIError, httpx.TransportError) as fault:
            yield _classified(fault)
        except (ValueError, TypeError, LookupError, AttributeError) as fault:
            # A 200 whose body is not a response of this API: the library fails while it reads it.
            yield _fault(Refusal("busy", f"unreadable response: {type(fault).__name__}"), None)


def _classified(fault: Exception) -> LlmResponse:
    if not isinstance(fault, errors.APIError):
        return _fault(Refusal("busy", type(fault).__name__), None)
    code = int(fault.code or 0)
    if code in CREDENTIAL or _reasons(fault) & KEY_REASONS:
        return _fault(Refusal("credential", f"status {code}"), None)
    if code in BUSY:
        return _fault(Refusal("busy", f"status {code}"), retry_after(fault))
    return _fault(Refusal("refused", f"status {code}"), None)


def _fault(why: Refusal, after_seconds: float | None) -> LlmResponse:
    return LlmResponse(
        error_code=why.kind,
        error_message=why.detail,
        custom_metadata={CLASSIFIED: True, "retry_after_seconds": after_seconds},
    )


def _details(fault: errors.APIError) -> list[Mapping[str, object]]:
    """The typed details of a Google error body, or nothing if it has another form."""
    body = fault.details
    error = body.get("error") if isinstance(body, dict) else None
    details = error.get("details") if isinstance(error, dict) else None
    return [item for item in details if isinstance(item, dict)] if isinstance(details, list) else []


def _reasons(fault: errors.APIError) -> frozenset[str]:
    return frozenset(str(item.get("reason")) for item in _details(fault) if "reason" in item)


def retry_after(fault: errors.APIError) -> float | None:
    """How long the provider asks to wait: the longer of `RetryInfo` and `Retry-After`."""
    said = [str(item.get("retryDelay", "")).removesuffix("s") for item in _details(fault)]
    headers = cast("Mapping[str, str]", getattr(fault.response, "headers", None) or {})
    said.append(headers.get("retry-after", ""))
    waits = [seconds for word in said if (seconds := _seconds(word)) is not None]
    return max(waits, default=None)


def _seconds(word: str) -> float | None:
    try:
        seconds = float(word)
    except ValueError:
        return None
    return min(seconds, RETRY_AFTER_SECONDS_MAX) if seconds >= 0 else None
