"""Cards: a message that converges to stored state.

Keeps INV-17's record: a card stores the digest of the view it wants shown and of the view it last
showed; what it says is rendered from stored state at delivery. A send whose reply was lost is
uncertain: it waits, then at most `COPIES_MAX` further copies are sent, marked as such, then the
destination counts as unreachable.

    wanted ≠ shown → sending → shown ; sending → uncertain → shown | unreachable

Content that does not fit one message is sent in pieces *before* the card itself (`lead`), so that
the buttons appear only when the whole content is there. Pieces are never edited.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated, Final, Literal

from pydantic import Field

from runtime.domain.values import Digest, Id, Record, UtcTime, identity

COPIES_MAX: Final = 2
UNCERTAIN_WAIT: Final = timedelta(seconds=30)
SENDING_WITHIN: Final = timedelta(seconds=60)

Subject = Literal["job", "outcome", "item", "notice", "question", "document", "invitation"]


class CardIdle(Record):
    """Shown equals wanted, or it waits for its turn (`due_at`)."""

    name: Literal["idle"] = "idle"


class CardSending(Record):
    """A send or edit is under way. If its worker dies, a send becomes uncertain."""

    name: Literal["sending"] = "sending"
    at: UtcTime
    new_message: bool
    tag: Annotated[str, Field(max_length=100)] = ""
    """Of the sending: only it may store the answer."""


class CardUncertain(Record):
    """A send may have arrived."""

    name: Literal["uncertain"] = "uncertain"
    at: UtcTime
    reason: str


class CardUnreachable(Record):
    """The destination does not accept; the item says so elsewhere."""

    name: Literal["unreachable"] = "unreachable"
    at: UtcTime
    reason: str


CardState = Annotated[
    CardIdle | CardSending | CardUncertain | CardUnreachable, Field(discriminator="name")
]

TRANSITIONS: Final[dict[str, tuple[str, ...]]] = {
    "idle": ("sending", "unreachable"),
    "sending": ("idle", "uncertain", "unreachable"),
    "uncertain": ("sending", "idle", "unreachable"),
    "unreachable": ("idle",),  # the destination was heard again
}


class Card(Record):
    """`subject_id` is a job, needs-you item or question; for a notice, `body` is the text itself.

    `body` is Telegram HTML made from stored state when the notice was decided. `file` is an
    artifact to attach; a document attaches the whole content that approval `subject_id` is about;
    an invitation shows the code that operation `subject_id` made, which is stored nowhere.
    `pending` is true while delivery has something to do; `due_at` orders it. `lead` is the digest
    of the pieces that go before the message and `lead_shown` how many of them are there.
    """

    id: Id
    subject: Subject
    subject_id: Id
    destination: Id
    body: Annotated[str, Field(max_length=60_000)] = ""
    file: Id | None = None
    reply_to: int | None = None
    wanted: Digest
    shown: Digest | None = None
    message: int | None = None
    copies: int = 0
    tries: int = 0
    lead: Digest | None = None
    lead_shown: int = 0
    pending: bool = True
    due_at: UtcTime
    created_at: UtcTime
    state: CardState = CardIdle()


def card_id(subject: str, subject_id: str, destination: str) -> str:
    """One card per subject and destination."""
    return identity(subject, subject_id, destination)


def want(card: Card, digest: str, now: datetime) -> Card:
    """The state behind the card changed. Edits collapse to the newest view."""
    if card.wanted == digest:
        return card
    due = card.due_at if card.pending else now
    return card.model_copy(update={"wanted": digest, "pending": True, "due_at": due, "tries": 0})


def sending(card: Card, now: datetime, *, new_message: bool, tag: str = "") -> Card:
    """Delivery begins; stored before anything is sent."""
    return card.model_copy(
        update={
            "state": CardSending(at=now, new_message=new_message, tag=tag),
            "copies": card.copies + (1 if new_message else 0),
            "due_at": now + SENDING_WITHIN,
        }
    )


def shown(card: Card, digest: str, message: int, now: datetime) -> Card:
    """The view with `digest` is visible as `message`. Newer wishes stay pending."""
    return card.model_copy(
        update={
            "shown": digest,
            "message": message,
            "state": CardIdle(),
            "pending": card.wanted != digest,
            "due_at": now,
            "tries": 0,
        }
    )


def shown_piece(card: Card, lead: str, now: datetime) -> Card:
    """One more piece of the lead is there; the next one, or the card itself, is due now."""
    count = card.lead_shown + 1 if card.lead == lead else 1
    return card.model_copy(
        update={
            "lead": lead,
            "lead_shown": count,
            "state": CardIdle(),
            "copies": 0,
            "tries": 0,
            "due_at": now,
        }
    )


def settled(card: Card) -> Card:
    """Nothing to do: what is wanted is shown."""
    return card.model_copy(update={"pending": False, "state": CardIdle()})


def rest(card: Card) -> Card:
    """Nothing to do in this state, whatever is wanted: the destination is given up."""
    return card.model_copy(update={"pending": False})


def look_again(card: Card, at: datetime) -> Card:
    """Shown, but its state changes by itself at `at` (a question that expires)."""
    return card.model_copy(update={"pending": True, "due_at": at})


def postpone(card: Card, until: datetime) -> Card:
    """Nothing was sent; try again from `until` on."""
    copies = card.copies
    if isinstance(card.state, CardSending) and card.state.new_message:
        copies -= 1
    return card.model_copy(
        update={
            "state": CardIdle(),
            "due_at": until,
            "tries": card.tries + 1,
            "copies": max(copies, 0),
        }
    )


def doubt(card: Card, reason: str, now: datetime) -> Card:
    """The reply to a send was lost: wait, then another copy, then give the destination up."""
    if card.copies > COPIES_MAX:
        return unreachable(card, f"no answer after {card.copies} tries: {reason}", now)
    return card.model_copy(
        update={
            "state": CardUncertain(at=now, reason=reason),
            "pending": True,
            "due_at": now + UNCERTAIN_WAIT,
        }
    )


def unreachable(card: Card, reason: str, now: datetime) -> Card:
    """Stop trying here."""
    return card.model_copy(
        update={"state": CardUnreachable(at=now, reason=reason), "pending": False}
    )


def lose_message(card: Card, now: datetime) -> Card:
    """The message to edit is gone: a new one is to be sent."""
    return card.model_copy(
        update={
            "message": None,
            "shown": None,
            "lead": None,
            "lead_shown": 0,
            "copies": 0,
            "tries": 0,
            "state": CardIdle(),
            "pending": True,
            "due_at": now,
        }
    )


def adopt(card: Card, message: int, now: datetime) -> Card:
    """A press came from this message: it is the card now, and is to show what is stored.

    While a delivery is under way its own result decides; a doubt about a send is settled by the
    press, since the message is there.
    """
    if isinstance(card.state, CardSending):
        return card
    if card.message == message and isinstance(card.state, CardIdle):
        return card
    return card.model_copy(
        update={
            "message": message,
            "shown": None,
            "state": CardIdle(),
            "pending": True,
            "due_at": now,
            "tries": 0,
        }
    )
