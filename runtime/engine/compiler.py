"""The context compiler: current durable state → one projection. The only way to a model.

Keeps INV-8: everything is read from the store, in one read-only transaction, so the inputs are one
moment of the truth; text windows are fetched afterwards, verified, and could not have changed. How
much is read depends on the kind of agent, never on how long a history the job has.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from runtime.domain.artifact import Artifact
from runtime.domain.event import Event
from runtime.domain.inputs import BUDGET_CHARS, Inputs
from runtime.domain.manifest import project
from runtime.domain.material import Material, Omission, reading_plan
from runtime.domain.operation import Operation
from runtime.domain.projection import Agent, Projection
from runtime.domain.values import Scope, Tenant
from runtime.engine import gathering
from runtime.engine.facts import facts_of
from runtime.engine.snapshot import Snapshot, snapshot
from runtime.engine.spill import Spill
from runtime.engine.work import Step, Work
from runtime.errors import BadInput, InvariantBroken, ScopeViolation
from runtime.ports import Create, Reads, Store
from runtime.stores.collections import PROJECTIONS

__all__ = ["Compiler", "Excerpt", "asked", "reading_plan"]


@dataclass(frozen=True, slots=True)
class Excerpt:
    """A window of a text artifact, in characters."""

    artifact: str
    start: int
    count: int


def asked(event: Event) -> str:
    """The question in a stored event: the text of a JSON payload, or the whole payload."""
    try:
        payload = json.loads(event.payload)
    except ValueError:
        return event.payload
    text = payload.get("text") if isinstance(payload, dict) else None
    return text if isinstance(text, str) else event.payload


class Compiler:
    """Compiles and stores projections.

    `question` finds what a person asked in the stored event: the transport knows where it stands.
    """

    def __init__(self, spill: Spill, question: Callable[[Event], str] = asked) -> None:
        self._spill = spill
        self._question = question

    async def compile(
        self,
        store: Store,
        scope: Scope,
        operation: Operation,
        agent: Agent,
        *,
        step: str,
        model: str,
        excerpts: Sequence[Excerpt] = (),
        budget_chars: int | None = None,
    ) -> Projection:
        """One projection of what is true now.

        Args:
            store: a handle scoped to `scope`.
            scope: the tenant.
            operation: says which operation at which epoch; everything of it is read again.
            agent: who is to read it.
            step: which step of the operation it is for.
            model: the model's own name.
            excerpts: windows of text artifacts; a reader without any gets the window of its step.
            budget_chars: another limit than the agent's own.

        Raises:
            FenceLost: the operation is not at this epoch.
            ProjectionOverflow: the authority part does not fit.
            ArtifactError: a text is missing, not ready, expired or damaged.
        """
        if not isinstance(scope, Tenant):
            raise ScopeViolation(key=f"operations/{operation.id}", scope=scope.path)
        taken = await snapshot(store, scope, operation.fence, agent, self._question)
        if agent == "reader" and not excerpts:
            excerpts = (await self._window(store, scope, taken, step),)
        materials, omissions = await self._gather(store, scope, taken, agent, excerpts)
        facts = facts_of(taken, scope)
        asked_for = {"agent": agent, "step": step, "model": model}
        shown = {"materials": tuple(materials), "omissions": (*taken.omissions, *omissions)}
        budget = {"budget_chars": budget_chars or BUDGET_CHARS[agent]}
        return project(Inputs(**facts, **asked_for, **shown, **budget))

    async def persist(self, work: Work, projection: Projection) -> None:
        """Store what proves the projection, by the newest claim only.

        Raises:
            FenceLost: a newer claim exists.
            InvariantBroken: another projection has this ID.
        """
        key = PROJECTIONS.key(work.scope, projection.id)
        record = projection.record

        async def body(reads: Reads, current: Operation) -> Step[None]:
            del current
            known = await reads.get(key)
            if known is None:
                return Step(None, (Create(key, record),))
            if known != record:
                raise InvariantBroken(invariant="INV-8", detail=f"{key.path} is another projection")
            return Step(None)

        await work.commit(body)

    async def _gather(
        self,
        store: Store,
        scope: Tenant,
        taken: Snapshot,
        agent: Agent,
        excerpts: Sequence[Excerpt],
    ) -> tuple[list[Material], list[Omission]]:
        """The material of this agent, and what it does not get to see."""
        found = list(gathering.said_by_people(taken))
        omissions: list[Omission] = []
        if agent == "chat":
            found += gathering.chat(taken, self._question)
        if agent == "analyst":
            source = await self._source(store, scope, taken)
            noted, missing = gathering.notes(taken, source)
            found += noted
            omissions += missing
        found += gathering.bodies(taken)
        for excerpt in excerpts:
            window = await self._spill.read_window(
                store, scope, excerpt.artifact, excerpt.start, excerpt.count
            )
            found.append(gathering.excerpt(window, taken.job))
        return [*found, *gathering.reports(taken)], omissions

    async def _source(self, store: Store, scope: Tenant, taken: Snapshot) -> Artifact:
        """The source text's record, as evidence now."""
        id_ = "" if taken.job is None else taken.job.source.text or ""
        if not id_:
            raise BadInput(operation=taken.operation.id, cause="its job has no source text")
        return await self._spill.evidence(store, scope, id_)

    async def _window(self, store: Store, scope: Tenant, taken: Snapshot, step: str) -> Excerpt:
        """The window of the reading plan that a step is named for."""
        source = await self._source(store, scope, taken)
        plan = reading_plan(source.chars or 0)
        found = gathering.READ_STEP.match(step)
        index = int(found[1]) if found else len(plan)
        if index >= len(plan):
            raise BadInput(step=step, cause="not a step of the reading plan")
        return Excerpt(source.id, plan[index].start, len(plan[index]))
