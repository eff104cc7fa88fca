"""The queue of updates: what the bot has yet to hear.

Keeps: an update exists only if its type was allowed when it happened; `update_id` rises by one;
an update leaves the queue only when a later offset confirms it, a webhook answers 2xx, or a day has
passed; a redelivery carries the same `update_id` and body.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from bot.sandbox.ledger import Ledger
from bot.sandbox.model import QueuedUpdate
from bot.sandbox.world import World

DEFAULT_EXCLUDED = frozenset({"chat_member", "message_reaction", "message_reaction_count"})
KINDS = (
    "message",
    "edited_message",
    "channel_post",
    "edited_channel_post",
    "business_connection",
    "business_message",
    "edited_business_message",
    "deleted_business_messages",
    "message_reaction",
    "message_reaction_count",
    "inline_query",
    "chosen_inline_result",
    "callback_query",
    "shipping_query",
    "pre_checkout_query",
    "purchased_paid_media",
    "poll",
    "poll_answer",
    "my_chat_member",
    "chat_member",
    "chat_join_request",
    "chat_boost",
    "removed_chat_boost",
)
KEPT_SECONDS = 24 * 3600
REMEMBERED_MAX = 2000


class Updates:
    """Pending updates, and the recent past for redeliveries."""

    def __init__(self, world: World, ledger: Ledger) -> None:
        self._world = world
        self._ledger = ledger
        self._past: OrderedDict[int, QueuedUpdate] = OrderedDict()
        self._again: list[int] = []
        for update in world.all(QueuedUpdate):
            self._past[update.update_id] = update

    def allowed(self, kind: str) -> bool:
        """Whether the bot asked for this type."""
        chosen = self._world.setup.allowed_updates
        return kind not in DEFAULT_EXCLUDED if chosen is None else kind in chosen

    def allow(self, kinds: Any) -> None:  # noqa: ANN401 - what the caller sent, not yet checked
        """Remember the wanted types; no list: no change; an empty one: the default."""
        if not isinstance(kinds, list) or not all(isinstance(kind, str) for kind in kinds):
            return
        known = tuple(kind for kind in KINDS if kind in {name.lower() for name in kinds})
        setup = self._world.setup
        if (known or None) != setup.allowed_updates:
            self._world.put(setup.model_copy(update={"allowed_updates": known or None}))

    def push(self, kind: str, content: dict[str, Any], lane: str) -> int | None:
        """Queue an update; None when its type is not wanted."""
        if not self.allowed(kind):
            return None
        setup = self._world.setup
        number = setup.next_update_id
        self._world.put(setup.model_copy(update={"next_update_id": number + 1}))
        update = self._world.put(
            QueuedUpdate(
                update_id=number,
                kind=kind,
                body={"update_id": number, kind: content},
                date=self._world.now(),
                lane=lane,
            )
        )
        self._past[number] = update
        while len(self._past) > REMEMBERED_MAX:
            self._past.popitem(last=False)
        return number

    def pending(self) -> list[QueuedUpdate]:
        """What waits, oldest first; what is older than a day is gone."""
        oldest = self._world.now() - KEPT_SECONDS
        waiting = list(self._world.all(QueuedUpdate))
        for update in waiting:
            if update.date < oldest:
                self._world.drop(update)
        return [update for update in waiting if update.date >= oldest]

    def confirm(self, offset: int) -> None:
        """Forget what an offset confirms; a negative one keeps only that many."""
        waiting = self.pending()
        if offset < 0:
            gone = waiting[:offset]
        else:
            gone = [update for update in waiting if update.update_id < offset]
        for update in gone:
            self.settle(update)

    def settle(self, update: QueuedUpdate) -> None:
        """The bot has it."""
        if self._world.get(QueuedUpdate, update.update_id) is not None:
            self._world.drop(update)
        self._ledger.confirmed(update.update_id)

    def take(self, limit: int) -> list[QueuedUpdate]:
        """What to answer to getUpdates now: redeliveries first, then what waits."""
        again = [self._past[number] for number in self._again if number in self._past]
        waiting = [update for update in self.pending() if update.update_id not in self._again]
        answer = (again + waiting)[:limit]
        self._again = self._again[limit:]
        return answer

    def redeliver(self, number: int) -> bool:
        """Deliver a past update once more; False where it is not remembered."""
        if number not in self._past:
            return False
        self._again.append(number)
        self._world.updates_pulse.beat()
        return True

    def take_again(self) -> list[QueuedUpdate]:
        """Redeliveries for a webhook."""
        again = [self._past[number] for number in self._again if number in self._past]
        self._again = []
        return again

    @property
    def latest(self) -> int | None:
        """The newest update ID."""
        return next(reversed(self._past), None)

    def clear(self) -> None:
        """drop_pending_updates."""
        for update in self.pending():
            self._world.drop(update)
