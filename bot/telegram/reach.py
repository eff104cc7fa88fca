"""Which chats can be reached: bindings that lose, regain and move; the fallback of a lost card.

Keeps: a chat that does not accept is tried once and then not again until it is heard of; what it
should have told goes to the tenant's administrators; a group that became a supergroup keeps its
cards, and its old ID grants nothing.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from bot.telegram import address
from runtime.domain import card as cards
from runtime.domain import people
from runtime.domain.card import Card, card_id
from runtime.domain.people import Binding, Role
from runtime.domain.values import DIRECTORY, Scope, Tenant, identity
from runtime.engine.marks import dirty
from runtime.ports import Ask, Create, Put, Reads, Store, Write
from runtime.stores.collections import BINDINGS, CARDS, ITEMS, MEMBERS

ADMINS_MAX: Final = 20
RESTORED_MAX: Final = 100
HOPS_MAX: Final = 4
UNDELIVERED: Final = "undelivered:"


async def binding_of(reads: Reads | Store, chat: str) -> Binding | None:
    """The binding of a chat, where it is now."""
    found = await reads.get(BINDINGS.key(DIRECTORY, chat))
    for _ in range(HOPS_MAX):
        if found is None or found.moved_to is None:
            return found
        found = await reads.get(BINDINGS.key(DIRECTORY, found.moved_to))
    return found


async def where(reads: Reads | Store, destination: str) -> tuple[str, Binding | None]:
    """Where a destination is now (its chat may have moved), and its chat's binding."""
    chat = address.chat_of(destination)
    binding = await binding_of(reads, chat)
    if binding is None or binding.id == chat:
        return destination, binding
    return address.redirect(destination, binding.id), binding


async def moved(reads: Reads, old: int, new: int, now: datetime) -> list[Write]:
    """The chat `old` goes on as `new`. Saying it twice, or from both sides, changes nothing."""
    known = await reads.get(BINDINGS.key(DIRECTORY, address.chat_id(old)))
    if known is None or known.moved_to is not None or old == new:
        return []
    there = await reads.get(BINDINGS.key(DIRECTORY, address.chat_id(new)))
    before, after = people.move(known, address.chat_id(new), now)
    writes: list[Write] = [Put(BINDINGS.key(DIRECTORY, before.id), before)]
    if there is None:
        writes.append(Create(BINDINGS.key(DIRECTORY, after.id), after))
    return writes


async def lost(reads: Reads, scope: Scope, card: Card, reason: str, now: datetime) -> list[Write]:
    """A card's chat does not accept it: the card rests, and the administrators are told instead."""
    rests = cards.unreachable(card, reason[:300], now)
    writes: list[Write] = [Put(CARDS.key(scope, card.id), rests)]
    writes += told(scope, card, reason, now)
    if isinstance(scope, Tenant) and card.subject == "item":
        writes.extend(await _fallback(reads, scope, card, now))
    return writes


def told(scope: Scope, card: Card, reason: str, now: datetime) -> list[Write]:
    """The marker from which a needs-you item is made; a lost card about a lost card makes none."""
    if not isinstance(scope, Tenant) or card.subject_id.startswith(UNDELIVERED):
        return []
    serial = f"{card.id}:{identity(reason, now.isoformat())[:16]}"
    return [dirty(scope, "card", card.id, now, serial)]


async def _fallback(reads: Reads, scope: Tenant, card: Card, now: datetime) -> list[Write]:
    """The same item in the private chats of the administrators that can be reached."""
    item = await reads.get(ITEMS.key(scope, card.subject_id))
    if item is None or not item.open:
        return []
    page = await reads.find(
        Ask(MEMBERS, "by_role", scope, equals=(int(Role.ADMIN),), limit=ADMINS_MAX)
    )
    writes: list[Write] = []
    for row in page.rows:
        target, binding = row.record.id, await binding_of(reads, row.record.id)
        if target == address.chat_of(card.destination) or binding is None:
            continue
        key = CARDS.key(scope, card_id(card.subject, card.subject_id, target))
        if binding.unreachable_since is not None or await reads.get(key) is not None:
            continue
        copy = Card(
            id=key.id,
            subject=card.subject,
            subject_id=card.subject_id,
            destination=target,
            wanted=card.wanted,
            due_at=now,
            created_at=now,
        )
        writes.append(Create(key, copy))
    return writes


async def unreachable(reads: Reads, destination: str, reason: str, now: datetime) -> list[Write]:
    """The binding of a chat that does not accept."""
    _, binding = await where(reads, destination)
    if binding is None or binding.unreachable_since is not None:
        return []
    return [Put(BINDINGS.key(DIRECTORY, binding.id), people.lose(binding, reason, now))]


async def regained(reads: Reads, scope: Tenant, chat: str, now: datetime) -> list[Write]:
    """A chat was heard again: what still waits there is sent."""
    binding = await reads.get(BINDINGS.key(DIRECTORY, chat))
    if binding is None or binding.unreachable_since is None:
        return []
    writes: list[Write] = [Put(BINDINGS.key(DIRECTORY, chat), people.regain(binding))]
    page = await reads.find(
        Ask(CARDS, "at_place", scope, equals=(chat, "unreachable"), limit=RESTORED_MAX)
    )
    for row in page.rows:
        asks = await _still_asks(reads, scope, row.record)
        # A reply of long ago would say what was so then; it is not sent any more.
        after = cards.lose_message(row.record, now) if asks else cards.settled(row.record)
        writes += [Put(row.key, after), *told(scope, after, "heard again", now)]
    return writes


def tried_again(scope: Scope, card: Card, now: datetime) -> list[Write]:
    """A person wants a lost card sent once more."""
    again = cards.lose_message(card, now)
    return [Put(CARDS.key(scope, card.id), again), *told(scope, again, "tried again", now)]


def let_go(scope: Scope, card: Card, now: datetime) -> list[Write]:
    """A person has seen that a card was lost, and leaves it."""
    return [Put(CARDS.key(scope, card.id), cards.settled(card)), *told(scope, card, "left", now)]


async def _still_asks(reads: Reads, scope: Tenant, card: Card) -> bool:
    if card.subject != "item":
        return card.subject in {"job", "outcome"}
    item = await reads.get(ITEMS.key(scope, card.subject_id))
    return item is not None and item.open
