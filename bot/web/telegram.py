"""The webhook: Telegram's updates over HTTP, as one route.

Keeps INV-16: 200 only after the commit, 503 while the store does not accept. The secret is compared
in constant time before a byte of the body is read, and the body is bounded.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Callable
from typing import Any, Final

import structlog
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from bot.telegram.intake import take_anyhow, take_undecodable
from runtime.engine.kit import Kit
from runtime.errors import StoreError

BODY_BYTES_MAX: Final = 1024 * 1024
HEADER: Final = "x-telegram-bot-api-secret-token"

log = structlog.get_logger()


def telegram_webhook(
    kit: Kit,
    bot_id: int,
    bot_username: str,
    secret: str,
    *,
    path: str = "/telegram/webhook",
    on_taken: Callable[[], None] | None = None,
) -> Route:
    """The route that Telegram posts updates to."""

    async def receive(request: Request) -> Response:
        shown = request.headers.get(HEADER, "")
        if not secret or not hmac.compare_digest(shown.encode(), secret.encode()):
            return Response(status_code=403)
        try:
            body = await _body(request)
        except ClientDisconnect:
            return Response(status_code=400)
        if body is None:
            return Response(status_code=413)
        try:
            await _store(kit, bot_id, bot_username, body)
        except StoreError as error:
            log.warning("update_not_stored", error=type(error).__name__)
            return Response(status_code=503, headers={"retry-after": "1"})
        if on_taken is not None:
            on_taken()
        return Response(status_code=200)

    return Route(path, receive, methods=["POST"])


async def _store(kit: Kit, bot_id: int, bot_username: str, body: bytes) -> None:
    try:
        update: Any = json.loads(body)
    except (ValueError, RecursionError):
        update = None
    if isinstance(update, dict):
        await take_anyhow(kit, bot_id, update, body, bot_username)
    else:
        await take_undecodable(kit, bot_id, body)


async def _body(request: Request) -> bytes | None:
    """The body, or None if it is larger than allowed; reading stops there."""
    declared = request.headers.get("content-length", "")
    if declared.isdigit() and int(declared) > BODY_BYTES_MAX:
        return None
    chunks: list[bytes] = []
    size = 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > BODY_BYTES_MAX:
            return None
        chunks.append(chunk)
    return b"".join(chunks)
