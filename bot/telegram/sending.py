"""The commits around one send or edit: what begins it, and what its answer means for the card.

Keeps the card's rules (`runtime/domain/card.py`): `sending` is stored before anything is sent, and
only that sending may store the answer; a send whose answer was lost is uncertain, an edit is simply
repeated; a chat that does not accept is not tried again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from bot.telegram import address, reach
from bot.telegram.grants import with_buttons
from bot.telegram.view import with_note
from bot.telegram.views import Shown, shown_by
from runtime.domain import card as cards
from runtime.domain.card import Card, CardIdle, CardSending, CardUnreachable
from runtime.domain.grant import Grant
from runtime.domain.values import Scope
from runtime.ports import (
    Commit,
    Content,
    Delivery,
    Gone,
    Key,
    Moved,
    NotEntered,
    Put,
    Reads,
    Refused,
    Sent,
    Throttled,
    Uncertain,
    Unchanged,
    Unreachable,
    Write,
)
from runtime.stores.collections import CARDS, GRANTS

RETRY_BASE_SECONDS: Final = 1.0
RETRY_CEILING_SECONDS: Final = 120.0
_NO_GRANTS: Final[tuple[Grant, ...]] = ()
COPY_NOTE: Final = "Copy: an earlier message may have arrived."
COPY_PRESSED: Final = f"{COPY_NOTE} Whichever you press, it is decided once."


@dataclass(frozen=True, slots=True)
class Place:
    """Which card, by which sending, to where."""

    key: Key[Card]
    tag: str
    destination: str


@dataclass(frozen=True, slots=True)
class Errand:
    """One message to send or edit, as the commit that began it decided."""

    place: Place
    content: Content
    message: int | None
    digest: str
    """Of the view; or, for a piece that goes before it, of all such pieces."""
    piece: bool
    shown: Shown


class Sendings:
    """Begins and ends sendings. `key` signs the buttons' tokens."""

    def __init__(self, key: bytes) -> None:
        """Keep the secret from which tokens are made."""
        self._key = key

    async def begin(
        self, reads: Reads, key: Key[Card], tag: str, now: datetime
    ) -> Commit[Errand | None]:
        """Decide what is to be sent for a card now, and store that it is being sent under `tag`."""
        card = await reads.get(key)
        if card is None or not card.pending or now < card.due_at:
            return Commit(None)
        again: list[Write] = []
        if isinstance(card.state, CardUnreachable):
            if not _may_try_anew(card):
                return Commit(None, (Put(key, cards.rest(card)),))
            card = _anew(card)
            again = reach.told(key.scope, card, "tried anew", now)
        if isinstance(card.state, CardSending) and card.state.new_message:
            # Whoever sent it has died: the message may be there.
            doubted = cards.doubt(card, "its sender ended before the answer", now)
            return Commit(None, await _doubted(reads, key.scope, doubted, now))
        shown = await shown_by(reads, key.scope, card, self._key, now)
        if shown is None:
            return Commit(None, (Put(key, cards.settled(card)), *again))
        card = card.model_copy(update={"wanted": shown.digest})
        if card.message is not None and card.shown == shown.digest:
            return Commit(None, (Put(key, _rested(card, shown)), *shown.writes, *again))
        destination, binding = await reach.where(reads, card.destination)
        if binding is not None and binding.unreachable_since is not None:
            reason = f"the chat does not accept messages: {binding.unreachable}"
            return Commit(None, await reach.lost(reads, key.scope, card, reason, now))
        errand, grants = self._errand(card, shown, Place(key, tag, destination), now)
        begun = cards.sending(card, now, new_message=errand.message is None, tag=tag)
        writes: list[Write] = [Put(key, begun), *shown.writes, *again]
        writes += [Put(GRANTS.key(key.scope, grant.id), grant) for grant in grants]
        return Commit(errand, tuple(writes))

    def _errand(
        self, card: Card, shown: Shown, place: Place, now: datetime
    ) -> tuple[Errand, tuple[Grant, ...]]:
        """The next message of a card: a piece that goes before it, or the card with its buttons."""
        view = shown.view
        new = card.message is None
        there = card.lead_shown if card.lead == view.lead_digest else 0
        piece = new and there < len(view.lead)
        if piece:
            content, grants = view.lead[there], _NO_GRANTS
        else:
            content, grants = with_buttons(view, self._key, card.destination, now)
        if new and (there == 0 if view.lead else True):
            content = replace(content, reply_to=card.reply_to)
        if new and card.copies > 0:
            content = with_note(content, COPY_PRESSED if content.buttons else COPY_NOTE)
        digest = view.lead_digest if piece else shown.digest
        return Errand(place, content, card.message, digest, piece=piece, shown=shown), grants

    async def end(
        self, reads: Reads, errand: Errand, answer: Delivery, now: datetime
    ) -> Commit[float]:
        """Store what came of an errand; how many seconds its chat should be left alone."""
        key = errand.place.key
        scope = key.scope
        card = await reads.get(key)
        if card is None or not sent_by(card, errand.place.tag):
            return Commit(0.0)
        match answer:
            case Sent(message=message):
                return Commit(0.0, (Put(key, _arrived(card, errand, message, now)),))
            case Unchanged():
                there = errand.message or 0
                return Commit(0.0, (Put(key, _arrived(card, errand, there, now)),))
            case Gone() | Refused() if card.subject == "notice" and errand.message is not None:
                # An old message that was to say that it is old: nothing is left to correct.
                return Commit(0.0, (Put(key, cards.settled(card)),))
            case Gone():
                return Commit(0.0, (Put(key, cards.lose_message(card, now)),))
            case Throttled(seconds=seconds):
                until = now + timedelta(seconds=seconds)
                return Commit(seconds, (Put(key, cards.postpone(card, until)),))
            case NotEntered():
                pause = retry_seconds(card.tries)
                until = now + timedelta(seconds=pause)
                return Commit(pause, (Put(key, cards.postpone(card, until)),))
            case Uncertain(reason=reason):
                if errand.message is not None:
                    until = now + timedelta(seconds=retry_seconds(card.tries))
                    return Commit(0.0, (Put(key, cards.postpone(card, until)),))
                doubted = cards.doubt(card, reason, now)
                return Commit(0.0, await _doubted(reads, scope, doubted, now))
            case Moved(chat=chat):
                return Commit(0.0, await _moved(reads, card, errand.place, chat, now))
            case Unreachable(reason=reason):
                writes = await reach.unreachable(reads, card.destination, reason, now)
                writes += await reach.lost(reads, scope, card, reason, now)
                return Commit(0.0, tuple(writes))
            case Refused(reason=reason):
                return Commit(0.0, _refused(scope, card, reason, now))


def _may_try_anew(card: Card) -> bool:
    """Whether a card that was given up is tried again now that it has something new to say.

    An edit may be repeated freely, and what was refused never arrived. Only where copies may lie in
    the chat already no further one is sent.
    """
    return card.message is not None or card.copies <= cards.COPIES_MAX


def _anew(card: Card) -> Card:
    """The card without the try that was refused."""
    copies = max(card.copies - 1, 0)
    return card.model_copy(update={"state": CardIdle(), "copies": copies, "tries": 0})


async def given_up(reads: Reads, key: Key[Card], reason: str, now: datetime) -> Commit[None]:
    """A card that cannot be shown rests until it has something new to say, and people are told."""
    card = await reads.get(key)
    if card is None or not card.pending:
        return Commit(None)
    if isinstance(card.state, CardUnreachable):
        return Commit(None, (Put(key, cards.rest(card)),))
    return Commit(None, _refused(key.scope, card, reason, now))


def sent_by(card: Card, tag: str) -> bool:
    """Whether the card is being sent by exactly this sending."""
    return isinstance(card.state, CardSending) and card.state.tag == tag


def retry_seconds(tries: int) -> float:
    """Growing pauses between tries that were proved not to have arrived."""
    pause: float = RETRY_BASE_SECONDS * 2 ** min(tries, 10)
    return min(RETRY_CEILING_SECONDS, pause)


def _arrived(card: Card, errand: Errand, message: int, now: datetime) -> Card:
    if errand.piece:
        return cards.shown_piece(card, errand.digest, now)
    arrived = cards.shown(card, errand.digest, message, now)
    if arrived.pending or errand.shown.changes_at is None:
        return arrived
    return cards.look_again(arrived, errand.shown.changes_at)


def _rested(card: Card, shown: Shown) -> Card:
    rested = cards.settled(card)
    return rested if shown.changes_at is None else cards.look_again(rested, shown.changes_at)


async def _doubted(reads: Reads, scope: Scope, doubted: Card, now: datetime) -> tuple[Write, ...]:
    """A doubtful send waits; one doubt too many and the card goes elsewhere."""
    if isinstance(doubted.state, CardUnreachable):
        return tuple(await reach.lost(reads, scope, doubted, doubted.state.reason, now))
    return (Put(CARDS.key(scope, doubted.id), doubted),)


async def _moved(
    reads: Reads, card: Card, place: Place, chat: int, now: datetime
) -> tuple[Write, ...]:
    """The chat lives on elsewhere: its binding moves, and the card is sent there once."""
    old = address.number_of(address.chat_of(place.destination))
    writes = await reach.moved(reads, old, chat, now)
    target, _ = await reach.where(reads, card.destination)
    if not writes and target == place.destination:
        # Nobody knows this chat, so there is nothing that could move.
        return tuple(await reach.lost(reads, place.key.scope, card, "the chat has moved", now))
    return (*writes, Put(place.key, cards.postpone(card, now)))


def _refused(scope: Scope, card: Card, reason: str, now: datetime) -> tuple[Write, ...]:
    """The messenger refuses this content; elsewhere it would be refused too."""
    rests = Put(CARDS.key(scope, card.id), cards.unreachable(card, reason, now))
    return (rests, *reach.told(scope, card, reason, now))
