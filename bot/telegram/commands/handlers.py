"""Handlers of `telegram.intake` and `telegram.press`: event → intent → one commit.

Keeps: what is slow (files, artifacts, terms) happens before the commit; the commit answers the
update, ends its operation and reads the sender's role in one transaction; only the intents of
`CROSSING` (and a chat that was heard again) touch the directory and a tenant together.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from bot.telegram import address, reach
from bot.telegram.chat import answering, update_of
from bot.telegram.commands import answers, jobs, people, press
from bot.telegram.commands.turn import Desk, Turn
from bot.telegram.commands.unbound import unbound_intake
from bot.telegram.html import escape
from bot.telegram.intake import INTAKE, PRESS
from bot.telegram.intents import (
    Answer,
    AskNew,
    BindGroup,
    Chat,
    Help,
    Ignore,
    Intent,
    Invite,
    Jobs,
    Moved,
    Needs,
    New,
    Pair,
    Press,
    Reach,
    Refuse,
    ShowJob,
    Status,
    Why,
    WrongAnswer,
)
from bot.telegram.pieces import continues
from bot.telegram.questions import open_question
from bot.telegram.route import Facts, route
from bot.telegram.updates import Json, Sender, sender
from runtime.domain.event import Event
from runtime.domain.operation import Operation, succeed
from runtime.domain.people import Role, may
from runtime.domain.values import DIRECTORY, Directory, Trust
from runtime.engine.spill import fenced_by
from runtime.engine.work import FencedBody, Handler, Step, Work
from runtime.errors import InvariantBroken
from runtime.ports import Create, Put, Reads, Write
from runtime.stores.collections import EVENTS, MEMBERS, OPERATIONS
from runtime.stores.scoped import Scoped

CROSSING: Final = (Pair, Invite, Status, Moved, Reach)
NEEDED: Final[dict[type[object], Role]] = {
    New: Role.APPROVER,
    AskNew: Role.APPROVER,
    Answer: Role.APPROVER,
    Needs: Role.VIEWER,
    Jobs: Role.VIEWER,
    ShowJob: Role.VIEWER,
    Why: Role.VIEWER,
    Status: Role.VIEWER,
    Chat: Role.VIEWER,
    Invite: Role.ADMIN,
}
"""Which role an intent needs; those that are not listed need none."""


def telegram_handlers(desk: Desk) -> dict[str, Handler]:
    """The handlers by operation kind."""

    async def intake(work: Work) -> None:
        event = await _event(work)
        if isinstance(work.scope, Directory):
            await unbound_intake(desk, work, update_of(event))
        else:
            await _intake(desk, work, event)
        desk.wake()

    async def pressed(work: Work) -> None:
        event = await _event(work)
        await _press(desk, work, event)
        desk.wake()

    return {INTAKE: intake, PRESS: pressed}


async def _event(work: Work) -> Event:
    event = await work.store.get(EVENTS.key(work.scope, work.operation.event or ""))
    if event is None:
        raise InvariantBroken(invariant="INV-1", detail=f"{work.operation.id} has no event")
    return event


async def _intake(desk: Desk, work: Work, event: Event) -> None:
    update = update_of(event)
    who = sender(update)
    asked = None
    if who.person is not None and who.chat is not None:
        here = address.destination(who.chat, who.thread)
        asked = await open_question(
            work.store, work.scope, here, address.chat_id(who.person), work.now()
        )
    facts = Facts(
        desk.bot_id,
        desk.bot_username,
        None if asked is None else asked.question,
        None if asked is None else asked.message,
        await continues(work.store, work.scope, desk.bot_id, update),
    )
    intent = route(update, facts)
    made = None
    if isinstance(intent, Answer):
        made = await answers.prepared(desk, work, intent, address.chat_id(who.person or 0))
    if (text := _pasted(intent)) is not None and await _may_start(work, who):
        await _keep(desk, work, text)
    chat = address.chat_id(who.chat or 0)
    binding = await reach.binding_of(work.kit.store, chat)
    silent = binding is not None and binding.unreachable_since is not None
    # Whoever speaks to the bot wants an answer there: the chat is tried again, once.
    heard = silent and not isinstance(intent, Ignore | Reach)
    crossing = isinstance(intent, CROSSING) or heard

    async def body(reads: Reads, current: Operation) -> Step[None]:
        now = work.now()
        member = None
        if who.person is not None:
            member = await reads.get(MEMBERS.key(work.scope, address.chat_id(who.person)))
        turn = Turn(desk, work.scope, reads, current, who, member, now)
        writes: list[Write] = list(await _answered(turn, intent, made, event))
        writes += _renamed(turn, writes)
        if heard:
            writes += await people.restored(turn)
        return Step(None, tuple(writes), succeed(current, now))

    store = Scoped(work.kit.store, (DIRECTORY, work.scope)) if crossing else None
    await work.commit(body, store)


def _renamed(turn: Turn, written: Sequence[Write]) -> list[Write]:
    """A member's display name follows what Telegram says; the number stays the identity."""
    member, display = turn.member, turn.who.display
    if member is None or not display or member.display == display:
        return []
    key = MEMBERS.key(turn.scope, member.id)
    if any(write.key == key for write in written):
        return []
    return [Put(key, member.model_copy(update={"display": display}))]


def _pasted(intent: Intent) -> str | None:
    """The text that an intent makes a source of."""
    source = intent.source if isinstance(intent, New | Answer) else None
    return source.text if source is not None and source.text else None


async def _may_start(work: Work, who: Sender) -> bool:
    """Whether a text is worth keeping; the role is read again in the commit that starts the job."""
    person = address.chat_id(who.person or 0)
    return may(await work.store.get(MEMBERS.key(work.scope, person)), NEEDED[New])


async def _keep(desk: Desk, work: Work, text: str) -> None:
    """Store a pasted text whole, under the name at which the job's first stage looks."""
    job = jobs.job_id(work.operation.id)
    await desk.spill.store(
        work.store,
        work.scope,
        text.encode(),
        job=job,
        content_type="text/plain; charset=utf-8",
        file_name=jobs.TEXT_NAME,
        trust=Trust.EXTERNAL,
        producer="harmonia/telegram",
        retention="source",
        artifact_id=f"{job}:raw",
        commit=fenced_by(work),
    )


async def _answered(
    turn: Turn, intent: Intent, made: answers.Edited | answers.Hint | None, event: Event
) -> Sequence[Write]:
    needed = NEEDED.get(type(intent))
    if needed is not None and not may(turn.member, needed):
        return [people.refused(turn, needed)]
    match intent:
        case Pair(code=code):
            return await people.start_with_code(turn, code, turn.tenant)
        case Help():
            return await people.help_(turn)
        case Status():
            return await people.status(turn)
        case Invite(role=role):
            return await people.invite(turn, role)
        case New(source=source):
            return await jobs.new(turn, source)
        case AskNew():
            return await jobs.ask_new(turn)
        case Needs():
            return await jobs.needs(turn)
        case Jobs(upto=upto):
            return await jobs.jobs(turn, upto)
        case ShowJob(number=number):
            return await jobs.show_job(turn, number)
        case Why(number=number):
            return await jobs.why(turn, number)
        case Answer():
            return await answers.answer(turn, intent, made)
        case WrongAnswer(hint=hint):
            return [turn.say(escape(hint))]
        case Chat():
            lane = f"answers:{turn.who.chat}"
            asked = answering(turn.operation, event, lane)
            return [Create(OPERATIONS.key(turn.scope, asked.id), asked)]
        case Reach(accepts=accepts, reason=reason):
            return await _reach(turn, accepts=accepts, reason=reason)
        case Moved(old=old, new=new):
            return await reach.moved(turn.reads, old, new, turn.now)
        case Refuse(sentence=sentence):
            return [turn.say(escape(sentence))]
        case Ignore() | BindGroup() | Press():
            return []


async def _reach(turn: Turn, *, accepts: bool, reason: str) -> list[Write]:
    if accepts:
        return await people.restored(turn)
    return await reach.unreachable(turn.reads, turn.destination, reason, turn.now)


async def _press(desk: Desk, work: Work, event: Event) -> None:
    update: Json = update_of(event)
    who = sender(update)
    facts = Facts(desk.bot_id, desk.bot_username)
    intent = route(update, facts)
    pressed = intent if isinstance(intent, Press) else Press("", str(update.get("query", "")), None)
    if isinstance(work.scope, Directory) or who.chat is None or who.person is None:
        await work.commit(_ends(work))
        await press.toast(desk, pressed, press.Outcome(press.NO_CHAT, alert=True))
        return
    chat = who.chat

    async def body(reads: Reads, current: Operation) -> Step[press.Outcome]:
        now = work.now()
        member = await reads.get(MEMBERS.key(work.scope, address.chat_id(who.person or 0)))
        turn = Turn(desk, work.scope, reads, current, who, member, now)
        outcome = await press.pressed(turn, pressed, here=here)
        return Step(outcome, outcome.writes, succeed(current, now))

    here = await press.stands_here(work.kit.store, work.scope, pressed, chat)
    outcome = await work.commit(body)
    await press.toast(desk, pressed, outcome)


def _ends(work: Work) -> FencedBody[None]:
    """A press that belongs nowhere: nothing is written but its own end."""

    async def body(reads: Reads, current: Operation) -> Step[None]:
        del reads
        return Step(None, (), succeed(current, work.now()))

    return body
