"""Thinking: one journaled model call.

A finished call is stored before its result is used: a crash repeats no finished call, and a changed
input is a new call with its own value. Nothing reaches a model except a compiled projection, and a
result that does not hold against the source is refused before it is stored.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from runtime.domain.journal import ModelCall, call_id
from runtime.domain.operation import Operation
from runtime.domain.projection import Agent
from runtime.domain.proposal import Escalation, Result, Thought
from runtime.engine.compiler import Compiler, Excerpt
from runtime.engine.work import Step, Work
from runtime.errors import CognitionError
from runtime.ports import Cognition, Create, Reads
from runtime.stores.collections import MODEL_CALLS

R = TypeVar("R")

Check = Callable[[Result], str | None]
"""Why a result cannot be accepted, or None."""


class Escalated(Exception):
    """An agent said that a person is needed."""

    def __init__(self, reason: str) -> None:
        """Keep the agent's reason."""
        super().__init__(reason)
        self.reason = reason


class Thinker:
    """Asks a model through the compiler and the journal."""

    def __init__(self, compiler: Compiler, cognition: Cognition) -> None:
        """Keep the compiler and the model behind its port."""
        self._compiler = compiler
        self._cognition = cognition

    @property
    def model(self) -> str:
        """The model's own name."""
        return self._cognition.model

    async def think(
        self,
        work: Work,
        agent: Agent,
        step: str,
        expected: type[R],
        check: Check,
        *,
        excerpts: tuple[Excerpt, ...] = (),
    ) -> tuple[R, str]:
        """One result of type `expected` that passed `check`, and the model that gave it.

        Raises:
            Escalated: the agent asks for a person.
            CognitionError: no acceptable result; the attempt may be repeated.
        """
        projection = await self._compiler.compile(
            work.store,
            work.scope,
            work.operation,
            agent,
            step=step,
            model=self._cognition.model,
            excerpts=excerpts,
        )
        id_, stored = await self._known(work, step, projection.basis)
        if stored is None:
            await self._compiler.persist(work, projection)
            thought = await self._cognition.think(projection)
            self._accept(agent, thought.value, expected, check)
            stored = await self._journal(
                work,
                ModelCall(
                    id=id_,
                    operation=work.operation.id,
                    step=step,
                    basis=projection.basis,
                    projection=projection.id,
                    thought=thought,
                    epoch=work.operation.epoch,
                    at=work.now(),
                ),
            )
        value = stored.thought.value
        if isinstance(value, Escalation):
            raise Escalated(value.reason)
        if not isinstance(value, expected):
            raise CognitionError(agent=agent, kind="schema", detail="another type of result")
        return value, stored.thought.model

    async def _known(self, work: Work, step: str, basis: str) -> tuple[str, ModelCall | None]:
        """The call's ID, and the call if it is finished.

        An escalation answered by a person's "try again" is not the last word: each time a person
        let the operation go on, the agent is asked once more, and its new answer counts.
        """
        operation = work.operation
        id_ = call_id(operation.id, step, basis)
        stored = await work.store.get(MODEL_CALLS.key(work.scope, id_))
        for time in range(1, operation.rescues + 1):
            if stored is None or not isinstance(stored.thought.value, Escalation):
                break
            id_ = call_id(operation.id, f"{step}/{time}", basis)
            stored = await work.store.get(MODEL_CALLS.key(work.scope, id_))
        return id_, stored

    def _accept(self, agent: Agent, value: Result, expected: type[R], check: Check) -> None:
        if isinstance(value, Escalation):
            return
        if not isinstance(value, expected):
            raise CognitionError(agent=agent, kind="schema", detail="another type of result")
        if cause := check(value):
            raise CognitionError(agent=agent, kind="ungrounded", detail=cause)

    async def _journal(self, work: Work, call: ModelCall) -> ModelCall:
        """Store the finished call; an equal call that is there already wins."""
        key = MODEL_CALLS.key(work.scope, call.id)

        async def body(reads: Reads, current: Operation) -> Step[ModelCall]:
            del current
            known = await reads.get(key)
            return Step(known) if known is not None else Step(call, (Create(key, call),))

        return await work.commit(body)


def anything(result: Result) -> str | None:
    """A check that accepts every complete result."""
    del result
    return None


__all__ = ["Check", "Escalated", "Thinker", "Thought", "anything"]
