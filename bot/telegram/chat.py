"""Plain chat: its operation, the words asked, and the answer as a notice.

The agent answers from a projection; it can point at a bot command, but nothing it says is run.
"""

from __future__ import annotations

import json
from typing import Final

from bot.telegram import address
from bot.telegram.commandline import words_of
from bot.telegram.html import escape
from bot.telegram.notices import notice
from bot.telegram.updates import Json, mapping, message_of, sender
from runtime.domain.event import Event
from runtime.domain.operation import Goal, Operation, Pending, succeed
from runtime.domain.proposal import ChatAnswer
from runtime.domain.values import identity
from runtime.engine.thinking import Escalated, Thinker, anything
from runtime.engine.work import Handler, Step, Work
from runtime.errors import CognitionError, InvariantBroken
from runtime.ports import Reads
from runtime.stores.collections import EVENTS

CHAT: Final = "chat.answer"
ATTEMPTS_MAX: Final = 3
NO_ANSWER: Final = (
    "I could not answer: the model gave no usable answer ({kind}). Nothing was changed. Ask again "
    "later; /needs and /jobs say how things stand without it."
)
ACCEPTANCE: Final = ("the answer rests on what the projection shows",)


def update_of(event: Event) -> Json:
    """The update that an event keeps."""
    return mapping(json.loads(event.payload))


def asked(event: Event) -> str:
    """The words of a chat message: what the compiler shows as the question."""
    return words_of(message_of(update_of(event)))[0]


def answering(intake: Operation, event: Event, lane: str) -> Operation:
    """The operation that answers a chat message, in the chat's own order of answers."""
    return Operation(
        id=f"{intake.id}:chat",
        kind=CHAT,
        goal=Goal(kind=CHAT, digest=identity(CHAT, event.id, event.payload_digest, *ACCEPTANCE)),
        acceptance=ACCEPTANCE,
        event=event.id,
        cause=intake.id,
        correlation=intake.correlation,
        trace=intake.trace,
        lane=lane,
        lane_order=intake.lane_order,
        in_lane=lane,
        attempts_max=ATTEMPTS_MAX,
        created_at=event.received_at,
        state=Pending(ready_at=event.received_at),
    )


def chat_handler(thinker: Thinker) -> Handler:
    """The handler of `chat.answer`."""

    async def handle(work: Work) -> None:
        event = await work.store.get(EVENTS.key(work.scope, work.operation.event or ""))
        if event is None:
            raise InvariantBroken(invariant="INV-1", detail=f"{work.operation.id} has no event")
        try:
            answer, model = await thinker.think(work, "chat", "answer", ChatAnswer, anything)
            text = f"{escape(answer.text)}\n\n<i>{escape(model)}</i>"
        except CognitionError as error:
            if work.operation.attempt < work.operation.attempts_max:
                raise
            text = NO_ANSWER.format(kind=escape(str(error.fields.get("kind"))))
        except Escalated as escalated:
            text = f"I need a person for this: {escape(escalated.reason)}"
        who = sender(update_of(event))
        to = address.destination(who.chat or 0, who.thread)
        reply_to = None if who.private else who.message

        async def body(reads: Reads, current: Operation) -> Step[None]:
            del reads
            now = work.now()
            said = notice(work.scope, f"{current.id}:answer", to, text, now, reply_to=reply_to)
            return Step(None, (said,), succeed(current, now))

        await work.commit(body)

    return handle
