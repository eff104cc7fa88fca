"""One update, brought five times at once to two processes: one event, one reply, all counted."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path
from typing import Final

import httpx
import pytest

from tests.acceptance.people import Json
from tests.acceptance.world import World, opened

pytestmark = [pytest.mark.processes, pytest.mark.timeout(300)]

SECRET: Final = "a-secret-that-only-this-test-knows"
DELIVERIES: Final = 5
UPDATE: Final = 900_000_001


def free_port() -> int:
    """A port that nobody uses now."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


async def webhooks(world: World) -> list[str]:
    """Two processes on one data directory, each with a webhook; their addresses."""
    await world.sandbox()
    addresses: list[str] = []
    for name in ("first", "second"):
        port = free_port()
        address = f"http://127.0.0.1:{port}"
        process = await world.up(
            name,
            HARMONIA_LISTEN_PORT=str(port),
            TELEGRAM_WEBHOOK_URL=address,
            TELEGRAM_WEBHOOK_SECRET=SECRET,
        )
        if not addresses:
            await world.pair(process)
        addresses.append(f"{address}/telegram/webhook")
    return addresses


async def update_of(world: World, text: str) -> Json:
    """The update that Telegram would bring for a text of Ana's, under a number of our own."""
    state = await world.client.state()
    (ana,) = [person for person in state["people"] if person["key"] == "ana"]
    shown = {name: ana[name] for name in ("id", "is_bot", "first_name", "username")}
    return {
        "update_id": UPDATE,
        "message": {
            "message_id": 9_001,
            "from": shown,
            "chat": {"id": ana["id"], "type": "private", "first_name": ana["first_name"]},
            "date": 1_800_000_000,
            "text": text,
            "entities": [{"type": "bot_command", "offset": 0, "length": len(text)}],
        },
    }


async def test_five_concurrent_deliveries_to_two_processes_are_one_event_and_one_reply(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path) as world:
        addresses = await webhooks(world)
        update = await update_of(world, "/status")
        headers = {"X-Telegram-Bot-Api-Secret-Token": SECRET}
        async with httpx.AsyncClient(trust_env=False, headers=headers) as telegram:
            answers = await asyncio.gather(
                *(telegram.post(addresses[index % 2], json=update) for index in range(DELIVERIES))
            )
            assert [answer.status_code for answer in answers] == [200] * DELIVERIES
            await world.ana.sees("You are admin")
            last = {**update, "update_id": UPDATE + 1}
            last["message"] = {**update["message"], "message_id": 9_002, "text": "/needs"}
            assert (await telegram.post(addresses[1], json=last)).status_code == 200
        await world.ana.sees("Nothing waits for a person.")
        event = world.truth.event(UPDATE)
        assert event["deliveries"] == DELIVERIES
        assert event["conflicts"] == 0
        born = world.truth.records("operations", event=event["id"])
        assert [row["state"]["name"] for row in born] == ["succeeded"]
        said = [row for row in await world.ana.history() if "You are admin in" in row["text"]]
        assert len(said) == 1


async def test_another_content_under_the_same_number_is_a_conflict_and_does_nothing(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path) as world:
        (address, other) = await webhooks(world)
        headers = {"X-Telegram-Bot-Api-Secret-Token": SECRET}
        async with httpx.AsyncClient(trust_env=False, headers=headers) as telegram:
            await telegram.post(address, json=await update_of(world, "/needs"))
            forged = await telegram.post(other, json=await update_of(world, "/jobs"))
            assert forged.status_code == 200, "the transport must move on"
            wrong = {"X-Telegram-Bot-Api-Secret-Token": "guessed"}
            denied = await telegram.post(address, json={"update_id": 7}, headers=wrong)
            assert denied.status_code == 403
        await world.ana.sees("Nothing waits for a person.")
        event = world.truth.event(UPDATE)
        assert (event["deliveries"], event["conflicts"]) == (1, 1)
        status = await world.ana.asks("/status", "You are admin")
        assert "No webhook is set" not in status["text"]
        assert not [row for row in await world.ana.history() if "No job yet" in row["text"]]
