"""getUpdates.

Keeps: one long poll at a time, a newer one ends the older with a conflict; an offset confirms what
is below it before anything is answered; an answer is not a confirmation; polling is refused while a
webhook is set. Unlike the real server it never slows down a caller that polls in a hurry.
"""

from __future__ import annotations

from typing import Any

from bot.sandbox.errors import ApiRefusal
from bot.sandbox.ledger import Ledger
from bot.sandbox.params import Params
from bot.sandbox.updates import Updates
from bot.sandbox.world import World

TIMEOUT_MAX = 50
LIMIT_MAX = 100
WEBHOOK_ACTIVE = (
    "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete "
    "the webhook first"
)
OTHER_POLLER = (
    "Conflict: terminated by other getUpdates request; make sure that only one bot instance is "
    "running"
)
WEBHOOK_SET = "Conflict: terminated by setWebhook request"


class Polling:
    """The place of the one long poll."""

    def __init__(self, world: World, updates: Updates, ledger: Ledger) -> None:
        self._world = world
        self._updates = updates
        self._ledger = ledger
        self._generation = 0

    async def get_updates(self, params: Params) -> list[dict[str, Any]]:
        """Confirm, then answer with what waits, or wait for it."""
        if self._world.setup.webhook is not None:
            raise ApiRefusal(409, WEBHOOK_ACTIVE)
        limit = min(max(params.number("limit", LIMIT_MAX), 1), LIMIT_MAX)
        timeout = min(max(params.number("timeout"), 0), TIMEOUT_MAX)
        self._updates.allow(params.loose_json("allowed_updates"))
        self._updates.confirm(params.number("offset"))
        self._world.commit()
        found = self._answer(limit)
        if found or not timeout:
            return found
        return await self._wait(limit, timeout)

    async def _wait(self, limit: int, seconds: int) -> list[dict[str, Any]]:
        self._generation += 1
        mine = self._generation
        clock = self._world.clock
        pulse = self._world.updates_pulse
        pulse.beat()  # wakes the older poll, which then sees that it is not the last
        ends = clock.monotonic() + seconds
        while True:
            version = pulse.version
            if mine != self._generation:
                raise ApiRefusal(409, OTHER_POLLER)
            if self._world.setup.webhook is not None:
                raise ApiRefusal(409, WEBHOOK_SET)
            found = self._answer(limit)
            if found:
                return found
            if not await pulse.beyond(version, clock, ends - clock.monotonic()):
                return []

    def _answer(self, limit: int) -> list[dict[str, Any]]:
        taken = self._updates.take(limit)
        for update in taken:
            self._ledger.delivered(update.update_id, update.kind, "poll")
        return [update.body for update in taken]
