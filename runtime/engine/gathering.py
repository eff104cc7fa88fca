"""Gathering: from a snapshot to the material of one agent. Pure, but for the text windows given.

Ranks say what is kept longest when the budget is short: what people said, then the body that the
agent works from, then the quotes under it, then what providers said in words.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, Literal

from runtime.domain.approval import Approval, Rejected
from runtime.domain.artifact import Artifact
from runtime.domain.canonical import canonical_text
from runtime.domain.event import Event
from runtime.domain.feed import JobShell, NeedsYouItem
from runtime.domain.job import Job
from runtime.domain.journal import ModelCall
from runtime.domain.material import (
    Material,
    Omission,
    body_text,
    foremost,
    material,
    reading_plan,
    unread,
)
from runtime.domain.proposal import Analysis, Notes, Strategy
from runtime.domain.revision import Revision
from runtime.domain.values import Trust, time_text
from runtime.engine.snapshot import Snapshot
from runtime.engine.windows import TextWindow

RANK: Final = {
    "question": 0,
    "brief": 0,
    "decision": 1,
    "strategy": 5,
    "draft": 10,
    "source": 10,
    "items": 10,
    "jobs": 15,
    "analysis": 20,
    "notes": 20,
    "report": 60,
}

READ_STEP: Final = re.compile(r"read:([0-9]{1,4})\Z")


def said_by_people(snapshot: Snapshot) -> Iterator[Material]:
    """The operator's brief and the reasons of rejections."""
    job = snapshot.job
    if job is not None and job.brief:
        yield material(
            "brief",
            f"jobs/{job.id}",
            job.brief,
            trust=Trust.OPERATOR,
            rank=RANK["brief"],
            cut="chars",
        )
    for approval in snapshot.approvals:
        if isinstance(approval.state, Rejected) and approval.state.reason:
            yield _decision(approval, approval.state)


def bodies(snapshot: Snapshot) -> Iterator[Material]:
    """The bodies of current revisions; quotes that the strategy builds on come first."""
    points: tuple[str, ...] = ()
    for revision in snapshot.bodies:
        if isinstance(revision.body, Strategy):
            points = revision.body.points
    for revision in snapshot.bodies:
        body = revision.body
        shown = foremost(body, points) if isinstance(body, Analysis) else body
        yield _body(revision, body_text(shown))


def notes(snapshot: Snapshot, source: Artifact) -> tuple[list[Material], list[Omission]]:
    """The newest notes of each planned window, and what was not read."""
    newest: dict[int, ModelCall] = {}
    for call in sorted(snapshot.calls, key=lambda each: (each.at, each.id)):
        if found := READ_STEP.match(call.step):
            newest[int(found[1])] = call
    plan = reading_plan(source.chars or 0)
    shown: list[Material] = []
    missing: list[Omission] = []
    for index, window in enumerate(plan):
        last = newest.get(index)
        if last is not None and isinstance(last.thought.value, Notes):
            shown.append(_notes(last, last.thought.value))
        else:
            missing.append(_gap(source, window, "no result", "read this window again"))
    missing += [
        _gap(source, gap, "not read", "read these characters of the artifact")
        for gap in unread(plan, source.chars or 0)
    ]
    return shown, missing


def excerpt(window: TextWindow, job: Job | None) -> Material:
    """A window of a text, as shown to a reader."""
    artifact = window.artifact
    named = job is not None and job.source.text == artifact.id
    return Material(
        kind="source",
        record=f"artifacts/{artifact.id}",
        label=job.source.name if job is not None and named else artifact.file_name,
        trust=artifact.trust,
        start=window.start,
        total=artifact.chars or 0,
        whole=artifact.sha256 or "",
        text=window.text,
        rank=RANK["source"],
        cut="chars",
    )


def reports(snapshot: Snapshot) -> Iterator[Material]:
    """What providers and verifications said in words."""
    for receipt in snapshot.receipts:
        said = canonical_text({"reference": receipt.reference, "detail": receipt.detail})
        yield _report(f"receipts/{receipt.id}", said)
    for look in snapshot.verifications:
        yield _report(f"verifications/{look.id}", canonical_text({"evidence": look.evidence}))


def chat(snapshot: Snapshot, question: Callable[[Event], str]) -> Iterator[Material]:
    """What the chat agent works from: the question, what waits for a person, the open jobs."""
    if snapshot.event is not None:
        yield material(
            "question",
            f"events/{snapshot.event.id}",
            question(snapshot.event),
            trust=snapshot.event.trust,
            rank=RANK["question"],
            cut="chars",
        )
    if snapshot.items:
        yield _lines("items", [_item(item) for item in snapshot.items])
    if snapshot.shells:
        yield _lines("jobs", [_shell(shell) for shell in snapshot.shells])


def _decision(approval: Approval, state: Rejected) -> Material:
    return material(
        "decision",
        f"approvals/{approval.id}",
        state.reason,
        trust=Trust.OPERATOR,
        rank=RANK["decision"],
        label=f"{approval.kind} rejected",
        cut="chars",
    )


def _body(revision: Revision, text: str) -> Material:
    return material(
        "revision",
        f"revisions/{revision.id}",
        text,
        trust=revision.trust,
        rank=RANK[revision.kind],
        label=f"{revision.kind} {revision.number}",
        cut="whole" if revision.kind == "strategy" else "lines",
    )


def _notes(call: ModelCall, value: Notes) -> Material:
    return material(
        "notes",
        f"model_calls/{call.id}",
        body_text(value),
        trust=Trust.MODEL,
        rank=RANK["notes"],
        label=call.step,
        cut="lines",
    )


def _gap(
    source: Artifact, window: range, why: Literal["no result", "not read"], how: str
) -> Omission:
    return Omission(
        record=f"artifacts/{source.id}",
        label="source text",
        start=window.start,
        end=window.stop,
        why=why,
        how=how,
    )


def _report(record: str, text: str) -> Material:
    return material("report", record, text, trust=Trust.PROVIDER, rank=RANK["report"])


def _lines(kind: Literal["items", "jobs"], rows: Sequence[dict[str, Any]]) -> Material:
    """Rows of stored state. Their titles come from outside, so the block is trusted no further."""
    text = "\n".join(canonical_text(row) for row in rows)
    return material(kind, kind, text, trust=Trust.EXTERNAL, rank=RANK[kind], cut="lines")


def _item(item: NeedsYouItem) -> dict[str, Any]:
    return {
        "kind": item.kind,
        "job": item.job,
        "title": item.title,
        "reason": item.reason,
        "since": time_text(item.created_at),
        "due": None if item.due_at is None else time_text(item.due_at),
    }


def _shell(shell: JobShell) -> dict[str, Any]:
    return {
        "number": shell.number,
        "title": shell.title,
        "open": shell.open,
        "lifecycle": shell.lifecycle,
        "stage": shell.stage,
        "completed_steps": shell.completed_steps,
        "total_steps": shell.total_steps,
        "needs_you": shell.attention,
        "last_progress": time_text(shell.last_progress_at),
    }
