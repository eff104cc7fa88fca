"""The offline chat agent: stored rows in sentences, and a plain word about what it is.

It reports what the projection shows and understands a question only by job numbers and shared
words. It cannot run, approve or promise anything.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from bot.agent.material import Material
from bot.agent.telling import terms
from runtime.domain.proposal import ChatAnswer

ANSWER_CHARS_MAX: Final = 3_500
ROWS_MAX: Final = 12
_NUMBER: Final = re.compile(r"#?\b(\d{1,6})\b")

Row = dict[str, Any]


def answer(shown: Material, model: str) -> ChatAnswer:
    """What is known about the jobs that the question names, or about all that are shown."""
    question = "\n".join(shown.texts("question"))
    jobs, items = shown.rows("jobs"), shown.rows("items")
    named = [job for job in jobs if _names(question, job)]
    parts = _about(named, items) if named else _overview(jobs, items)
    parts.append(
        f"I am {model}, an offline model: I repeat what the records say and understand little "
        "else. /needs lists what waits for you, /jobs lists the jobs, /new starts one."
    )
    return ChatAnswer(text=_fitting(parts))


def _overview(jobs: Sequence[Row], items: Sequence[Row]) -> list[str]:
    if not jobs and not items:
        return ["No job is known here yet."]
    parts = [f"{_counted(len(jobs), 'open job')} in view."]
    parts += [_job(job) for job in jobs[:ROWS_MAX]]
    parts += _left(len(jobs), "jobs")
    parts.append(
        f"{_counted(len(items), 'item')} waiting for a person:"
        if items
        else "Nothing waits for you."
    )
    parts += [_item(item) for item in items[:ROWS_MAX]]
    parts += _left(len(items), "items")
    return parts


def _about(named: Sequence[Row], items: Sequence[Row]) -> list[str]:
    parts: list[str] = []
    for job in named[:ROWS_MAX]:
        parts.append(_job(job))
        own = [item for item in items if _belongs(item, job)]
        parts += [_item(item) for item in own] or ["Nothing of it waits for you."]
    return parts


def _names(question: str, job: Row) -> bool:
    """Whether the question names the job by its number or by two words of its title."""
    if str(job.get("number")) in _NUMBER.findall(question):
        return True
    title = set(terms(str(job.get("title", ""))))
    return bool(title) and len(title.intersection(terms(question))) >= min(2, len(title))


def _belongs(item: Row, job: Row) -> bool:
    """Whether an item is about a job, as far as the shown lines say."""
    title = str(job.get("title") or "")
    said = f"{item.get('title')} {item.get('reason')} "
    return f"#{job.get('number')} " in said or bool(title and title in said)


def _job(job: Row) -> str:
    steps = ""
    if isinstance(job.get("total_steps"), int):
        steps = f", {job.get('completed_steps')} of {job['total_steps']} steps done"
    state = str(job.get("lifecycle", "")).replace("_", " ")
    return f"#{job.get('number')} {_line(job.get('title'))}: {state}, at {job.get('stage')}{steps}."


def _item(item: Row) -> str:
    return f"• {str(item.get('kind', '')).replace('_', ' ')}: {_line(item.get('title'))}"


def _line(value: object) -> str:
    return " ".join(str(value or "without a title").split())[:200]


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _left(count: int, noun: str) -> list[str]:
    return [f"… and {count - ROWS_MAX} more {noun}."] if count > ROWS_MAX else []


def _fitting(parts: Sequence[str]) -> str:
    """All parts, or the first ones and the last one where they are too long together."""
    kept = list(parts)
    while len("\n".join(kept)) > ANSWER_CHARS_MAX and len(kept) > 1:
        kept.pop(-2)
    return "\n".join(kept)[:ANSWER_CHARS_MAX]
