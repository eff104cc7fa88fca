"""The webhook: the secret before the body, 200 only after the commit (INV-16)."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from starlette.applications import Starlette

from bot.web.telegram import BODY_BYTES_MAX, HEADER, telegram_webhook
from runtime.domain.values import DIRECTORY, identity, sha256
from runtime.engine.kit import Kit
from runtime.ports import Ask
from runtime.stores.collections import EVENTS, OPERATIONS
from tests.bot.telegram.weather import Weather, weathered


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
        event = identity("telegram", f"7:odd-{sha256(body)}")
        stored = await kit.store.get(EVENTS.key(DIRECTORY, event))
        assert stored is not None
        assert stored.state.name == "rejected"


@pytest.mark.parametrize("number", [2**53, 2**63, -(2**70)])
async def test_numbers_that_no_record_can_keep_are_acknowledged_and_kept_as_rejected(
    tmp_path: Path, number: int
) -> None:
    async with hooked(tmp_path) as (client, kit, _):
        headers = {HEADER: "s3cret"}
        odd = {**UPDATE, "update_id": number}
        answer = await client.post("/telegram/webhook", json=odd, headers=headers)
        assert answer.status_code == 200
        chat = {"id": number, "type": "private"}
        message = {"message_id": number, "chat": chat, "from": {"id": number}, "text": "/start"}
        answer = await client.post(
            "/telegram/webhook", json={"update_id": 3, "message": message}, headers=headers
        )
        assert answer.status_code == 200
        page = await kit.store.find(Ask(OPERATIONS, "ready", None, equals=("pending",), limit=10))
        assert [row.record.lane for row in page.rows] == ["chat:0"]
