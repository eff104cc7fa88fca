"""Presses: a token becomes a decision or a truthful refusal, then a toast from what is stored.

Keeps INV-15 (the grant says for which digest the button stood; the role is read in the transaction
that counts the vote) and rule 2: first the state changes or the press is refused, then the toast
is made from the stored state and the card converges to it. A press on any copy decides the one
item, and that message becomes the card.
"""

from __future__ import annotations

from dataclasses import dataclass

from bot.telegram import address, reach
from bot.telegram.commands import jobs
from bot.telegram.commands.people import STRANGER_TOAST
from bot.telegram.commands.turn import Desk, Turn
from bot.telegram.intents import Press
from bot.telegram.notices import given_back, show, taken_back
from bot.telegram.questions import Wanted, ask, closed
from runtime.domain import card as cards
from runtime.domain.approval import (
    AlreadyYours,
    Approval,
    Approved,
    Decided,
    Rejected,
    Vote,
    VoteRefused,
    Voting,
)
from runtime.domain.card import CardUnreachable, Subject, card_id
from runtime.domain.feed import item_id
from runtime.domain.grant import Grant, grant_id, usable
from runtime.domain.people import may
from runtime.domain.question import Abandoned, Open
from runtime.domain.values import Scope, short
from runtime.engine.approvals import hold, vote
from runtime.engine.rescue import SETTLED, give_up, retry
from runtime.ports import Put, Store, Write
from runtime.stores.collections import CARDS, GRANTS, QUESTIONS

UNKNOWN = "This button is not known here any more. /needs shows what waits."
ELSEWHERE = "This button belongs to another chat."
EXPIRED = "This button has expired. /needs shows what waits."
NO_CHAT = "I cannot tell which chat this belongs to. Open the chat with me and use /needs."
SENT_AGAIN = "It is sent again. If its chat still does not accept it, it is listed here anew."
STUCK = ("failed_stage", "escalation", "undelivered")
EDIT_QUESTION = (
    "Send the whole new text, as one message or as a .txt or .md file. Of several lines, the "
    "first becomes the title. Until then nobody else can decide about the old text. In a group, "
    "reply to this message."
)
REASON_QUESTION = (
    "It is rejected. Why? Your answer is kept with the decision. In a group, reply to this message."
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a press led to: the toast, and whether it has to be noticed."""

    toast: str
    alert: bool
    writes: tuple[Write, ...] = ()


async def stands_here(store: Store, scope: Scope, pressed: Press, chat: int) -> bool:
    """Whether the button's grant is for this chat, or for one that moved into it.

    Asks the directory, so it is read before the transaction: a grant's place never changes.
    """
    if not pressed.token:
        return False
    grant = await store.get(GRANTS.key(scope, grant_id(pressed.token)))
    if grant is None:
        return True
    target, _ = await reach.where(store, grant.destination)
    return address.number_of(address.chat_of(target)) == chat


async def pressed(turn: Turn, press: Press, *, here: bool) -> Outcome:
    """Do what a button allows this person, or say why not."""
    id_ = grant_id(press.token)
    grant = await turn.reads.get(GRANTS.key(turn.scope, id_)) if press.token else None
    if grant is None:
        return Outcome(UNKNOWN, alert=True)
    if not here:
        return Outcome(ELSEWHERE, alert=True)
    return await decide(turn, press, grant)


async def decide(turn: Turn, press: Press, grant: Grant) -> Outcome:
    """Do what a grant allows this person, now."""
    if turn.member is None:
        return Outcome(STRANGER_TOAST.format(number=turn.who.person), alert=True)
    match grant.action:
        case "approve" | "reject":
            outcome = await _vote(turn, grant)
        case "edit":
            outcome = await _edit(turn, grant)
        case _ if not usable(grant, turn.now):
            outcome = Outcome(EXPIRED, alert=True)
        case _ if not may(turn.member, grant.role):
            outcome = Outcome(f"This needs the role {grant.role.word}.", alert=True)
        case "show":
            what: tuple[Subject, str] = ("document", grant.subject)
            shown = await show(turn.reads, turn.scope, what, turn.destination, turn.now)
            outcome = Outcome(
                "The whole content follows as a file.", alert=False, writes=tuple(shown)
            )
        case "open":
            waiting = await jobs.waiting_of(turn, grant.subject)
            text = "Here is what waits." if waiting else "Nothing of it waits any more."
            outcome = Outcome(text, alert=False, writes=tuple(waiting))
        case "retry" | "stop":
            outcome = await _rescue(turn, grant)
        case _:
            outcome = await _abandon(turn, grant)
    adopted = await _adopted(turn, press, grant, outcome.writes)
    return Outcome(outcome.toast, outcome.alert, (*outcome.writes, *adopted))


async def _vote(turn: Turn, grant: Grant) -> Outcome:
    verdict = "approve" if grant.action == "approve" else "reject"
    cast = Vote(
        id=turn.operation.event or turn.operation.id,
        person=turn.person,
        display=turn.who.display,
        verdict=verdict,
        digest=grant.digest or "0" * 64,
        at=turn.now,
    )
    said, writes = await vote(turn.at, grant.subject, cast)
    if isinstance(said, Decided) and isinstance(said.approval.state, Rejected):
        wanted = Wanted("reject_reason", grant.subject, REASON_QUESTION, grant.digest)
        who = (turn.destination, turn.person)
        writes += await ask(turn.at, turn.id("question"), wanted, who, turn.who.message)
    return Outcome(told(said), isinstance(said, VoteRefused), tuple(writes))


def told(said: Voting) -> str:
    """The truth about a vote, from the approval as it is stored with it."""
    match said:
        case Decided(approval=approval):
            return _standing(approval)
        case AlreadyYours(approval=approval):
            return f"Counted once already. {_standing(approval)}"
        case VoteRefused(sentence=sentence):
            return sentence


def _standing(approval: Approval) -> str:
    state = approval.state
    if isinstance(state, Approved):
        return f"Approved. Digest {short(approval.digest)}."
    if isinstance(state, Rejected):
        return "Rejected. Nothing is done with it."
    yes = sum(1 for known in approval.votes if known.verdict == "approve")
    return f"Counted: {yes} of {approval.needed} approvals."


async def _edit(turn: Turn, grant: Grant) -> Outcome:
    said, writes = await hold(turn.at, grant.subject, turn.person, grant.digest or "")
    if isinstance(said, VoteRefused):
        return Outcome(said.sentence, alert=True)
    wanted = Wanted("edit_text", grant.subject, EDIT_QUESTION, grant.digest)
    who = (turn.destination, turn.person)
    asked = await ask(turn.at, turn.id("question"), wanted, who, turn.who.message)
    return Outcome("Held for your edit.", alert=False, writes=(*writes, *asked))


async def _abandon(turn: Turn, grant: Grant) -> Outcome:
    question = await turn.reads.get(QUESTIONS.key(turn.scope, grant.subject))
    if question is None or not isinstance(question.state, Open):
        return Outcome("That question is closed already.", alert=False)
    if question.person != turn.person:
        return Outcome("This question is somebody else's.", alert=True)
    writes = await closed(turn.at, question, Abandoned(at=turn.now))
    return Outcome("Left. Nothing was changed.", alert=False, writes=tuple(writes))


async def _rescue(turn: Turn, grant: Grant) -> Outcome:
    """Try again what cannot go on by itself, or leave it: work, or a message that was lost."""
    again = grant.action == "retry"
    card = await turn.reads.get(CARDS.key(turn.scope, grant.subject))
    if card is None:
        done = await (retry if again else give_up)(turn.at, grant.subject, turn.member)
        return Outcome(done.sentence, not done.done, done.writes)
    if not isinstance(card.state, CardUnreachable):
        return Outcome(SETTLED.sentence, alert=True)
    if again:
        writes = reach.tried_again(turn.scope, card, turn.now)
        return Outcome(SENT_AGAIN, alert=False, writes=tuple(writes))
    writes = reach.let_go(turn.scope, card, turn.now)
    return Outcome("Left. It is not listed any more.", alert=False, writes=tuple(writes))


async def _adopted(
    turn: Turn, pressed: Press, grant: Grant, written: tuple[Write, ...]
) -> list[Write]:
    """The message that was pressed is the card from now on."""
    if pressed.message is None:
        return []
    for kind, subject in _subjects(grant):
        key = CARDS.key(turn.scope, card_id(kind, subject, grant.destination))
        if any(write.key == key for write in written):
            continue
        card = await turn.reads.get(key)
        if card is None:
            continue
        adopted = cards.adopt(card, pressed.message, turn.now)
        if adopted == card:
            return []
        writes: list[Write] = [Put(key, adopted)]
        if adopted.message != card.message:
            writes += taken_back(turn.scope, card, turn.now)
            writes += await given_back(turn.reads, turn.scope, card, pressed.message)
        return writes
    return []


def _subjects(grant: Grant) -> tuple[tuple[str, str], ...]:
    """Which card a grant's button may stand on."""
    if grant.action == "abandon":
        return (("question", grant.subject),)
    if grant.action == "open":
        return (("job", grant.subject),)
    stuck = grant.action in {"retry", "stop"}
    kinds = STUCK if stuck else ("approval", "strategy_decision")
    return tuple(("item", item_id(kind, grant.subject)) for kind in kinds)


async def toast(desk: Desk, pressed: Press, outcome: Outcome) -> None:
    """Answer the press, best effort: the card says the same."""
    if pressed.query:
        await desk.messenger.answer(pressed.query, outcome.toast, alert=outcome.alert)
