"""Polling: the offset moves only behind commits (INV-16), one poller at a time."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bot.serve import connected
from bot.telegram.poll import Poller
from bot.telegram.setup import MENU, begin_polling, self_check, use_webhook
from bot.telegram.updates import ALLOWED_UPDATES
from runtime.engine.services import Stop
from tests.bot.sandbox.world_kit import Sandbox, sandbox
from tests.bot.telegram.front import Front
from tests.bot.telegram.weather import Weather, weathered
from tests.world import ManualClock, make_kit


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


async def test_a_menu_that_telegram_does_not_take_keeps_nobody_from_polling(front: Front) -> None:
    people = front.box.people
    await people.misbehave("too_many", "setMyCommands", retry_after=600)
    await begin_polling(front.box.bot)
    calls = [call["method"].lower() for call in (await people.ledger())["calls"]]
    assert calls[-2:] == ["deletewebhook", "setmycommands"]
    assert not await front.box.bot.get_my_commands()


async def test_the_webhook_is_set_with_its_secret_and_the_whole_list(front: Front) -> None:
    bot = front.box.bot
    await use_webhook(bot, "https://example.org/hook", "s3cret")
    info = await bot.get_webhook_info()
    assert sorted(info.allowed_updates) == sorted(ALLOWED_UPDATES)
    assert not [p for p in await self_check(bot, polling=False) if "does not bring" in p]


@pytest.mark.parametrize("odd", [b"{}", b"[]", b'{"ok": true}'])
async def test_json_that_is_no_answer_of_the_bot_api_is_backed_off_from(
    tmp_path: Path, odd: bytes
) -> None:
    me = b'{"ok":true,"result":{"id":7,"is_bot":true,"first_name":"B","username":"b_bot"}}'

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked = await reader.readuntil(b"\r\n\r\n")
        body = me if b"getMe" in asked else odd
        head = f"HTTP/1.1 200 OK\r\ncontent-length: {len(body)}\r\nconnection: close\r\n\r\n"
        writer.write(head.encode() + body)
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    kit = await make_kit(tmp_path)
    async with server, connected(kit.clock, "7:token", f"http://{host}:{port}") as bot:
        poller = Poller(kit, bot)
        await poller.open()
        updates, pause = await poller.fetch(0)
        await poller.close()
    assert not updates
    assert pause > 0
    assert "does not answer" in poller.health
    await kit.store.close()
