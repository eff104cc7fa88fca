"""Making cards: notices with a fixed text, questions, documents, and showing one again.

Keeps: a notice's ID follows from what caused it, so that a repeated handler says it once; of the
messages that showed one card in one chat, only the newest goes on saying how things stand (INV-17).
"""

from __future__ import annotations

from datetime import datetime

from runtime.domain.card import Card, Subject, card_id, lose_message, settled
from runtime.domain.values import Scope, identity
from runtime.ports import Create, Put, Reads, Write
from runtime.stores.collections import CARDS

BODY_CHARS_MAX = 60_000
OLD = (
    "<i>This message is not kept up to date any more: another one shows the same. /needs lists "
    "what waits, /jobs the jobs.</i>"
)


def notice(
    scope: Scope,
    id_: str,
    destination: str,
    html: str,
    now: datetime,
    *,
    reply_to: int | None = None,
    file: str | None = None,
) -> Create[Card]:
    """The write that makes a notice.

    Args:
        scope: whose card it is.
        id_: follows from the operation (`{operation.id}:{word}`).
        destination: where it goes.
        html: Telegram HTML made from stored state; any length up to 60,000 characters.
        now: when it was decided.
        reply_to: the message it answers, if that still exists.
        file: an artifact to attach.
    """
    body = html if len(html) <= BODY_CHARS_MAX else html[: BODY_CHARS_MAX - 1] + "…"
    card = _card("notice", identity("notice", id_), destination, now)
    card = card.model_copy(
        update={
            "body": body,
            "file": file,
            "reply_to": reply_to,
            "wanted": identity("notice", body, file or ""),
        }
    )
    return Create(CARDS.key(scope, card.id), card)


def question_asked(
    scope: Scope, question: str, destination: str, now: datetime, reply_to: int | None
) -> Create[Card]:
    """The write that makes a question's card."""
    card = _card("question", question, destination, now)
    card = card.model_copy(update={"reply_to": reply_to, "wanted": identity("question", "open")})
    return Create(CARDS.key(scope, card.id), card)


async def show(
    reads: Reads, scope: Scope, what: tuple[Subject, str], destination: str, now: datetime
) -> list[Write]:
    """Show a job, item or document, given by kind and ID, as a new message in `destination`.

    The message that was the card until now would say for ever what is so today: it is taken back.
    """
    subject, subject_id = what
    id_ = card_id(subject, subject_id, destination)
    key = CARDS.key(scope, id_)
    known = await reads.get(key)
    if known is None:
        return [Create(key, _card(subject, subject_id, destination, now))]
    return [Put(key, lose_message(known, now)), *taken_back(scope, known, now)]


def taken_back(scope: Scope, card: Card, now: datetime) -> list[Write]:
    """The write that makes a card's message say that it is not the card any more, if there is one.

    A notice that is already a message: delivery edits it. A document's message stays, its content
    never changes.
    """
    if card.message is None or card.subject not in {"job", "item"}:
        return []
    made = _card("notice", _old(card, card.message), card.destination, now)
    made = made.model_copy(
        update={"body": OLD, "message": card.message, "wanted": identity("notice", OLD)}
    )
    return [Put(CARDS.key(scope, made.id), made)]


async def given_back(reads: Reads, scope: Scope, card: Card, message: int) -> list[Write]:
    """The write by which a message is the card again: nobody is to call it old any more."""
    key = CARDS.key(scope, card_id("notice", _old(card, message), card.destination))
    known = await reads.get(key)
    return [] if known is None or not known.pending else [Put(key, settled(known))]


def _old(card: Card, message: int) -> str:
    return identity("old", card.id, str(message))


def _card(subject: Subject, subject_id: str, destination: str, now: datetime) -> Card:
    return Card(
        id=card_id(subject, subject_id, destination),
        subject=subject,
        subject_id=subject_id,
        destination=destination,
        wanted=identity(subject, subject_id),
        due_at=now,
        created_at=now,
    )
