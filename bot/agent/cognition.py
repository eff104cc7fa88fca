"""Cognition over Google ADK: the one way by which a projection reaches a model.

A thought is one run of one agent on one projection, its answer read strictly. An answer that is
truncated, framed in other text or of another shape is asked for once more: the same projection, a
fixed corrective sentence in the agent's instruction and more room. Then it is a `CognitionError`.
Everything else (blocked, empty, a call, busy, a credential) fails at once; the operation's own
budget decides about later attempts. Nothing is repaired.

An ADK session lives for one run under a name of its own and is deleted after it. Deleting all of
them between two thoughts changes nothing; losing one during a run is an answer that did not come,
kind `busy`, and the operation asks again.
"""

from __future__ import annotations

import asyncio
import importlib
import itertools
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from bot.agent.answers import SHAPES, Refusal, read
from bot.agent.placing import place
from runtime.domain.projection import Agent, Projection
from runtime.domain.proposal import Result, Thought
from runtime.errors import CognitionError

if TYPE_CHECKING:
    from google.adk.events import Event
    from google.adk.models import BaseLlm
    from google.adk.sessions import BaseSessionService

    from bot.agent.team import Team

DEADLINE_SECONDS: Final = 180.0
CORRECTABLE: Final = frozenset({"truncated", "fenced", "schema"})


@dataclass(frozen=True, slots=True)
class Spent:
    """Tokens of one or more model calls."""

    input: int = 0
    output: int = 0

    def __add__(self, other: Spent) -> Spent:
        """Both together."""
        return Spent(self.input + other.input, self.output + other.output)


@dataclass(frozen=True, slots=True)
class Heard:
    """What one run gave: a result or a refusal, what it cost, and how long to wait if known."""

    said: Result | Refusal
    spent: Spent = Spent()
    retry_after_seconds: float | None = None


class AdkCognition:
    """The Cognition port over ADK, for any ADK model."""

    def __init__(
        self,
        model: str,
        sentence: str,
        backend: Callable[[Agent], BaseLlm],
        *,
        deadline_seconds: float = DEADLINE_SECONDS,
        sessions: Callable[[], BaseSessionService] | None = None,
        close: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """`backend` makes the model of an agent, at the first thought; `sentence` describes it."""
        self._close = close
        self._model = model
        self._sentence = sentence
        self._backend = backend
        self._deadline_seconds = deadline_seconds
        self._make_sessions = sessions
        self._team: Team | None = None
        self._runs = itertools.count()

    @property
    def model(self) -> str:
        """The model's own name."""
        return self._model

    def describe(self) -> str:
        """What answers here, in the sentence that operators see."""
        return self._sentence

    async def close(self) -> None:
        """Give back connections; thinking afterwards is a defect of the caller."""
        if self._close is not None:
            await self._close()

    async def think(self, projection: Projection) -> Thought:
        """One typed result. Raises CognitionError for anything else."""
        if projection.agent not in SHAPES:
            raise CognitionError(agent="unknown", kind="unknown_agent", detail="no such agent")
        try:
            async with asyncio.timeout(self._deadline_seconds):
                heard = await self._ask(projection)
        except TimeoutError:
            detail = f"no answer within {self._deadline_seconds:g} s"
            raise CognitionError(agent=projection.agent, kind="busy", detail=detail) from None
        if isinstance(heard.said, Refusal):
            raise _error(projection.agent, heard.said, heard.retry_after_seconds)
        return Thought(
            value=heard.said,
            model=self._model,
            input_tokens=heard.spent.input,
            output_tokens=heard.spent.output,
        )

    async def _ask(self, projection: Projection) -> Heard:
        first = await self._run(projection, corrective=False)
        if not isinstance(first.said, Refusal) or first.said.kind not in CORRECTABLE:
            return first
        second = await self._run(projection, corrective=True)
        return Heard(second.said, first.spent + second.spent, second.retry_after_seconds)

    async def _run(self, projection: Projection, *, corrective: bool) -> Heard:
        team = await self._ready()
        from google.adk.errors.session_not_found_error import SessionNotFoundError
        from google.genai import types

        from bot.agent.team import APP, run_config

        user = projection.operation
        session = f"{projection.agent}-{projection.basis}-{next(self._runs)}"
        events: list[Event] = []
        try:
            run = team.runner(projection.agent, corrective=corrective).run_async(
                user_id=user,
                session_id=session,
                new_message=types.UserContent(projection.text),
                run_config=run_config(),
            )
            async with aclosing(run) as arriving:
                events = [event async for event in arriving]
        except SessionNotFoundError:
            return Heard(Refusal("busy", "the session was lost"))
        finally:
            await team.sessions.delete_session(app_name=APP, user_id=user, session_id=session)
        return _heard(events, projection)

    async def _ready(self) -> Team:
        # Importing ADK takes a second or two; a thread keeps the loop answering meanwhile.
        if self._team is None:
            await asyncio.to_thread(importlib.import_module, "bot.agent.team")
        if self._team is None:
            from google.adk.sessions import InMemorySessionService

            from bot.agent.team import Team

            make = self._make_sessions or InMemorySessionService
            self._team = Team(self._backend, make())
        return self._team


def _heard(events: list[Event], projection: Projection) -> Heard:
    """Read the one judged response of a run."""
    answers = [event for event in events if event.error_code or event.content]
    spent = sum((_spent(event) for event in events), Spent())
    if len(answers) != 1:
        return Heard(Refusal("empty", f"{len(answers)} answers"), spent)
    event = answers[0]
    if event.error_code:
        after = (event.custom_metadata or {}).get("retry_after_seconds")
        return Heard(Refusal(event.error_code, event.error_message or ""), spent, after)
    parts = (event.content.parts if event.content else None) or []
    answer = read("".join(part.text or "" for part in parts), projection.agent)
    return Heard(answer if isinstance(answer, Refusal) else place(answer, projection), spent)


def _spent(event: Event) -> Spent:
    usage = event.usage_metadata
    if usage is None:
        return Spent()
    output = (usage.candidates_token_count or 0) + (usage.thoughts_token_count or 0)
    return Spent(usage.prompt_token_count or 0, output)


def _error(agent: Agent, why: Refusal, after_seconds: float | None) -> CognitionError:
    if after_seconds is None:
        return CognitionError(agent=agent, kind=why.kind, detail=why.detail)
    return CognitionError(
        agent=agent, kind=why.kind, detail=why.detail, retry_after_seconds=after_seconds
    )
