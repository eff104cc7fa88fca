"""Webhook delivery to a real local server: secret, retries, order, answers that are calls."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from bot.sandbox.client import SandboxClient
from tests.bot.sandbox.world_kit import Sandbox, sandbox, serving

GROUP = -1002150001001


@dataclass
class Receiver:
    """A bot's webhook; `answers` are used up first, then 200."""

    url: str = ""
    got: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    answers: list[Response] = field(default_factory=list)
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    async def hook(self, request: Request) -> Response:
        secret = request.headers.get("x-telegram-bot-api-secret-token", "")
        self.got.append((secret, await request.json()))
        self.changed.set()
        return self.answers.pop(0) if self.answers else Response()

    async def count(self, wanted: int) -> list[dict[str, Any]]:
        while len(self.got) < wanted:
            self.changed.clear()
            await asyncio.wait_for(self.changed.wait(), 20)
        return [body for _, body in self.got]


@contextlib.asynccontextmanager
async def receiving() -> AsyncIterator[Receiver]:
    receiver = Receiver()
    app = Starlette(routes=[Route("/hook", receiver.hook, methods=["POST"])])
    async with serving(app) as (url, _):
        receiver.url = f"{url}/hook"
        yield receiver


async def test_updates_arrive_with_the_secret_and_leave_the_queue(box: Sandbox) -> None:
    async with receiving() as receiver:
        await box.people.send_text("ana", "bot", "before")
        await box.call("setWebhook", url=receiver.url, secret_token="s3cret_-")
        await box.people.send_text("ana", "bot", "after")
        bodies = await receiver.count(2)
        assert [body["message"]["text"] for body in bodies] == ["before", "after"]
        assert {secret for secret, _ in receiver.got} == {"s3cret_-"}
        await box.people.wait_until(lambda client: all_confirmed(client, 2))
        info = (await box.call("getWebhookInfo"))["result"]
        assert isinstance(info, dict)
        assert info["pending_update_count"] == 0
        calls = (await box.people.ledger())["calls"]
        hook = next(entry for entry in calls if entry["method"] == "setWebhook")
        assert hook["params"]["secret_token"] == "***"


async def all_confirmed(client: SandboxClient, count: int) -> bool:
    rows = (await client.ledger())["deliveries"]
    return len([row for row in rows if row["confirmed"]]) == count


async def test_a_refused_update_comes_again_until_it_is_taken() -> None:
    async with receiving() as receiver, sandbox(webhook_waits=(0.01,)) as box:
        receiver.answers = [Response(status_code=503), Response(status_code=500)]
        await box.call("setWebhook", url=receiver.url)
        await box.people.send_text("ana", "bot", "one")
        await box.people.send_text("ana", "bot", "two")
        bodies = await receiver.count(4)
        assert [body["message"]["text"] for body in bodies] == ["one", "one", "one", "two"]
        info = (await box.call("getWebhookInfo"))["result"]
        assert isinstance(info, dict)
        assert info["last_error_message"] == (
            "Wrong response from the webhook: 500 Internal Server Error"
        )


async def test_a_blocked_chat_does_not_hold_up_another(box: Sandbox) -> None:
    async with receiving() as receiver:
        receiver.answers = [Response(status_code=503)]
        await box.call("setWebhook", url=receiver.url)
        await box.people.send_text("ana", "bot", "stuck for a moment")
        await receiver.count(1)
        await box.people.send_text("bo", GROUP, "passes")
        bodies = await receiver.count(2)
        assert bodies[1]["message"]["text"] == "passes"


async def test_an_answer_may_be_a_call(box: Sandbox) -> None:
    async with receiving() as receiver:
        receiver.answers = [
            JSONResponse({"method": "sendMessage", "chat_id": GROUP, "text": "by answer"})
        ]
        await box.call("setWebhook", url=receiver.url)
        await box.people.send_text("bo", GROUP, "hello")
        assert (await box.people.wait_for("bo", GROUP, "by answer"))["from"]["is_bot"] is True


async def test_redeliveries_reach_a_webhook_side_by_side(box: Sandbox) -> None:
    async with receiving() as receiver:
        await box.call("setWebhook", url=receiver.url)
        await box.people.send_text("ana", "bot", "again")
        (body,) = await receiver.count(1)
        await box.people.redeliver(body["update_id"], times=4)
        bodies = await receiver.count(5)
        assert {seen["update_id"] for seen in bodies} == {body["update_id"]}


@pytest.mark.parametrize(
    ("params", "text"),
    [
        (
            {"url": "http://example.org/x"},
            "Bad Request: bad webhook: An HTTPS URL must be provided for webhook",
        ),
        ({"url": "https://"}, "Bad Request: invalid webhook URL specified"),
        (
            {"url": "https://example.org", "secret_token": "no spaces"},
            "Bad Request: secret token contains unallowed characters",
        ),
        (
            {"url": "https://example.org", "secret_token": "x" * 257},
            "Bad Request: secret token is too long",
        ),
    ],
)
async def test_webhooks_are_refused_in_telegrams_words(
    box: Sandbox, params: dict[str, object], text: str
) -> None:
    assert await box.refusal("setWebhook", **params) == text
