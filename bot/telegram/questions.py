"""Questions: durable conversations, one open per person and place.

Keeps: a question is a record, so it survives restarts; only its person answers it; a newer one
abandons it; closing it closes its card and lets go of what an edit held.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from bot.telegram.notices import question_asked
from runtime.domain import card as cards
from runtime.domain.card import card_id
from runtime.domain.question import (
    QUESTION_OPEN_FOR,
    Abandoned,
    Answered,
    Open,
    Question,
    QuestionExpired,
    QuestionKind,
    close,
    open_at,
    place,
)
from runtime.domain.values import Scope, identity
from runtime.engine.approvals import At, unhold
from runtime.ports import Ask, Create, Put, Reads, Store, Write
from runtime.stores.collections import CARDS, QUESTIONS

OPEN_MAX: Final = 10


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be asked. `subject` is the approval or job it is about."""

    kind: QuestionKind
    subject: str
    text: str
    digest: str | None = None


@dataclass(frozen=True, slots=True)
class Asked:
    """An open question and the message that asks it, once it is there."""

    question: Question
    message: int | None


async def open_question(
    reads: Reads | Store, scope: Scope, destination: str, person: str, now: datetime
) -> Asked | None:
    """The question that this person has to answer here."""
    page = await reads.find(
        Ask(
            QUESTIONS,
            "at_place",
            scope,
            equals=(place(destination, person), "open"),
            limit=OPEN_MAX,
        )
    )
    for row in reversed(page.rows):
        if open_at(row.record, now):
            key = CARDS.key(scope, card_id("question", row.record.id, row.record.destination))
            card = await reads.get(key)
            return Asked(row.record, None if card is None else card.message)
    return None


async def ask(
    at: At, id_: str, wanted: Wanted, who: tuple[str, str], reply_to: int | None
) -> list[Write]:
    """Ask one person in one place; what was open there before is abandoned.

    Args:
        at: the transaction.
        id_: follows from the operation that asks.
        wanted: the question.
        who: destination and person.
        reply_to: the message that led to it.
    """
    destination, person = who
    page = await at.reads.find(
        Ask(
            QUESTIONS,
            "at_place",
            at.scope,
            equals=(place(destination, person), "open"),
            limit=OPEN_MAX,
        )
    )
    writes: list[Write] = []
    for row in page.rows:
        keeps = row.record.kind == "edit_text" and row.record.subject == wanted.subject
        writes += await closed(at, row.record, Abandoned(at=at.now), free=not keeps)
    question = Question(
        id=id_,
        kind=wanted.kind,
        place=place(destination, person),
        destination=destination,
        person=person,
        subject=wanted.subject,
        digest=wanted.digest,
        text=wanted.text,
        asked_at=at.now,
        expires_at=at.now + QUESTION_OPEN_FOR,
        state=Open(),
    )
    writes.append(Create(QUESTIONS.key(at.scope, id_), question))
    writes.append(question_asked(at.scope, id_, destination, at.now, reply_to))
    return writes


async def closed(
    at: At, question: Question, state: Answered | Abandoned | QuestionExpired, *, free: bool = True
) -> list[Write]:
    """Close a question with its card; `free` lets go of the approval that an edit held."""
    done = close(question, state)
    if done == question:
        return []
    writes: list[Write] = [Put(QUESTIONS.key(at.scope, question.id), done)]
    key = CARDS.key(at.scope, card_id("question", question.id, question.destination))
    card = await at.reads.get(key)
    if card is not None:
        wanted = cards.want(card, identity("question", state.name), at.now)
        # A question that waits for its end is due then; closed, it is due now.
        writes.append(Put(key, wanted.model_copy(update={"due_at": min(wanted.due_at, at.now)})))
    if free and question.kind == "edit_text" and not isinstance(state, Answered):
        writes += await unhold(at, question.subject, question.person)
    return writes
