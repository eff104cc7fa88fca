"""What a model may answer, per agent: the shape that is asked for and the strict reading of it.

Every answer is one JSON object `{"answer": ...}` holding the agent's result or an escalation. The
shape sent to a model carries structure only: bounds and patterns make Gemini refuse a schema ("too
many states for serving"), so they are enforced here. Nothing is repaired: an answer is read
strictly or refused with its kind.

A model cannot count characters, so it is never asked for positions: a quote is its exact text, and
`bot.agent.placing` finds where that stands. Refusal details name fields of ours, never what a model
wrote (INV-20).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal, NoReturn

from pydantic import BaseModel, Field, ValidationError, create_model

from runtime.domain.projection import Agent
from runtime.domain.proposal import (
    ChatAnswer,
    Draft,
    Escalation,
    Line,
    Review,
    Short,
    Strategy,
)
from runtime.domain.values import Record

ANSWER_CHARS_MAX: Final = 400_000
JSON_SPACE: Final = " \t\n\r"


class Said(Record):
    """A quote as a model gives it: its number and its exact text."""

    id: Annotated[str, Field(pattern=r"^F[0-9]{1,5}$")]
    text: Line


class NotesSaid(Record):
    """Exact pieces of the shown part of the source, most telling first."""

    result: Literal["notes"] = "notes"
    title: Annotated[str, Field(max_length=300)] = ""
    quotes: Annotated[tuple[Said, ...], Field(max_length=40)]


class AnalysisSaid(Record):
    """The source, understood: the quotes that carry it, most telling first."""

    result: Literal["analysis"] = "analysis"
    title: Short
    topics: Annotated[tuple[Short, ...], Field(max_length=12)]
    summary: Annotated[tuple[str, ...], Field(min_length=1, max_length=8)]
    quotes: Annotated[tuple[Said, ...], Field(min_length=1, max_length=80)]


Answer = NotesSaid | AnalysisSaid | Strategy | Draft | Review | ChatAnswer | Escalation
"""What was read from a model, before quotes are placed."""

SHAPES: Final[dict[Agent, type[Record]]] = {
    "reader": NotesSaid,
    "analyst": AnalysisSaid,
    "strategist": Strategy,
    "writer": Draft,
    "reviewer": Review,
    "chat": ChatAnswer,
}


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why an answer is not accepted. `detail` is fixed words and names of ours."""

    kind: str
    detail: str


def _envelope(agent: Agent) -> type[BaseModel]:
    shape = SHAPES[agent]
    either = Annotated[shape | Escalation, Field(discriminator="result")]  # type: ignore[valid-type]  # the table's value is the type
    return create_model(f"Answer_{agent}", __base__=Record, answer=(either, ...))


ENVELOPES: Final[dict[Agent, type[BaseModel]]] = {agent: _envelope(agent) for agent in SHAPES}


# --- reading ----------------------------------------


class _DuplicateKeyError(ValueError):
    """An object names a key twice; which one counts is nobody's to guess."""


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise _DuplicateKeyError
    return found


def _constant(_: str) -> NoReturn:
    raise _DuplicateKeyError


def read(text: str, agent: Agent) -> Answer | Refusal:
    """The answer in `text`, or why it is refused. Pure."""
    if len(text) > ANSWER_CHARS_MAX:
        return Refusal("schema", f"longer than {ANSWER_CHARS_MAX} characters")
    body = text.strip(JSON_SPACE)
    if not body:
        return Refusal("empty", "no text")
    refused = _framing(body)
    if refused is not None:
        return refused
    try:
        envelope = ENVELOPES[agent].model_validate_json(body, strict=True)
    except ValidationError as error:
        return Refusal("schema", _blame(error, agent))
    answer: Answer = envelope.answer  # type: ignore[attr-defined]  # the created model's one field
    return answer


def _framing(body: str) -> Refusal | None:
    """Why this is not exactly one JSON object, or None."""
    decoder = json.JSONDecoder(object_pairs_hook=_pairs, parse_constant=_constant)
    try:
        value, end = decoder.raw_decode(body)
    except (_DuplicateKeyError, RecursionError) as error:
        return Refusal("schema", f"not plain JSON: {type(error).__name__.lstrip('_')}")
    except ValueError:
        if body.startswith("{"):
            return Refusal("schema", "the object is not JSON")
        return Refusal("fenced", "text before the object")
    if body[end:].strip(JSON_SPACE):
        return Refusal("fenced", "text after the object")
    if not isinstance(value, dict):
        return Refusal("schema", "not an object")
    return None


def _blame(error: ValidationError, agent: Agent) -> str:
    """Where and how the first failure lies, in names of ours only."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    known = _names(agent)
    path = [str(part) if isinstance(part, int) or part in known else "?" for part in first["loc"]]
    return f"{'.'.join(path)}: {first['type']}"


def _names(agent: Agent) -> frozenset[str]:
    found = {"answer"}
    for model in (SHAPES[agent], Escalation):
        schema = model.model_json_schema()
        parts = [schema, *schema.get("$defs", {}).values()]
        for part in parts:
            found.update(part.get("properties", {}))
        found.add(str(model.model_fields["result"].default))
    return frozenset(found)


# --- asking ----------------------------------------


def asked_schema(agent: Agent) -> dict[str, Any]:
    """The shape as a Gemini schema: structure only, every field required, in written order."""
    whole = ENVELOPES[agent].model_json_schema()
    return _plain(whole, whole.get("$defs", {}))


def _plain(node: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    if "$ref" in node:
        return _plain(definitions[node["$ref"].rpartition("/")[2]], definitions)
    choices = node.get("oneOf", node.get("anyOf"))
    if choices:
        return {"anyOf": [_plain(choice, definitions) for choice in choices]}
    if "const" in node:
        return {"type": "STRING", "enum": [node["const"]]}
    made: dict[str, Any] = {"type": node["type"].upper()}
    if "enum" in node:
        made["enum"] = list(node["enum"])
    if "items" in node:
        made["items"] = _plain(node["items"], definitions)
    if "properties" in node:
        names = list(node["properties"])
        made["properties"] = {
            name: _plain(child, definitions) for name, child in node["properties"].items()
        }
        made["required"] = names
        made["propertyOrdering"] = names
    return made
