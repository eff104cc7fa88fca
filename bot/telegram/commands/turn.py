"""A turn: one update with everything that answering it needs, inside its one transaction.

Keeps: the person's role is read in the transaction that acts (INV-15); replies are notices whose
IDs follow from the operation, so that a repeated attempt says nothing twice.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

from bot.telegram import address
from bot.telegram.notices import notice
from bot.telegram.updates import Sender
from runtime.domain.operation import Operation
from runtime.domain.people import Member
from runtime.domain.values import Directory, Scope, Tenant
from runtime.engine.approvals import At
from runtime.engine.pipeline import TermsMaker
from runtime.engine.spill import Spill
from runtime.errors import InvariantBroken
from runtime.ports import Messenger, Reads, Write


def _nothing() -> None:
    """Nobody waits to be woken."""


def _healthy() -> list[str]:
    return []


@dataclass(frozen=True, slots=True)
class Desk:
    """What every command may use. `wake` tells the deliverer that something may be due."""

    bot_id: int
    bot_username: str
    messenger: Messenger
    spill: Spill
    terms: TermsMaker
    model: str
    key: bytes
    """Signs tokens and makes invitation codes."""
    polls: bool = True
    """Whether updates are polled; otherwise a webhook brings them."""
    wake: Callable[[], None] = _nothing
    health: Callable[[], list[str]] = field(default=_healthy)
    """Sentences about what is not well, for /status."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One update being answered. `member` is the sender's membership as read just now."""

    desk: Desk
    scope: Scope
    reads: Reads
    operation: Operation
    who: Sender
    member: Member | None
    now: datetime

    @property
    def tenant(self) -> Tenant:
        """The tenant, where a turn has one."""
        if isinstance(self.scope, Directory):
            raise InvariantBroken(invariant="INV-18", detail="a directory turn has no tenant")
        return self.scope

    @property
    def destination(self) -> str:
        """Where answers go: the chat, and the topic, in which it was said."""
        return address.destination(self.who.chat or 0, self.who.thread)

    @property
    def person(self) -> str:
        """The sender's identity."""
        return address.chat_id(self.who.person or 0)

    @property
    def at(self) -> At:
        """The place of a decision in this turn."""
        return At(self.reads, self.scope, self.now, f"{self.operation.id}:{self.operation.epoch}")

    def id(self, word: str) -> str:
        """An ID that every attempt of this turn makes the same."""
        return f"{self.operation.id}:{word}"

    def say(self, html: str, word: str = "reply", scope: Scope | None = None) -> Write:
        """A reply; in groups it points at the message it answers."""
        reply_to = None if self.who.private else self.who.message
        return notice(
            scope or self.scope,
            self.id(word),
            self.destination,
            html,
            self.now,
            reply_to=reply_to,
        )
