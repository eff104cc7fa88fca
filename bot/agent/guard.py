"""The guard around every model: ADK sees a complete text answer or a classified refusal.

ADK would run a tool for a function call, accept a truncated text and record provider errors in its
spans. The guard sits in front of all that: it takes what the model answered, judges it, and passes
on one response that is either plain text or an error whose code is a kind of `CognitionError`.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Final

from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.genai import types

from bot.agent.answers import Refusal

# Unlisted reasons, new ones included, mean that the provider withheld an answer: blocked.
FINISHED: Final = "STOP"
KINDS: Final[dict[str, str]] = {
    "MAX_TOKENS": "truncated",
    "CONTINUATION": "truncated",
    "MALFORMED_FUNCTION_CALL": "call",
    "UNEXPECTED_TOOL_CALL": "call",
    "TOO_MANY_TOOL_CALLS": "call",
}


class Guard(BaseLlm):
    """A model whose every answer is judged before ADK acts on it."""

    inner: BaseLlm

    async def generate_content_async(
        self,
        llm_request: LlmRequest,
        stream: bool = False,  # noqa: ARG002, FBT001, FBT002 - the library's own signature
    ) -> AsyncGenerator[LlmResponse, None]:
        """One judged response; chunks and further responses of the inner model are refused."""
        answers = [
            response
            async for response in self.inner.generate_content_async(llm_request, stream=False)
        ]
        if len(answers) != 1:
            yield refused(Refusal("empty", f"{len(answers)} responses"), None)
            return
        verdict = judge(answers[0])
        if isinstance(verdict, Refusal):
            yield refused(verdict, answers[0])
        else:
            yield LlmResponse(
                content=types.Content(role="model", parts=[types.Part(text=verdict)]),
                finish_reason=types.FinishReason.STOP,
                usage_metadata=answers[0].usage_metadata,
            )


def refused(why: Refusal, answer: LlmResponse | None) -> LlmResponse:
    """A refusal as ADK's error response; usage is kept, because it was paid for."""
    return LlmResponse(
        error_code=why.kind,
        error_message=why.detail,
        usage_metadata=answer.usage_metadata if answer else None,
        custom_metadata=answer.custom_metadata if answer else None,
    )


def judge(response: LlmResponse) -> str | Refusal:
    """The complete text of a response, or why there is none. Thoughts are not part of it."""
    reason = _word(response.finish_reason)
    if response.error_code and (response.custom_metadata or {}).get(CLASSIFIED):
        return Refusal(_word(response.error_code), response.error_message or "")
    if reason and reason != FINISHED:
        return Refusal(KINDS.get(reason, "blocked"), f"finish reason {reason}")
    if response.error_code:
        code = _word(response.error_code)
        return Refusal(KINDS.get(code, "blocked"), f"block reason {code}")
    parts = (response.content.parts if response.content else None) or []
    if any(not _is_text(part) for part in parts):
        return Refusal("call", "a part that is not text")
    text = "".join(part.text or "" for part in parts if not part.thought)
    if not text.strip():
        return Refusal("empty", "no text")
    if reason != FINISHED:
        return Refusal("truncated", "no finish reason")
    return text


WORD_CHARS_MAX: Final = 60
CLASSIFIED: Final = "harmonia_classified"
"""Marks an error response whose code is already a kind of ours."""


def _word(value: object) -> str:
    """An enum's name as plain text; the SDK's unknown values arrive as plain strings."""
    if value is None:
        return ""
    word = str(getattr(value, "value", value))
    return word if word.replace("_", "").isalnum() and len(word) <= WORD_CHARS_MAX else "UNKNOWN"


def _is_text(part: types.Part) -> bool:
    """Whether a part holds text (or a thought) and nothing that asks to be acted on."""
    held = part.model_dump(exclude_none=True, exclude={"text", "thought", "thought_signature"})
    return not held
