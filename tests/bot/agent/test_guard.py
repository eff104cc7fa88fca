"""The guard lets one complete text through and nothing that asks to be acted on."""

from __future__ import annotations

import pytest
from google.adk.models.llm_response import LlmResponse
from google.genai import types

from bot.agent.answers import Refusal
from bot.agent.guard import KINDS, judge

STOP = types.FinishReason.STOP


def answer(*parts: types.Part, finish: types.FinishReason | None = STOP) -> LlmResponse:
    """A response with these parts."""
    return LlmResponse(content=types.Content(role="model", parts=list(parts)), finish_reason=finish)


def test_text_parts_are_joined_and_thoughts_are_left_out() -> None:
    response = answer(
        types.Part(text="Hm.", thought=True), types.Part(text='{"a"'), types.Part(text=":1}")
    )
    assert judge(response) == '{"a":1}'


@pytest.mark.parametrize("reason", [reason for reason in types.FinishReason if reason != STOP])
def test_every_finish_reason_but_stop_is_a_refusal_even_with_text(
    reason: types.FinishReason,
) -> None:
    verdict = judge(answer(types.Part(text="{}"), finish=reason))
    assert isinstance(verdict, Refusal)
    assert verdict.kind == KINDS.get(reason.value, "blocked")


@pytest.mark.parametrize("reason", list(types.BlockedReason))
def test_every_block_reason_is_blocked(reason: types.BlockedReason) -> None:
    verdict = judge(LlmResponse(error_code=reason.value, error_message="secret words"))
    assert verdict == Refusal("blocked", f"block reason {reason.value}")


@pytest.mark.parametrize(
    "part",
    [
        types.Part(function_call=types.FunctionCall(name="approve", args={})),
        types.Part(executable_code=types.ExecutableCode(code="1", language=types.Language.PYTHON)),
        types.Part(inline_data=types.Blob(data=b"x", mime_type="image/png")),
        types.Part(file_data=types.FileData(file_uri="gs://x/y", mime_type="text/plain")),
    ],
)
def test_a_part_that_is_not_text_refuses_the_whole_answer(part: types.Part) -> None:
    verdict = judge(answer(types.Part(text="{}"), part))
    assert verdict == Refusal("call", "a part that is not text")


def test_a_reason_that_is_no_word_is_not_repeated() -> None:
    verdict = judge(LlmResponse(error_code="the prompt said: secret plan"))
    assert verdict == Refusal("blocked", "block reason UNKNOWN")
