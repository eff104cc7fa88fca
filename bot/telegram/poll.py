"""Long polling: one poller per token, and an offset that moves only behind commits.

Keeps INV-16: the offset given to Telegram is one past the last update of an unbroken run of stored
ones; with the store down it stays, and the same updates come again. A poller holds the lease
`telegram-poller:{bot}`; a 409 (somebody else polls with this token) is reported, and it backs off.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, Final
from urllib.parse import quote

import structlog
from telegram import Bot
from telegram.error import Conflict, RetryAfter, TelegramError
from telegram.request import HTTPXRequest

from bot.telegram.client import POLL_SECONDS, READ_SECONDS
from bot.telegram.intake import take_anyhow
from bot.telegram.updates import ALLOWED_UPDATES, mapping, number
from runtime.engine.kit import Kit
from runtime.engine.services import Holder, Stop
from runtime.errors import StoreError

PAGE: Final = 100
LEASE_TERM: Final = timedelta(seconds=6)
RENEW_SECONDS: Final = 2.0
PAUSE_SECONDS: Final = 1.0
PAUSE_SECONDS_MAX: Final = 60.0
CONFLICT_PAUSE_SECONDS: Final = 5.0
STANDS_BY: Final = "another process polls with this token; this one stands by"

log = structlog.get_logger()


class Poller:
    """Brings updates by getUpdates. `health` says in a sentence what is wrong, if anything."""

    def __init__(self, kit: Kit, bot: Bot, *, on_taken: Callable[[], None] | None = None) -> None:
        """Hold an initialized bot; who made it shuts it down.

        Args:
            kit: the engine's ports.
            bot: the bot whose updates are wanted.
            on_taken: called after each stored update.
        """
        self._kit = kit
        self._bot = bot
        self._on_taken = on_taken
        self._holder = Holder(kit, f"telegram-poller:{bot.id}", LEASE_TERM)
        self._offset: int | None = None
        self._faults = 0
        self.health = ""
        self._away = STANDS_BY
        # Plain JSON instead of the library's types: unknown fields must survive in the event.
        self._request = HTTPXRequest(
            connection_pool_size=1,
            read_timeout=POLL_SECONDS + READ_SECONDS,
            httpx_kwargs={"trust_env": False},
        )

    async def run(self, stop: Stop) -> None:
        """Poll until asked to stop, whenever the lease is ours."""
        await self.open()
        try:
            while not stop.asked:
                if await self._leads():
                    await self._reign(stop)
                else:
                    self.health = self._away
                    await stop.pause(self._kit, RENEW_SECONDS)
        finally:
            await self.close()

    async def open(self) -> None:
        """Open the connection that polls."""
        await self._request.initialize()

    async def close(self) -> None:
        """Close it."""
        await self._request.shutdown()

    async def _leads(self) -> bool:
        try:
            led = await self._holder.take()
        except StoreError as error:
            log.warning("poller_lease_unread", error=type(error).__name__)
            self._away = f"the store does not answer ({type(error).__name__}); polling waits for it"
            return False
        self._away = STANDS_BY
        return led

    async def _reign(self, stop: Stop) -> None:
        """Poll while the lease is renewed; give it back when asked to stop."""
        lost = asyncio.Event()
        renewing = asyncio.create_task(self._renew(lost))
        try:
            # Another poller may have moved on since: begin at what Telegram has not been told.
            self._offset = None
            while not stop.asked and not lost.is_set():
                if pause := await self._round_or_stop(stop, lost):
                    await stop.pause(self._kit, pause)
        finally:
            renewing.cancel()
            await asyncio.gather(renewing, return_exceptions=True)
        if not lost.is_set():
            await self._free()

    async def _free(self) -> None:
        """A lease that cannot be given back ends by itself; the process ends in order."""
        try:
            await self._holder.free()
        except StoreError as error:
            log.info("lease_not_freed", error=type(error).__name__)

    async def _renew(self, lost: asyncio.Event) -> None:
        while True:
            await self._kit.clock.sleep(RENEW_SECONDS)
            if not await self._leads():
                lost.set()
                return

    async def _round_or_stop(self, stop: Stop, lost: asyncio.Event) -> float:
        """One round, given up early when asked to stop or when the lease is lost.

        Giving up while Telegram is being asked is safe: what it hands out meanwhile is handed out
        again, since the offset did not move.
        """
        asking = asyncio.create_task(self.fetch())
        ends = [asyncio.create_task(stop.wait()), asyncio.create_task(lost.wait())]
        await asyncio.wait({asking, *ends}, return_when=asyncio.FIRST_COMPLETED)
        for task in ends:
            task.cancel()
        if not asking.done():
            asking.cancel()
        await asyncio.gather(asking, *ends, return_exceptions=True)
        if asking.cancelled():
            return 0.0
        updates, pause = asking.result()
        return await self.store(updates) or pause

    async def once(self) -> float:
        """One whole round; how long to pause before the next."""
        updates, pause = await self.fetch()
        return await self.store(updates) or pause

    async def fetch(self, wait_seconds: int = POLL_SECONDS) -> tuple[Sequence[object], float]:
        """Ask Telegram once: the updates, and how long to pause."""
        asked: dict[str, Any] = {
            "timeout": wait_seconds,
            "limit": PAGE,
            "allowed_updates": json.dumps(ALLOWED_UPDATES),
        }
        if self._offset is not None:
            asked["offset"] = self._offset
        line = "&".join(f"{name}={quote(str(value))}" for name, value in asked.items())
        try:
            found: Any = await self._request.post(f"{self._bot.base_url}/getUpdates?{line}")
        except Conflict:
            self.health = "another program polls with this token (409); stop it or use another bot"
            pause = self._backed_off(CONFLICT_PAUSE_SECONDS)
            log.warning("poller_conflict", pause_seconds=round(pause, 1))
            return (), pause
        except RetryAfter as error:
            after = error.retry_after
            seconds = after if isinstance(after, int | float) else after.total_seconds()
            return (), float(seconds)
        except (TelegramError, KeyError, TypeError) as error:
            # The last two: JSON that is no answer of the Bot API, as a broken proxy may send.
            self.health = f"Telegram does not answer ({type(error).__name__})"
            log.info("poll_failed", error=type(error).__name__)
            return (), self._backed_off(PAUSE_SECONDS)
        self.health = ""
        return (found if isinstance(found, list) else ()), 0.0

    def _backed_off(self, base: float) -> float:
        pause: float = min(PAUSE_SECONDS_MAX, base * 2 ** min(self._faults, 6))
        self._faults += 1
        return pause * (0.5 + self._kit.ids.fraction() / 2)

    async def store(self, updates: Sequence[object]) -> float:
        """Accept updates in order; the offset ends behind the last one that is stored."""
        for raw in updates:
            update = mapping(raw)
            try:
                body = repr(raw).encode("utf-8", "replace")
                await take_anyhow(self._kit, self._bot.id, update, body, self._bot.username or "")
            except StoreError as error:
                self.health = f"the store does not accept updates ({type(error).__name__})"
                log.warning("update_not_stored", error=type(error).__name__)
                return self._backed_off(PAUSE_SECONDS)
            if self._on_taken is not None:
                self._on_taken()
            update_id = number(update.get("update_id"))
            if update_id is not None:
                self._offset = update_id + 1
        self._faults = 0
        return 0.0
