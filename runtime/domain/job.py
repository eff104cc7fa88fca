"""Jobs: a piece of work the operator cares about, its stages and its control state.

The stages are a table: what follows what is decided here and nowhere else. A job's lifecycle word
is derived with a bias to safety (uncertain > needs you > paused or cancelled > failed > scheduled >
settled > active).
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, Field, PlainSerializer

from runtime.domain.revision import RevisionKind, RevisionRef
from runtime.domain.values import Digest, Id, Record, UtcTime

Stage = Literal[
    "read",  # the source becomes text, stored whole
    "analyse",
    "strategise",
    "decide_strategy",  # waits for a person
    "write",
    "review",
    "decide_draft",  # waits for a person
    "export",  # the effect
    "verify",
    "done",
]

STAGES: Final[tuple[Stage, ...]] = (
    "read",
    "analyse",
    "strategise",
    "decide_strategy",
    "write",
    "review",
    "decide_draft",
    "export",
    "verify",
    "done",
)

STEP_WORDS: Final[dict[Stage, str]] = {
    "read": "Source read",
    "analyse": "Analysed",
    "strategise": "Strategy proposed",
    "decide_strategy": "Strategy approved",
    "write": "Draft written",
    "review": "Draft reviewed",
    "decide_draft": "Draft approved",
    "export": "Content pack exported",
    "verify": "Verified",
    "done": "Done",
}


NOTE_CHARS_MAX: Final = 300


class Running(Record):
    """Work goes on."""

    name: Literal["running"] = "running"


class Done(Record):
    """Everything asked for happened and was verified."""

    name: Literal["done"] = "done"
    at: UtcTime


class Stopped(Record):
    """Ended without its result: rejected by a person, failed, or cancelled."""

    name: Literal["stopped"] = "stopped"
    how: Literal["rejected", "failed", "cancelled", "expired"]
    at: UtcTime
    reason: str


class NeedsPerson(Record):
    """A stage cannot go on without a person; the item says why."""

    name: Literal["needs_person"] = "needs_person"
    stage: Stage
    reason: str
    at: UtcTime


JobState = Annotated[Running | Done | Stopped | NeedsPerson, Field(discriminator="name")]

TRANSITIONS: Final[dict[str, tuple[str, ...]]] = {
    "running": ("done", "stopped", "needs_person"),
    "needs_person": ("running", "stopped"),
    "done": (),
    "stopped": (),
}


class Step(Record):
    """A stage that became true, when, and in a few words what came of it."""

    stage: Stage
    at: UtcTime
    note: Annotated[str, Field(max_length=NOTE_CHARS_MAX)] = ""


Heads = Annotated[
    Mapping[RevisionKind, RevisionRef],
    AfterValidator(MappingProxyType),
    PlainSerializer(dict, return_type=dict[RevisionKind, RevisionRef]),
]
"""The current revision of each kind: a mapping that cannot change, so that readers may share it."""


class Source(Record):
    """What the job works on. `raw` is the artifact as it came, `text` the converted one."""

    kind: Literal["file", "link", "text"]
    name: Annotated[str, Field(max_length=300)]
    declared_type: Annotated[str, Field(max_length=200)] = ""
    link: Annotated[str, Field(max_length=2_000)] = ""
    file: Annotated[str, Field(max_length=300)] = ""
    """The messenger's own name for the file, until it is downloaded."""
    raw: Id | None = None
    text: Id | None = None
    text_digest: Digest | None = None
    text_chars: int = 0


class Job(Record):
    """One piece of work. `home` is the destination (opaque to the runtime) it reports to.

    `effort` counts revisions asked for by a person; `heads` are the current revisions by kind.
    """

    id: Id
    number: int
    title: Annotated[str, Field(max_length=300)]
    brief: Annotated[str, Field(max_length=4_000)] = ""
    home: Id
    by: Id
    source: Source
    stage: Stage = "read"
    steps: tuple[Step, ...] = ()
    heads: Heads = Field(default_factory=lambda: MappingProxyType({}))
    approval: Id | None = None
    command: Id | None = None
    receipt: Id | None = None
    verification: Id | None = None
    operation: Id | None = None
    """The operation that carries the current stage."""
    control_epoch: int = 0
    correlation: Id
    created_at: UtcTime
    updated_at: UtcTime
    state: JobState = Running()


def following(stage: Stage) -> Stage:
    """The stage after `stage`; done stays done."""
    index = STAGES.index(stage)
    return STAGES[min(index + 1, len(STAGES) - 1)]


def advance(job: Job, note: str, now: datetime) -> Job:
    """The job's current stage became true; it stands at the next. A longer note is cut."""
    step = Step(stage=job.stage, at=now, note=note[:NOTE_CHARS_MAX])
    return job.model_copy(
        update={"stage": following(job.stage), "steps": (*job.steps, step), "updated_at": now}
    )


def return_to(job: Job, stage: Stage, now: datetime) -> Job:
    """Go back, e.g. to a decision about an edited draft; later steps stop counting."""
    kept = tuple(step for step in job.steps if STAGES.index(step.stage) < STAGES.index(stage))
    return job.model_copy(update={"stage": stage, "steps": kept, "updated_at": now})


def finish(job: Job, now: datetime) -> Job:
    """Running → done."""
    return _leave(job, Done(at=now), now)


def stop(
    job: Job, how: Literal["rejected", "failed", "cancelled", "expired"], reason: str, now: datetime
) -> Job:
    """Unfinished → stopped. Terminal states absorb."""
    return _leave(job, Stopped(how=how, at=now, reason=reason), now)


def need_person(job: Job, reason: str, now: datetime) -> Job:
    """Running → needs_person at its current stage."""
    return _leave(job, NeedsPerson(stage=job.stage, reason=reason, at=now), now)


def go_on(job: Job, now: datetime) -> Job:
    """Needs_person → running."""
    return _leave(job, Running(), now)


def _leave(job: Job, state: JobState, now: datetime) -> Job:
    if state.name not in TRANSITIONS[job.state.name]:
        return job
    return job.model_copy(update={"state": state, "updated_at": now})
