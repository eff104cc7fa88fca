"""Pushes updates to the bot's webhook.

Keeps: the updates of one lane (a chat, or a person's presses) are posted in order and one at a
time, different lanes side by side up to max_connections; an update stays until a 2xx answers it;
the secret travels in X-Telegram-Bot-Api-Secret-Token; a method named in the answer is carried out.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Any

import httpx
import orjson

from bot.sandbox.ledger import Ledger
from bot.sandbox.model import QueuedUpdate, Webhook
from bot.sandbox.updates import Updates
from bot.sandbox.world import World

WAITS = (0.5, 1.0, 2.0, 5.0, 10.0)
ANSWER_SECONDS_MAX = 60.0
IDLE_SECONDS = 3600.0
Carry = Callable[[dict[str, Any]], Awaitable[None]]


class Pusher:
    """The loop that delivers to the webhook while one is set."""

    def __init__(
        self,
        world: World,
        updates: Updates,
        ledger: Ledger,
        carry: Carry,
        *,
        waits: tuple[float, ...] = WAITS,
    ) -> None:
        self._world = world
        self._updates = updates
        self._ledger = ledger
        self._carry = carry
        self._waits = waits
        self._busy: dict[str, asyncio.Task[None]] = {}
        self._failures: dict[str, int] = {}

    async def run(self) -> None:
        """Deliver until cancelled, or until the world stops."""
        async with httpx.AsyncClient(timeout=ANSWER_SECONDS_MAX, trust_env=False) as client:
            try:
                while not self._world.updates_pulse.closed:
                    version = self._world.updates_pulse.version
                    hook = self._world.setup.webhook
                    if hook is not None:
                        self._start(client, hook)
                    await self._world.updates_pulse.beyond(version, self._world.clock, IDLE_SECONDS)
            finally:
                tasks = list(self._busy.values())
                for task in tasks:
                    task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await asyncio.gather(*tasks, return_exceptions=True)

    def _start(self, client: httpx.AsyncClient, hook: Webhook) -> None:
        """One task for the head of each idle lane, and one for each redelivery."""
        for update in self._updates.take_again():
            self._spawn(f"again:{update.update_id}:{len(self._busy)}", client, update, once=True)
        for update in self._updates.pending():
            if len(self._busy) >= hook.max_connections:
                return
            if update.lane not in self._busy:
                self._spawn(update.lane, client, update, once=False)

    def _spawn(
        self, lane: str, client: httpx.AsyncClient, update: QueuedUpdate, *, once: bool
    ) -> None:
        task = asyncio.ensure_future(self._deliver(lane, client, update, once=once))
        self._busy[lane] = task
        task.add_done_callback(lambda _: self._freed(lane))

    def _freed(self, lane: str) -> None:
        self._busy.pop(lane, None)
        self._world.updates_pulse.beat()

    async def _deliver(
        self, lane: str, client: httpx.AsyncClient, update: QueuedUpdate, *, once: bool
    ) -> None:
        hook = self._world.setup.webhook
        if hook is None:
            return
        error = await self._post(client, hook, update)
        if not error:
            self._failures.pop(lane, None)
            self._updates.settle(update)
            self._world.commit()
            return
        self._note_error(error)
        if not once:
            failures = self._failures.get(lane, 0)
            self._failures[lane] = failures + 1
            await self._world.clock.sleep(self._waits[min(failures, len(self._waits) - 1)])

    async def _post(self, client: httpx.AsyncClient, hook: Webhook, update: QueuedUpdate) -> str:
        """Post one update; "" when it was accepted, else what went wrong."""
        headers = {"content-type": "application/json"}
        if hook.secret_token:
            headers["X-Telegram-Bot-Api-Secret-Token"] = hook.secret_token
        try:
            answer = await client.post(hook.url, content=orjson.dumps(update.body), headers=headers)
        except httpx.TimeoutException:
            return self._refused(update, "Read timeout expired")
        except httpx.HTTPError:
            return self._refused(update, "Connection refused")
        self._ledger.delivered(update.update_id, update.kind, "webhook", str(answer.status_code))
        if not answer.is_success:
            return f"Wrong response from the webhook: {answer.status_code} {answer.reason_phrase}"
        await self._carry_out(answer)
        return ""

    def _refused(self, update: QueuedUpdate, why: str) -> str:
        self._ledger.delivered(update.update_id, update.kind, "webhook", why)
        return why

    async def _carry_out(self, answer: httpx.Response) -> None:
        """A webhook may answer with a method call."""
        if not answer.content or "json" not in answer.headers.get("content-type", ""):
            return
        try:
            value = orjson.loads(answer.content)
        except orjson.JSONDecodeError:
            return  # a body that is no call is no error; the 2xx stands
        if isinstance(value, dict) and isinstance(value.get("method"), str):
            await self._carry(value)

    def _note_error(self, error: str) -> None:
        setup = self._world.setup
        if setup.webhook is None:
            return
        noted = {"last_error_date": self._world.now(), "last_error_message": error}
        hook = setup.webhook.model_copy(update=noted)
        self._world.put(setup.model_copy(update={"webhook": hook}))
        self._world.commit()
