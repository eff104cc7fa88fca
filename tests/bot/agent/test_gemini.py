"""Gemini over HTTP: what is sent, what is accepted, and how each odd answer is refused.

The real google-genai client and ADK talk to a local server. Public cases 61 and 63 stand here.
"""

from __future__ import annotations

import asyncio
import logging

import pytest
from pydantic import SecretStr

from bot.agent.answers import asked_schema
from bot.agent.cognition import AdkCognition
from bot.agent.instructions import CORRECTION, instruction
from bot.agent.models import choose
from bot.settings import Settings
from runtime.domain.proposal import Escalation, Notes
from runtime.errors import CognitionError
from tests.bot.agent import shown
from tests.emulators import gemini
from tests.emulators.gemini import GeminiServer, Script

SOURCE = """# Launch

The launch of Foo 2.0 is on Friday 2026-12-04.

It brings 30% faster start and twelve fixes.
"""
READING = shown.reading(SOURCE)


async def refused(thinker: AdkCognition) -> CognitionError:
    """The error of one thought that must fail."""
    with pytest.raises(CognitionError) as caught:
        await thinker.think(READING)
    return caught.value


async def test_a_complete_answer_is_placed_and_its_tokens_are_counted(
    thinker: AdkCognition, server: GeminiServer
) -> None:
    thought = await thinker.think(READING)
    assert isinstance(thought.value, Notes)
    assert [SOURCE[quote.start : quote.end] for quote in thought.value.quotes] == [
        "The launch of Foo 2.0 is on Friday 2026-12-04.",
        "It brings 30% faster start and twelve fixes.",
    ]
    assert (thought.model, thought.input_tokens, thought.output_tokens) == (
        "gemini-2.5-flash",
        120,
        42,
    )
    assert len(server.ledger) == 1


async def test_the_request_holds_the_projection_the_fixed_words_and_the_schema_and_nothing_else(
    thinker: AdkCognition, server: GeminiServer
) -> None:
    await thinker.think(READING)
    (asked,) = server.ledger
    assert asked.path == "/v1beta/models/gemini-2.5-flash:generateContent"
    assert set(asked.body) == {"contents", "systemInstruction", "generationConfig"}
    assert asked.body["contents"] == [{"role": "user", "parts": [{"text": READING.text}]}]
    fixed = instruction("reader", corrective=False)
    assert asked.instruction == f'{fixed}\n\nYou are an agent. Your internal name is "reader".'
    config = asked.body["generationConfig"]
    schema = config.pop("responseSchema")
    assert camelled(schema) == asked_schema("reader")
    assert config == {
        "temperature": 0.0,
        "candidateCount": 1,
        "maxOutputTokens": 16_384,
        "responseMimeType": "application/json",
        "thinkingConfig": {"include_thoughts": False, "thinking_budget": 2_048},
    }


def camelled(value: object) -> object:
    """The schema with field names as the API's documentation writes them."""
    if isinstance(value, list):
        return [camelled(item) for item in value]
    if isinstance(value, dict):
        return {gemini.camel(name): camelled(item) for name, item in value.items()}
    return value


async def test_the_key_is_in_one_header_only(thinker: AdkCognition, server: GeminiServer) -> None:
    await thinker.think(READING)
    (asked,) = server.ledger
    holding = [name for name, value in asked.headers.items() if gemini.KEY in value]
    assert holding == ["x-goog-api-key"]
    assert gemini.KEY not in asked.query
    assert gemini.KEY not in str(asked.body)


CUT = (
    '{"answer": {"result": "notes", "title": "", "quotes": [{"id": "F1", "text": "Launch is on Fri'
)

ONCE: list[tuple[str, Script, str]] = [
    ("blocked", gemini.candidate("SAFETY"), "finish reason SAFETY"),
    ("blocked", gemini.candidate("RECITATION"), "finish reason RECITATION"),
    ("blocked", gemini.candidate("PROHIBITED_CONTENT"), "finish reason PROHIBITED_CONTENT"),
    ("blocked", gemini.says(CUT, finish="SAFETY"), "finish reason SAFETY"),
    ("blocked", gemini.blocked("SAFETY"), "block reason SAFETY"),
    ("blocked", gemini.blocked("PROHIBITED_CONTENT"), "block reason PROHIBITED_CONTENT"),
    ("empty", lambda _: {}, "no text"),
    ("empty", lambda _: {"candidates": []}, "no text"),
    ("empty", gemini.candidate("STOP"), "no text"),
    ("empty", gemini.says(" \n"), "no text"),
    ("empty", lambda _: gemini.answered({"text": "Hm.", "thought": True}), "no text"),
    ("call", gemini.candidate("MALFORMED_FUNCTION_CALL"), "finish reason MALFORMED_FUNCTION_CALL"),
    ("call", gemini.candidate("UNEXPECTED_TOOL_CALL"), "finish reason UNEXPECTED_TOOL_CALL"),
    (
        "call",
        lambda _: gemini.answered({"functionCall": {"name": "approve", "args": {"all": True}}}),
        "a part that is not text",
    ),
    (
        "call",
        lambda _: gemini.answered(
            {"text": "{}"}, {"executableCode": {"code": "1", "language": "PYTHON"}}
        ),
        "a part that is not text",
    ),
    ("truncated", gemini.says("{}", finish=None), "no finish reason"),
    ("busy", gemini.throttled(12.5), "status 429"),
    ("busy", gemini.failing(503, "UNAVAILABLE"), "status 503"),
    ("busy", gemini.failing(500, "INTERNAL"), "status 500"),
    ("busy", gemini.cut_off(), "RemoteProtocolError"),
    ("busy", gemini.raw("<html>502</html>"), "unreadable response: JSONDecodeError"),
    ("busy", gemini.raw('{"candidates": 7}'), "unreadable response: TypeError"),
    ("busy", gemini.raw("<html>", "text/html", 502), "status 502"),
    ("credential", gemini.failing(401, "UNAUTHENTICATED"), "status 401"),
    ("credential", gemini.failing(403, "PERMISSION_DENIED"), "status 403"),
    ("refused", gemini.failing(400, "INVALID_ARGUMENT"), "status 400"),
    ("refused", gemini.failing(404, "NOT_FOUND"), "status 404"),
]


@pytest.mark.parametrize(("kind", "script", "detail"), ONCE)
async def test_what_no_second_try_mends_fails_at_once_with_its_kind(
    thinker: AdkCognition, server: GeminiServer, kind: str, script: Script, detail: str
) -> None:
    if kind == "truncated":
        server.script.append(script)  # an answer without a finish reason is asked for once more
    server.script.append(script)
    error = await refused(thinker)
    assert error.fields["agent"] == "reader"
    assert (error.fields["kind"], error.fields["detail"]) == (kind, detail)
    assert len(server.ledger) == (2 if kind == "truncated" else 1)


@pytest.mark.filterwarnings("ignore:SOMETHING_NEW is not a valid FinishReason:UserWarning")
async def test_a_finish_reason_that_nobody_knows_yet_is_a_refusal(
    thinker: AdkCognition, server: GeminiServer
) -> None:
    server.script.append(gemini.says("{}", finish="SOMETHING_NEW"))
    error = await refused(thinker)
    assert error.fields["kind"] == "blocked"
    assert error.fields["detail"] == "finish reason SOMETHING_NEW"


TWICE: list[tuple[str, Script, str]] = [
    ("fenced", gemini.wrapped("```json\n", "\n```"), "text before the object"),
    ("fenced", gemini.wrapped("I think this is it: ", ""), "text before the object"),
    ("fenced", gemini.wrapped("", "\nThat is all."), "text after the object"),
    ("fenced", gemini.wrapped("", '{"answer": {}}'), "text after the object"),
    (
        "schema",
        gemini.says('{"answer": {"result": "notes", "title": ""}}'),
        "answer.notes.quotes: missing",
    ),
    (
        "schema",
        gemini.says('{"answer": {"result": "notes", "title": "", "quotes": [], "approve": true}}'),
        "answer.notes.?: extra_forbidden",
    ),
    (
        "schema",
        gemini.says('{"answer": {"result": "notes", "title": "", "quotes": "true"}}'),
        "answer.notes.quotes: tuple_type",
    ),
    (
        "schema",
        gemini.says('{"answer": {"result": "notes", "due": "2026-02-31", "quotes": []}}'),
        "answer.notes.?: extra_forbidden",
    ),
    (
        "schema",
        gemini.says('{"answer": {"result": "draft", "title": "x", "sections": []}}'),
        "answer: union_tag_invalid",
    ),
    (
        "schema",
        gemini.says(
            '{"answer": {"result": "notes", "title": "", "quotes": ['
            '{"id": "F1", "text": "Foo 3.0 is out."}]}}'
        ),
        "answer.quotes.0: not an exact piece of what was shown",
    ),
    ("schema", gemini.says('{"answer": '), "the object is not JSON"),
]


@pytest.mark.parametrize(("kind", "script", "detail"), TWICE)
async def test_another_shape_gets_one_corrective_try_and_then_fails(
    thinker: AdkCognition, server: GeminiServer, kind: str, script: Script, detail: str
) -> None:
    server.script.extend([script, script])
    error = await refused(thinker)
    assert (error.fields["kind"], error.fields["detail"]) == (kind, detail)
    first, second = server.ledger
    assert first.message == second.message == READING.text
    assert CORRECTION not in first.instruction
    assert second.instruction.count(CORRECTION) == 1


async def test_a_good_second_answer_is_taken_and_both_calls_are_counted(
    thinker: AdkCognition, server: GeminiServer
) -> None:
    server.script.append(gemini.wrapped("```json\n", "\n```"))
    thought = await thinker.think(READING)
    assert isinstance(thought.value, Notes)
    assert (thought.input_tokens, thought.output_tokens) == (240, 72)


@pytest.mark.parametrize(
    "script", [gemini.says(CUT, finish="MAX_TOKENS"), gemini.candidate("MAX_TOKENS")]
)
async def test_an_answer_cut_by_its_budget_is_retried_with_more_room_and_never_repaired(
    thinker: AdkCognition, server: GeminiServer, script: Script
) -> None:
    """Public case 61: MAX_TOKENS with half an answer, or with none because thinking used it up."""
    server.script.append(script)
    thought = await thinker.think(READING)
    assert isinstance(thought.value, Notes)
    assert all("Launch is on Fri" not in quote.text for quote in thought.value.quotes)
    rooms = [asked.body["generationConfig"]["maxOutputTokens"] for asked in server.ledger]
    assert rooms == [16_384, 32_768]

    server.script.extend([script, script])
    error = await refused(thinker)
    assert error.fields["kind"] == "truncated"
    assert "Launch is on Fri" not in str(error)


async def test_an_escalation_is_a_result(thinker: AdkCognition, server: GeminiServer) -> None:
    server.script.append(
        gemini.says('{"answer": {"result": "escalation", "reason": "Unreadable."}}')
    )
    thought = await thinker.think(READING)
    assert thought.value == Escalation(reason="Unreadable.")


async def test_the_wait_that_the_provider_asks_for_is_passed_on(
    thinker: AdkCognition, server: GeminiServer
) -> None:
    server.script.append(gemini.throttled(12.5))
    assert (await refused(thinker)).fields["retry_after_seconds"] == 12.5
    server.script.append(gemini.failing(503, "UNAVAILABLE", {"retry-after": "7"}))
    assert (await refused(thinker)).fields["retry_after_seconds"] == 7.0
    server.script.append(gemini.failing(503, "UNAVAILABLE", {"retry-after": "soon"}))
    assert "retry_after_seconds" not in (await refused(thinker)).fields


async def test_a_wrong_key_is_a_credential_error_that_does_not_show_it(
    server: GeminiServer,
) -> None:
    settings = Settings(
        _env_file=None, gemini_api_key=SecretStr("wrong-key-42"), gemini_base_url=server.address
    )
    thinker = choose(settings)
    error = await refused(thinker)
    await thinker.close()
    assert error.fields["kind"] == "credential"
    assert "wrong-key-42" not in f"{error} {error.fields} {error.__cause__} {error.__context__}"


async def test_a_reset_or_refused_connection_is_busy() -> None:
    async with gemini.resetting() as address:
        settings = Settings(
            _env_file=None, gemini_api_key=SecretStr(gemini.KEY), gemini_base_url=address
        )
        thinker = choose(settings)
        assert (await refused(thinker)).fields["kind"] == "busy"
    error = await refused(thinker)
    await thinker.close()
    assert (error.fields["kind"], error.fields["detail"]) == ("busy", "ConnectError")


async def test_a_slow_model_is_left_at_the_deadline(server: GeminiServer) -> None:
    server.hold = asyncio.Event()
    settings = Settings(
        _env_file=None, gemini_api_key=SecretStr(gemini.KEY), gemini_base_url=server.address
    )
    thinker = choose(settings, deadline_seconds=0.2)
    error = await refused(thinker)
    assert (error.fields["kind"], error.fields["detail"]) == ("busy", "no answer within 0.2 s")
    await thinker.close()


async def test_a_cancelled_thought_hangs_up(thinker: AdkCognition, server: GeminiServer) -> None:
    server.hold = asyncio.Event()
    thought = asyncio.ensure_future(thinker.think(READING))
    await server.arrived.wait()
    thought.cancel()
    with pytest.raises(asyncio.CancelledError):
        await thought
    await asyncio.wait_for(server.left.wait(), timeout=30)
    server.hold.set()


async def test_neither_prompt_nor_body_nor_key_is_logged(
    thinker: AdkCognition, server: GeminiServer, caplog: pytest.LogCaptureFixture
) -> None:
    """INV-20, with every logger at its most talkative."""
    with caplog.at_level(logging.DEBUG):
        await thinker.think(READING)
        scripts: tuple[Script, ...] = (
            gemini.failing(503, "UNAVAILABLE"),
            gemini.raw(f"<p>{SOURCE}</p>"),
            lambda _: {},
        )
        for script in scripts:
            server.script.append(script)
            await refused(thinker)
    said = "\n".join([caplog.text, *(str(record.args) for record in caplog.records)])
    assert "httpcore" in {record.name.partition(".")[0] for record in caplog.records}
    for secret in ("launch of Foo", "twelve fixes", "one agent of an operations bot"):
        assert secret not in said
    assert gemini.KEY not in said
