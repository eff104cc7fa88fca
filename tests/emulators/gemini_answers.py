"""What a careful model would answer, from a request alone: the stand-in behind the emulator.

It shares no code with the offline model: it reads the instruction to see which agent it is, and the
projection's blocks to see what there is.
"""

from __future__ import annotations

import re
from typing import Any

from runtime.domain.material import body_of
from runtime.domain.proposal import Analysis, Draft, Notes, Strategy
from runtime.domain.quoting import unquote
from runtime.errors import BadInput

Json = dict[str, Any]


def careful(instruction: str, message: str) -> Json:
    """A complete answer of the shape that the instruction's agent gives."""
    named = re.search(r'Your internal name is "([a-z]+)"', instruction)
    agent = named[1] if named else "chat"
    bodies = []
    for block in unquote(message):
        try:
            bodies.append(body_of(block.text))
        except BadInput:
            continue
    texts = [block.text for block in unquote(message) if block.header.kind == "source"]
    try:
        return _ANSWERS[agent](texts, bodies)
    except (LookupError, StopIteration):
        return {"result": "escalation", "reason": "The material to work on is not there."}


def _quotes(texts: list[str]) -> list[Json]:
    return [{"id": f"F{at}", "text": text} for at, text in enumerate(texts, start=1)]


def _reader(texts: list[str], _: list[Any]) -> Json:
    lines = [line.strip() for line in texts[0].splitlines() if len(line.strip()) > 20]
    if not lines:
        raise LookupError
    return {"result": "notes", "title": "", "quotes": _quotes(lines[:12])}


def _analyst(_: list[str], bodies: list[Any]) -> Json:
    found = [quote.text for notes in bodies if isinstance(notes, Notes) for quote in notes.quotes]
    return {
        "result": "analysis",
        "title": found[0][:100],
        "topics": [found[0].split()[0]],
        "summary": ["F1"],
        "quotes": _quotes(found[:20]),
    }


def _strategist(_: list[str], bodies: list[Any]) -> Json:
    analysis = next(body for body in bodies if isinstance(body, Analysis))
    return {
        "result": "strategy",
        "headline": analysis.title,
        "audience": "readers of the source",
        "angle": "What is new, in short.",
        "points": [quote.id for quote in analysis.quotes[:4]],
        "rationale": "These are the first things the source says.",
    }


def _writer(_: list[str], bodies: list[Any]) -> Json:
    analysis = next(body for body in bodies if isinstance(body, Analysis))
    strategy = next(body for body in bodies if isinstance(body, Strategy))
    texts = {quote.id: quote.text for quote in analysis.quotes}
    return {
        "result": "draft",
        "title": strategy.headline,
        "sections": [
            {"heading": "", "text": texts[name], "quotes": [name]} for name in strategy.points
        ],
    }


def _reviewer(_: list[str], bodies: list[Any]) -> Json:
    next(body for body in bodies if isinstance(body, Draft))
    return {"result": "review", "verdict": "ready", "findings": []}


def _chat(_: list[str], __: list[Any]) -> Json:
    return {
        "result": "chat_answer",
        "text": "The records show what you see; /needs lists the rest.",
    }


_ANSWERS = {
    "reader": _reader,
    "analyst": _analyst,
    "strategist": _strategist,
    "writer": _writer,
    "reviewer": _reviewer,
    "chat": _chat,
}
