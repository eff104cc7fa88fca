"""The strict reading of answers: what is one object of the agreed shape, and nothing else is."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.agent.answers import (
    ANSWER_CHARS_MAX,
    SHAPES,
    NotesSaid,
    Refusal,
    asked_schema,
    read,
)
from runtime.domain.projection import Agent
from runtime.domain.proposal import ChatAnswer, Escalation, Review
from tests.emulators.gemini import SCHEMA_FIELDS

GOOD = '{"answer":{"result":"notes","title":"T","quotes":[{"id":"F1","text":"One."}]}}'


def kind(text: str) -> str:
    """The kind of the refusal of a text."""
    found = read(text, "reader")
    assert isinstance(found, Refusal), found
    return found.kind


def test_a_plain_object_is_read_with_blanks_around_it() -> None:
    answer = read(f" \n{GOOD}\r\n", "reader")
    assert isinstance(answer, NotesSaid)
    assert answer.quotes[0].text == "One."


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "empty"),
        (" \n", "empty"),
        (f"```json\n{GOOD}\n```", "fenced"),
        (f"```\n{GOOD}\n```", "fenced"),
        (f"Here you are: {GOOD}", "fenced"),
        (f"<thinking>hm</thinking>{GOOD}", "fenced"),
        (f"{GOOD}{GOOD}", "fenced"),
        (f"{GOOD}\nDone.", "fenced"),
        (f"{GOOD},", "fenced"),
        ("\ufeff" + GOOD, "fenced"),
        (GOOD[:-1], "schema"),
        (GOOD.replace('"F1"', "1"), "schema"),
        (GOOD.replace('"One."', "true"), "schema"),
        (GOOD.replace('"T"', "null"), "schema"),
        (GOOD.replace('"T"', "NaN"), "schema"),
        (GOOD.replace('"F1"', '"G1"'), "schema"),
        (GOOD.replace('"One."', '""'), "schema"),
        (GOOD.replace('"One."', '"\\ud83d"'), "schema"),
        (GOOD.replace('"title":"T"', '"title":"T","title":"U"'), "schema"),
        (GOOD.replace('"title":"T"', '"title":"T","start":"2026-02-31"'), "schema"),
        (GOOD.replace('"notes"', '"analysis"'), "schema"),
        (GOOD.replace('"result":"notes",', ""), "schema"),
        (f"[{GOOD}]", "schema"),
        ('"text"', "schema"),
        ("[" * 100_000, "schema"),
        ('{"answer":' * 20_000, "schema"),
    ],
)
def test_everything_else_is_refused_with_its_kind(text: str, expected: str) -> None:
    assert kind(text) == expected


def test_the_length_bound_is_exact() -> None:
    for length, accepted in ((-1, True), (0, True), (1, False)):
        text = GOOD + " " * (ANSWER_CHARS_MAX + length - len(GOOD))
        assert isinstance(read(text, "reader"), NotesSaid) is accepted


def test_a_refusal_names_our_fields_and_never_what_the_model_wrote() -> None:
    found = read(GOOD.replace('"title"', '"secret-plan"'), "reader")
    assert isinstance(found, Refusal)
    assert "secret" not in found.detail
    found = read(GOOD.replace('"One."', '{"secret": 1}'), "reader")
    assert found == Refusal("schema", "answer.notes.quotes.0.text: string_type")


@pytest.mark.parametrize("agent", SHAPES)
def test_every_agent_may_escalate(agent: Agent) -> None:
    answer = read('{"answer":{"result":"escalation","reason":"Help."}}', agent)
    assert answer == Escalation(reason="Help.")


def test_each_agent_answers_in_its_own_shape_only() -> None:
    review = Review(verdict="ready", findings=())
    text = json.dumps({"answer": review.model_dump(mode="json")})
    assert read(text, "reviewer") == review
    assert isinstance(read(text, "chat"), Refusal)
    answer = ChatAnswer(text="Hi.")
    assert read(json.dumps({"answer": answer.model_dump()}), "chat") == answer


@given(st.text(max_size=200))
def test_no_text_makes_the_reader_fail(text: str) -> None:
    assert isinstance(read(text, "writer"), Refusal)


@given(st.integers(0, len(GOOD) - 1))
def test_no_beginning_of_an_answer_is_an_answer(length: int) -> None:
    assert isinstance(read(GOOD[:length], "reader"), Refusal)


def nodes(schema: dict[str, Any]) -> list[dict[str, Any]]:
    """The schema and everything inside it."""
    children = [*schema.get("properties", {}).values(), *schema.get("anyOf", ())]
    children += [schema["items"]] if "items" in schema else []
    return [schema, *(node for child in children for node in nodes(child))]


@pytest.mark.parametrize("agent", SHAPES)
def test_the_asked_schema_is_structure_that_gemini_knows(agent: Agent) -> None:
    found = nodes(asked_schema(agent))
    assert len(found) > 5
    for node in found:
        assert set(node) <= SCHEMA_FIELDS
        assert not set(node) & {"maxItems", "minLength", "maxLength", "pattern", "default"}
        if "properties" in node:
            assert node["required"] == node["propertyOrdering"] == list(node["properties"])
    names = {name for node in found for name in node.get("properties", {})}
    assert "start" not in names, "a model cannot count characters"
