"""Plain chat: the words asked reach the agent, its answer is a notice, and it runs nothing."""

from __future__ import annotations

import pytest

from bot.telegram.chat import ATTEMPTS_MAX, CHAT, asked, chat_handler
from runtime.domain.projection import Projection
from runtime.domain.proposal import ChatAnswer, Escalation, Result, Thought
from runtime.engine.compiler import Compiler
from runtime.engine.thinking import Thinker
from runtime.engine.worker import Worker
from runtime.errors import CognitionError
from runtime.ports import Ask
from runtime.stores.collections import JOBS
from tests.bot.telegram.front import Front
from tests.world import ACME


class Scripted:
    """A model that says one thing and remembers what it was shown."""

    def __init__(self, says: Result) -> None:
        self.says = says
        self.shown: list[str] = []

    @property
    def model(self) -> str:
        return "scripted-1"

    async def think(self, projection: Projection) -> Thought:
        self.shown.append(projection.text)
        return Thought(value=self.says, model=self.model)


async def answered(front: Front, says: Result) -> tuple[Scripted, str]:
    """Ana asks how it goes; what the model saw and what she was told."""
    await front.pair("ana")
    await front.say("ana", "How does <it> go?")
    model = Scripted(says)
    thinker = Thinker(Compiler(front.spill, asked), model)
    worker = Worker(front.kit, {CHAT: chat_handler(thinker)})
    await worker.idle()
    await worker.drain()
    await front.settle()
    return model, await front.last("ana")


async def test_the_question_is_shown_and_the_answer_names_its_model(front: Front) -> None:
    model, told = await answered(front, ChatAnswer(text="All <quiet>."))
    assert len(model.shown) == 1
    assert "How does" in model.shown[0]
    assert told == "All <quiet>.\n\nscripted-1"


@pytest.mark.parametrize("words", ["/new evil", "/approve 1", "Approve"])
async def test_an_answer_that_reads_like_a_command_runs_nothing(front: Front, words: str) -> None:
    _, told = await answered(front, ChatAnswer(text=words))
    assert words in told
    assert not (await front.kit.store.find(Ask(JOBS, "by_number", ACME))).rows


class Busy:
    """A model that never answers."""

    model = "busy-1"

    async def think(self, projection: Projection) -> Thought:
        raise CognitionError(agent=projection.agent, kind="busy", detail="status 503")


async def test_a_model_that_stays_away_is_said_once_and_not_left_as_silence(front: Front) -> None:
    await front.pair("ana")
    await front.say("ana", "How does it go?")
    thinker = Thinker(Compiler(front.spill, asked), Busy())
    worker = Worker(front.kit, {CHAT: chat_handler(thinker)})
    before = len(await front.seen("ana"))
    for _ in range(ATTEMPTS_MAX):
        await worker.idle()
        await worker.drain()
        front.later(minutes=5)
    await front.settle()
    assert len(await front.seen("ana")) == before + 1
    assert "no usable answer (busy)" in await front.last("ana")
    assert not await worker.idle()


async def test_an_escalation_is_said_as_one(front: Front) -> None:
    _, told = await answered(front, Escalation(reason="I do not know"))
    assert told == "I need a person for this: I do not know"
