"""getUpdates: confirmation, redelivery, conflicts, allowed types."""

from __future__ import annotations

import asyncio

import pytest
from telegram.error import Conflict

from tests.bot.sandbox.world_kit import TOKEN, Sandbox

GROUP = -1002150001001


def numbers(updates: list[dict[str, object]]) -> list[int]:
    return [int(str(update["update_id"])) for update in updates]


async def test_an_update_comes_again_until_a_later_offset_confirms_it(box: Sandbox) -> None:
    for text in ("one", "two", "three"):
        await box.people.send_text("ana", "bot", text)
    first = numbers(await box.updates())
    assert first == [first[0], first[0] + 1, first[0] + 2]
    assert numbers(await box.updates()) == first
    assert numbers(await box.updates(offset=first[0])) == first
    assert numbers(await box.updates(offset=first[0] + 1)) == first[1:]
    assert numbers(await box.updates()) == first[1:]
    assert numbers(await box.updates(offset=first[0])) == first[1:]
    assert numbers(await box.updates(limit=1)) == first[1:2]
    assert numbers(await box.updates(offset=first[2] + 1)) == []
    ledger = (await box.people.ledger())["deliveries"]
    assert [(row["update_id"], row["confirmed"]) for row in ledger] == [
        (number, True) for number in first
    ]
    assert [row["times"] for row in ledger] == [3, 7, 6]


async def test_a_negative_offset_keeps_only_the_newest(box: Sandbox) -> None:
    for text in ("one", "two", "three"):
        await box.people.send_text("ana", "bot", text)
    newest = numbers(await box.updates(offset=-1))
    assert len(newest) == 1
    assert numbers(await box.updates()) == newest


async def test_a_long_poll_ends_with_the_next_update(box: Sandbox) -> None:
    waiting = asyncio.ensure_future(box.bot.get_updates(timeout=30))
    await box.people.state()
    await box.people.send_text("ana", "bot", "now")
    (update,) = await waiting
    assert update.message is not None
    assert update.message.text == "now"


async def test_a_second_poller_ends_the_first_with_a_conflict(box: Sandbox) -> None:
    first = asyncio.ensure_future(box.bot.get_updates(timeout=30))
    await box.people.state()
    second = asyncio.ensure_future(box.bot.get_updates(timeout=30))
    with pytest.raises(Conflict) as refused:
        await first
    assert refused.value.message == (
        "Conflict: terminated by other getUpdates request; make sure that only one bot instance "
        "is running"
    )
    await box.people.send_text("ana", "bot", "hello")
    assert len(await second) == 1


async def test_polling_conflicts_with_a_webhook(box: Sandbox) -> None:
    poll = asyncio.ensure_future(box.call("getUpdates", timeout=30))
    await box.people.state()
    await box.call("setWebhook", url="http://127.0.0.1:9/hook")
    assert (await poll)["description"] == "Conflict: terminated by setWebhook request"
    body = await box.call("getUpdates")
    assert (body["error_code"], body["description"]) == (
        409,
        (
            "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to "
            "delete the webhook first"
        ),
    )
    await box.call("deleteWebhook")
    assert (await box.call("getUpdates"))["ok"] is True


async def test_allowed_types_are_sticky_until_they_are_named_again(box: Sandbox) -> None:
    async def kinds() -> list[str]:
        keys = {"inline_keyboard": [[{"text": "A", "callback_data": "a"}]]}
        card = await box.call("sendMessage", chat_id=GROUP, text="x", reply_markup=keys)
        result = card["result"]
        assert isinstance(result, dict)
        await box.people.send_text("bo", GROUP, "said")
        await box.people.press("bo", GROUP, result["message_id"], "A")
        found = await box.updates()
        await box.updates(offset=numbers(found)[-1] + 1 if found else 0)
        return [next(name for name in update if name != "update_id") for update in found]

    assert await kinds() == ["message", "callback_query"]
    await box.updates(allowed_updates=["message"])
    assert await kinds() == ["message"]
    assert (await box.call("getWebhookInfo"))["result"] == {
        "url": "",
        "has_custom_certificate": False,
        "pending_update_count": 0,
        "allowed_updates": ["message"],
    }
    await box.updates(allowed_updates="no list")
    assert await kinds() == ["message"]
    await box.updates(allowed_updates=[])
    assert await kinds() == ["message", "callback_query"]


async def test_an_update_is_gone_after_a_day(box: Sandbox) -> None:
    await box.people.send_text("ana", "bot", "old")
    hours = type(box.clock.ahead)(hours=23, minutes=59)
    box.clock.ahead += hours
    assert len(await box.updates()) == 1
    box.clock.ahead += type(hours)(minutes=2)
    assert await box.updates() == []


async def test_a_redelivery_carries_the_same_number_after_confirmation(box: Sandbox) -> None:
    await box.people.send_text("ana", "bot", "once")
    (number,) = numbers(await box.updates())
    await box.updates(offset=number + 1)
    assert await box.people.redeliver(number, times=2) == number
    again = await box.updates(offset=number + 1)
    assert numbers(again) == [number, number]
    assert await box.updates(offset=number + 1) == []


async def test_a_poller_that_leaves_takes_nothing_along(box: Sandbox) -> None:
    leaving = asyncio.ensure_future(box.http.get(f"/bot{TOKEN}/getUpdates?timeout=30"))
    await box.people.state()
    leaving.cancel()
    await asyncio.wait({leaving})
    await box.people.send_text("ana", "bot", "still here")
    assert len(await box.updates()) == 1
