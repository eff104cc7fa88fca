"""Delivery: the only sender. Cards that are due are brought to show what is stored.

Keeps: one card is one conversation of commits (`sending.py`); cards of one chat go out one after
the other in the order they were made, chats side by side, and none waits for another's slow
answers; a 429 or an unreachable network holds back that chat only; a card that cannot be shown is
given up by itself and said, and what stands behind it goes out. One delivery loop per bot, by
lease, so that two processes do not reorder a chat. If the lease's clock were wrong, the card's own
state would still let each send happen once.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

import structlog

from bot.telegram import address
from bot.telegram.sending import Errand, Sendings, given_up, sent_by
from runtime.domain.card import Card
from runtime.engine.kit import Kit
from runtime.engine.services import Holder, Stop
from runtime.engine.spill import Spill
from runtime.errors import (
    ArtifactError,
    BadInput,
    Contention,
    HarmoniaError,
    StoreUnavailable,
)
from runtime.ports import Ask, Commit, Content, Delivery, Found, Messenger, Reads
from runtime.stores.collections import ARTIFACTS, CARDS
from runtime.stores.scoped import Scoped

PAGE: Final = 200
PAGES_MAX: Final = 5
CHATS_AT_ONCE: Final = 16
STEPS_MAX: Final = 64
"""Messages of one card in one round: its pieces, and a few repeats."""
IDLE_SECONDS: Final = 0.5
LEASE_TERM: Final = timedelta(seconds=6)
RENEW_SECONDS: Final = 2.0
PAUSE_SECONDS_MAX: Final = 30.0
FAULT_SECONDS: Final = 1.0
"""How long a chat waits when the store did not answer."""

log = structlog.get_logger()


class Deliverer:
    """Sends and edits cards. `wake` may be called after a commit, to be quick."""

    def __init__(
        self, kit: Kit, messenger: Messenger, key: bytes, bot_id: int, spill: Spill | None = None
    ) -> None:
        """Keep the ports.

        Args:
            kit: the engine's ports; the store is asked across tenants.
            messenger: the way out.
            key: the secret from which buttons' tokens are made.
            bot_id: whose deliveries these are; names the lease.
            spill: reads files that notices carry.
        """
        self._kit = kit
        self._messenger = messenger
        self._sendings = Sendings(key)
        self._spill = spill
        self._holder = Holder(kit, f"telegram-delivery:{bot_id}", LEASE_TERM)
        self._woken = asyncio.Event()
        self._gate = asyncio.Semaphore(CHATS_AT_ONCE)
        self._serving: dict[str, asyncio.Task[None]] = {}
        self._held_back: dict[str, datetime] = {}
        self._renewed_at = float("-inf")

    def wake(self) -> None:
        """Something may be due: look now instead of at the next tick."""
        self._woken.set()

    async def run(self, stop: Stop) -> None:
        """Deliver until asked to stop, and bring begun cards to their end."""
        try:
            await self._rounds(stop)
            await asyncio.gather(*self._serving.values())
        finally:
            for task in list(self._serving.values()):
                task.cancel()
        await self._free()

    async def _rounds(self, stop: Stop) -> None:
        """No fault ends the loop."""
        faults = 0
        while not stop.asked:
            try:
                if not await self._leads():
                    await stop.pause(self._kit, RENEW_SECONDS)
                    continue
                self._woken.clear()
                started = await self._look()
                faults = 0
                if not started:
                    await self._idle(stop)
            except Exception as error:  # noqa: BLE001 - a defect in one round must not end the loop; it is reported with its type
                faults += 1
                log.error("delivery_round_broke", error=type(error).__name__)  # noqa: TRY400 - a traceback may quote a draft (INV-20)
                await stop.pause(self._kit, min(PAUSE_SECONDS_MAX, 0.2 * 2 ** min(faults, 8)))

    async def _leads(self) -> bool:
        """Whether the lease is ours; renewed well before its end."""
        if self._kit.clock.monotonic() - self._renewed_at < RENEW_SECONDS:
            return True
        led = await self._holder.take()
        self._renewed_at = self._kit.clock.monotonic() if led else float("-inf")
        return led

    async def _free(self) -> None:
        try:
            await self._holder.free()
        except HarmoniaError as error:
            log.info("lease_not_freed", error=type(error).__name__)

    async def _idle(self, stop: Stop) -> None:
        waits = [
            asyncio.ensure_future(self._kit.clock.sleep(IDLE_SECONDS)),
            asyncio.ensure_future(self._woken.wait()),
            asyncio.ensure_future(stop.wait()),
        ]
        _, pending = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for task in pending:
            task.cancel()
        await asyncio.gather(*pending, return_exceptions=True)

    async def once(self) -> bool:
        """One round over what is due, to its end; whether anything was tried."""
        started = await self._look()
        await asyncio.gather(*started)
        return bool(started)

    async def _look(self) -> list[asyncio.Task[None]]:
        """Begin to serve every chat for which something is due and that is not being served."""
        now = self._kit.clock.now()
        self._held_back = {chat: at for chat, at in self._held_back.items() if at > now}
        chats: dict[str, list[Found[Card]]] = {}
        for found in sorted(await self._due(now), key=_made):
            chat = _chat_of(found.record)
            if chat not in self._held_back and chat not in self._serving:
                chats.setdefault(chat, []).append(found)
        return [self._serve(chat, due) for chat, due in chats.items()]

    def _serve(self, chat: str, due: list[Found[Card]]) -> asyncio.Task[None]:
        task = asyncio.create_task(self._chat(chat, due), name=f"deliver:{chat}")
        self._serving[chat] = task
        task.add_done_callback(lambda _: self._served(chat))
        return task

    def _served(self, chat: str) -> None:
        self._serving.pop(chat, None)
        self._woken.set()

    async def _due(self, now: datetime) -> list[Found[Card]]:
        """What is due. Several pages, so that one chat that is held back does not hide others."""
        due: list[Found[Card]] = []
        after: str | None = None
        for _ in range(PAGES_MAX):
            ask = Ask(
                CARDS,
                "due",
                None,
                equals=(True,),
                before=now + timedelta(microseconds=1),
                after=after,
                limit=PAGE,
            )
            page = await self._kit.store.find(ask)
            for path, cause in page.unreadable:
                log.error("card_unreadable", key=path, cause=cause)
            due.extend(page.rows)
            after = page.cursor
            if after is None:
                break
        return due

    async def _chat(self, chat: str, due: list[Found[Card]]) -> None:
        async with self._gate:
            for found in due:
                pause = await self._card_or_give_up(found)
                if pause > 0:
                    now = self._kit.clock.now()
                    self._held_back[chat] = now + timedelta(seconds=pause)
                    return

    async def _card_or_give_up(self, found: Found[Card]) -> float:
        """As `_card`; a card that cannot be shown must not stand in the way of its chat."""
        try:
            return await self._card(found)
        except (StoreUnavailable, Contention) as error:
            log.warning("card_not_delivered", error=type(error).__name__)
            return FAULT_SECONDS
        except Exception as error:  # noqa: BLE001 - whatever is wrong with one card, the next ones go out; it is reported and said to people
            log.error("card_broke", card=found.record.id, error=type(error).__name__)  # noqa: TRY400 - a traceback may quote a draft (INV-20)
            reason = f"it could not be shown ({type(error).__name__})"
        try:
            now = self._kit.clock.now()
            await self._kit.commit(lambda reads: given_up(reads, found.key, reason, now))
        except HarmoniaError as error:
            log.warning("card_not_given_up", error=type(error).__name__)
            return FAULT_SECONDS
        return 0.0

    async def _card(self, found: Found[Card]) -> float:
        """Bring one card as far as it goes; how long its chat should be left alone."""
        for _ in range(STEPS_MAX):
            errand = await self._begin(found)
            if errand is None:
                return 0.0
            answer = await self._send(errand)
            pause = await self._end(errand, answer)
            if pause > 0:
                return pause
        return 0.0

    async def _begin(self, found: Found[Card]) -> Errand | None:
        tag = self._kit.ids.new("sending")
        begun: Errand | None = None

        async def body(reads: Reads) -> Commit[Errand | None]:
            nonlocal begun
            card = await reads.get(found.key)
            if begun is not None and card is not None and sent_by(card, tag):
                return Commit(begun)
            commit = await self._sendings.begin(reads, found.key, tag, self._kit.clock.now())
            begun = commit.outcome
            return commit

        return await self._kit.commit(body)

    async def _end(self, errand: Errand, answer: Delivery) -> float:
        return await self._kit.commit(
            lambda reads: self._sendings.end(reads, errand, answer, self._kit.clock.now())
        )

    async def _send(self, errand: Errand) -> Delivery:
        content = await self._with_file(errand)
        destination = errand.place.destination
        if errand.message is None:
            return await self._messenger.send(destination, content)
        return await self._messenger.edit(destination, errand.message, content)

    async def _with_file(self, errand: Errand) -> Content:
        """The content with the artifact it carries, verified; or a word about why not."""
        file = None if errand.piece else errand.shown.view.file
        if file is None or self._spill is None:
            return errand.content
        scope = errand.place.key.scope
        store = Scoped(self._kit.store, (scope,))
        try:
            data = await self._spill.whole(store, scope, file)
            artifact = await store.get(ARTIFACTS.key(scope, file))
        except ArtifactError as error:
            note = f"\n\n<i>The file cannot be shown ({type(error).__name__}).</i>"
            return replace(errand.content, text=errand.content.text + note)
        name = artifact.file_name if artifact is not None and artifact.file_name else "file"
        type_ = artifact.content_type if artifact is not None else "application/octet-stream"
        return replace(errand.content, document=(name, type_, data))


def _chat_of(card: Card) -> str:
    """Whose queue a card stands in; one with an impossible destination stands in its own."""
    try:
        return address.chat_of(card.destination)
    except BadInput:
        return card.destination


def _made(found: Found[Card]) -> tuple[datetime, str]:
    """Cards of a chat go out in the order in which they were made."""
    return found.record.created_at, found.record.id
