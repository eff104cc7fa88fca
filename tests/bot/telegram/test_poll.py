"""Polling and the webhook: the transport is told only after the commit (INV-16)."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette

from bot.telegram.poll import Poller
from bot.telegram.setup import MENU, begin_polling, self_check, use_webhook
from bot.telegram.updates import ALLOWED_UPDATES
from bot.web.telegram import BODY_BYTES_MAX, HEADER, telegram_webhook
from runtime.engine.kit import Kit
from runtime.engine.services import Stop
from runtime.errors import StoreUnavailable
from runtime.ports import Ask, Body, Key, Page, Store
from runtime.stores.collections import EVENTS, OPERATIONS
from tests.bot.sandbox.world_kit import Sandbox, sandbox
from tests.bot.telegram.front import Front
from tests.world import ACME, ManualClock, make_kit


class Weather:
    """A store that is down while `down` says so."""

    def __init__(self, inner: Store) -> None:
        self.inner = inner
        self.down = False

    def _check(self) -> None:
        if self.down:
            raise StoreUnavailable(cause="a test took it down")

    async def get(self, key: Key[Any]) -> Any:  # noqa: ANN401 - as the port
        self._check()
        return await self.inner.get(key)

    async def find(self, ask: Ask[Any]) -> Page[Any]:
        self._check()
        return await self.inner.find(ask)

    async def transact(self, body: Body[Any]) -> Any:  # noqa: ANN401 - as the port
        self._check()
        return await self.inner.transact(body)

    async def close(self) -> None:
        await self.inner.close()


async def weathered(folder: Path) -> tuple[Kit, Weather]:
    made: list[Weather] = []

    def wrap(store: Store) -> Store:
        made.append(Weather(store))
        return made[0]

    kit = await make_kit(folder, wrap=wrap)
    return kit, made[0]


@contextlib.asynccontextmanager
async def polling(folder: Path) -> AsyncIterator[tuple[Sandbox, Poller, Weather]]:
    kit, weather = await weathered(folder)
    async with sandbox() as box:
        poller = Poller(kit, box.bot)
        await poller.open()
        yield box, poller, weather
        await poller.close()
    await kit.store.close()


async def test_with_the_store_down_the_offset_stays_and_nothing_is_lost(tmp_path: Path) -> None:
    async with polling(tmp_path) as (box, poller, weather):
        for words in ("/start", "two", "three"):
            await box.people.send_text("ana", "bot", words)
        weather.down = True
        updates, _ = await poller.fetch(0)
        assert len(updates) == 3
        assert await poller.store(updates) > 0
        assert "store" in poller.health
        again, _ = await poller.fetch(0)
        assert again == updates
        weather.down = False
        assert await poller.store(again) == 0
        assert (await poller.fetch(0))[0] in ([], ())
        assert len(await box.updates()) == 0


async def test_the_offset_ends_behind_the_last_stored_update(tmp_path: Path) -> None:
    async with polling(tmp_path) as (box, poller, weather):
        for words in ("/start", "two", "three"):
            await box.people.send_text("ana", "bot", words)
        updates, _ = await poller.fetch(0)
        await poller.store(updates[:1])
        weather.down = True
        await poller.store(updates[1:])
        weather.down = False
        rest, _ = await poller.fetch(0)
        assert rest == updates[1:]


async def test_an_odd_update_does_not_stop_the_ones_behind_it(tmp_path: Path) -> None:
    async with polling(tmp_path) as (box, poller, _):
        await box.people.send_text("ana", "bot", "/start")
        updates, _ = await poller.fetch(0)
        first = updates[0]
        assert isinstance(first, dict)
        odd = {"update_id": first["update_id"], "message": {"text": "x" * 250_000}}
        assert await poller.store(["not even an object", odd]) == 0
        await box.people.send_text("ana", "bot", "next")
        rest, _ = await poller.fetch(0)
        assert [item["message"]["text"] for item in rest if isinstance(item, dict)] == ["next"]


async def test_one_poller_holds_the_lease_and_the_other_stands_by(tmp_path: Path) -> None:
    clock = ManualClock()
    async with sandbox() as box:
        kits = [await make_kit(tmp_path, clock=clock, seed=seed) for seed in (1, 2)]
        one, other = (Poller(kit, box.bot) for kit in kits)
        assert await one._leads()
        assert not await other._leads()
        clock.advance(one._holder._term)
        assert await other._leads()
        assert not await one._leads()
        for kit in kits:
            await kit.store.close()


async def test_case_23_a_conflict_is_reported_and_backed_off_from(tmp_path: Path) -> None:
    async with polling(tmp_path) as (box, poller, _):
        stranger = asyncio.create_task(box.call("getUpdates", timeout=20))
        pauses = []
        for _ in range(3):
            waiting = asyncio.create_task(poller.fetch(20))
            await asyncio.wait({waiting, stranger}, return_when=asyncio.FIRST_COMPLETED)
            if stranger.done():
                stranger = asyncio.create_task(box.call("getUpdates", timeout=20))
            pauses.append((await waiting)[1])
        assert "409" in poller.health
        assert pauses == sorted(pauses)
        assert pauses[0] >= 2.5
        stranger.cancel()
        await asyncio.gather(stranger, return_exceptions=True)


async def test_run_polls_stores_and_gives_the_lease_back(front: Front) -> None:
    """The whole loop, with a stop while Telegram is being asked."""
    stop = Stop()
    taken = asyncio.Event()
    poller = Poller(front.kit, front.box.bot, on_taken=taken.set)
    running = asyncio.create_task(poller.run(stop))
    await front.box.people.send_text("ana", "bot", "/start")
    await taken.wait()
    stop.ask()
    await running
    other = Poller(front.kit, front.box.bot)
    assert await other._leads()


async def test_case_25_the_list_is_set_explicitly_and_the_check_names_what_is_not_heard(
    front: Front,
) -> None:
    bot = front.box.bot
    await bot.set_webhook("https://example.org/hook", allowed_updates=["message"])
    before = await self_check(bot, polling=False)
    assert any("callback_query" in problem for problem in before)
    assert any("webhook is set" in problem for problem in await self_check(bot, polling=True))
    await begin_polling(bot)
    await front.pair("ana")
    ledger = (await front.box.people.ledger())["calls"]
    asked = [call for call in ledger if call["method"].lower() == "getupdates"]
    assert all("callback_query" in str(call) for call in asked)
    problems = await self_check(bot, polling=True)
    assert len(problems) == 1
    assert "privacy" in problems[0]
    assert "/setprivacy" in problems[0]
    assert [command.command for command in await bot.get_my_commands()] == [
        name for name, _ in MENU
    ]


async def test_the_webhook_is_set_with_its_secret_and_the_whole_list(front: Front) -> None:
    bot = front.box.bot
    await use_webhook(bot, "https://example.org/hook", "s3cret")
    info = await bot.get_webhook_info()
    assert sorted(info.allowed_updates) == sorted(ALLOWED_UPDATES)
    assert not [p for p in await self_check(bot, polling=False) if "does not bring" in p]


# --- the webhook route ---


@contextlib.asynccontextmanager
async def hooked(folder: Path) -> AsyncIterator[tuple[httpx.AsyncClient, Kit, Weather]]:
    kit, weather = await weathered(folder)
    app = Starlette(routes=[telegram_webhook(kit, 7, "OpsDesk_bot", "s3cret")])
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://bot") as client:
        yield client, kit, weather
    await kit.store.close()


UPDATE = {
    "update_id": 1,
    "message": {"message_id": 1, "chat": {"id": 5, "type": "private"}, "from": {"id": 5}},
}


@pytest.mark.parametrize("secret", ["", "s3cre", "s3cret2", "S3CRET"])
async def test_a_wrong_secret_is_refused_before_the_body_is_read(
    tmp_path: Path, secret: str
) -> None:
    async with hooked(tmp_path) as (client, kit, _):
        read = False

        async def body() -> AsyncIterator[bytes]:
            nonlocal read
            read = True
            yield b"{}"

        answer = await client.post(
            "/telegram/webhook", content=body(), headers={HEADER: secret} if secret else {}
        )
        assert answer.status_code == 403
        assert not read
        page = await kit.store.find(Ask(OPERATIONS, "ready", None, equals=("pending",), limit=10))
        assert not page.rows


async def test_200_only_after_the_commit_and_503_while_the_store_is_down(tmp_path: Path) -> None:
    """Case 21: duplicates converge, a store that is down means nothing happened."""
    async with hooked(tmp_path) as (client, kit, weather):
        headers = {HEADER: "s3cret"}
        weather.down = True
        answer = await client.post("/telegram/webhook", json=UPDATE, headers=headers)
        assert answer.status_code == 503
        weather.down = False
        answers = await asyncio.gather(
            *(client.post("/telegram/webhook", json=UPDATE, headers=headers) for _ in range(3))
        )
        assert [answer.status_code for answer in answers] == [200, 200, 200]
        page = await kit.store.find(Ask(OPERATIONS, "ready", None, equals=("pending",), limit=10))
        assert len(page.rows) == 1


@pytest.mark.parametrize(
    ("extra", "status"), [(-1, 200), (0, 200), (1, 413)], ids=["below", "at", "above"]
)
async def test_the_body_is_bounded_exactly(tmp_path: Path, extra: int, status: int) -> None:
    async with hooked(tmp_path) as (client, _, _):
        body = b"[" + b" " * (BODY_BYTES_MAX + extra - 2) + b"]"

        async def chunked() -> AsyncIterator[bytes]:
            yield body[: len(body) // 2]
            yield body[len(body) // 2 :]

        headers = {HEADER: "s3cret"}
        for content in (body, chunked()):
            answer = await client.post("/telegram/webhook", content=content, headers=headers)
            assert answer.status_code == status


@pytest.mark.parametrize("body", [b"", b"not json", b"[1]", b"[" * 100_000, b'"\xff"'])
async def test_a_body_that_is_no_update_is_kept_and_acknowledged(
    tmp_path: Path, body: bytes
) -> None:
    async with hooked(tmp_path) as (client, kit, _):
        answer = await client.post("/telegram/webhook", content=body, headers={HEADER: "s3cret"})
        assert answer.status_code == 200
        assert await kit.store.get(EVENTS.key(ACME, "x")) is None
