"""Who may come in and what they are told: codes that came too late, floods, /status."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from bot.telegram.commands.handlers import telegram_handlers
from runtime.engine.services import Holder
from runtime.engine.worker import Worker
from runtime.stores.collections import MEMBERS
from tests.bot.telegram.front import BO, Front
from tests.world import ACME


async def test_a_code_of_an_earlier_start_makes_no_second_administrator(front: Front) -> None:
    """Each start prints one while nobody is admin; logs keep them longer than that."""
    await front.pair("ana")
    await front.pair("bo")
    assert "there is one" in await front.last("bo")
    assert await front.kit.store.get(MEMBERS.key(ACME, f"telegram:{BO}")) is None
    await front.say("ana", "/start code-for-ana")
    assert "you are admin" in await front.last("ana")


async def test_a_flood_of_commands_by_a_stranger_is_answered_once_a_minute(front: Front) -> None:
    for _ in range(3):
        await front.say("sam", "/needs")
    assert len(await front.seen("sam")) == 1
    front.later(minutes=1)
    await front.say("sam", "/needs")
    assert len(await front.seen("sam")) == 2


async def test_an_invitation_that_was_used_says_so_soon(front: Front) -> None:
    await front.pair("ana")
    await front.say("ana", "/invite viewer")
    code = (await front.last("ana")).split("/start ")[1].split()[0]
    await front.say("bo", f"/start {code}")
    front.later(seconds=30)
    await front.settle()
    assert await front.last("ana") == "The code for one viewer is used."


async def test_status_speaks_of_polling_only_where_updates_are_polled(front: Front) -> None:
    await front.pair("ana")
    held = Holder(front.kit, f"telegram-poller:{front.box.bot.id}", timedelta(seconds=6))
    assert await held.take()
    await front.say("ana", "/status")
    assert "Polling: running" in await front.last("ana")
    front.later(seconds=6)
    hooked = Worker(front.kit, telegram_handlers(replace(front.desk, polls=False)))
    front.worker = hooked
    await front.say("ana", "/status")
    assert "Updates come by webhook" in await front.last("ana")
    assert "Polling" not in await front.last("ana")
