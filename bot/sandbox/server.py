"""The sandbox as one Starlette application.

Keeps: the Bot API, the control API and the page share one world; when the server stops, the webhook
loop is gone before the files are closed. A server that waits for requests in flight before it ends
the application (uvicorn does) calls `app.state.stop()` first: it ends all long polls.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.routing import BaseRoute, Route
from starlette.types import Receive, Scope, Send

from bot.sandbox.acting import Acting
from bot.sandbox.botapi import BotApi
from bot.sandbox.control import Control
from bot.sandbox.faults import Faults
from bot.sandbox.gate import Gate
from bot.sandbox.ledger import Ledger
from bot.sandbox.misbehaviour import Misbehaviour
from bot.sandbox.pages import page_routes
from bot.sandbox.staging import Staging
from bot.sandbox.updates import Updates
from bot.sandbox.webhook import WAITS, Pusher
from bot.sandbox.world import World

QUERY_SECONDS = 15


class _Asgi:
    """A plain ASGI endpoint (Starlette wraps functions, but not objects, into request handlers)."""

    def __init__(self, run: Any) -> None:  # noqa: ANN401 - an ASGI callable
        self._run = run

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._run(scope, receive, send)


def create_app(
    world: World,
    *,
    page_token: str | None = None,
    directory: Path | None = None,
    query_seconds: int = QUERY_SECONDS,
    webhook_waits: tuple[float, ...] = WAITS,
) -> Starlette:
    """The application over a world; `directory` keeps the ledger (and the token, for clients)."""
    ledger = Ledger(world.clock, directory)
    updates = Updates(world, ledger)
    faults = Faults()
    acting = Acting(world, updates)
    api = BotApi(world, updates, ledger, faults, query_seconds)
    gate = Gate(page_token or world.ids.token())
    misbehaviour = Misbehaviour(faults, Staging(world, updates, acting), acting)
    control = Control(world, acting, misbehaviour, ledger, gate)
    pusher = Pusher(world, updates, ledger, api.carry_out, waits=webhook_waits)

    @contextlib.asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        task = asyncio.ensure_future(pusher.run())
        try:
            yield
        finally:
            world.stop()
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
            ledger.close()
            world.close()

    routes: list[BaseRoute] = [
        Route("/bot{token}/{method}", _Asgi(api.method_endpoint), methods=["GET", "POST"]),
        Route("/file/bot{token}/{path:path}", _Asgi(api.file_endpoint), methods=["GET"]),
        *control.routes,
        *page_routes(gate),
    ]
    app = Starlette(routes=routes, lifespan=lifespan)
    app.state.page_token = gate.token
    app.state.stop = world.stop
    if directory is not None:
        _leave_token(directory, gate.token)
    return app


def _leave_token(directory: Path, token: str) -> None:
    """Where a client on this machine finds the run's token; readable by this user only."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / "page-token"
    path.touch(mode=0o600)
    path.write_text(token)
