"""A sandbox to test against: a real server on a real port, under a clock that tests can push."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import socket
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import uvicorn
from starlette.applications import Starlette
from telegram import Bot
from telegram.request import HTTPXRequest

from bot.sandbox.cast import open_world
from bot.sandbox.client import SandboxClient
from bot.sandbox.server import create_app
from bot.sandbox.world import World

TOKEN = "7402510983:AAsandbox-token-for-tests"
PAGE_TOKEN = "page-token-for-tests"
START = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


class LoopClock:
    """Real waiting on the loop's timer; `ahead` moves the calendar without waiting."""

    def __init__(self) -> None:
        self.ahead = timedelta()
        self._begun = asyncio.get_running_loop().time()

    def now(self) -> datetime:
        return START + timedelta(seconds=self.monotonic()) + self.ahead

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time() - self._begun

    async def sleep(self, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        done = loop.create_future()

        def wake() -> None:
            if not done.done():
                done.set_result(None)

        timer = loop.call_later(max(seconds, 0), wake)
        try:
            await done
        finally:
            timer.cancel()


class CountingIds:
    """Ids that are different and always the same."""

    def __init__(self) -> None:
        self._count = itertools.count(1)

    def new(self, prefix: str) -> str:
        return f"{prefix}-{next(self._count)}"

    def token(self) -> str:
        return f"made-token-{next(self._count):08d}"

    def fraction(self) -> float:
        return 0.5


@dataclass
class Sandbox:
    """Everything a test wants to hold."""

    url: str
    world: World
    clock: LoopClock
    people: SandboxClient
    bot: Bot
    http: httpx.AsyncClient
    server: uvicorn.Server

    async def call(self, method: str, **params: object) -> dict[str, object]:
        """A raw call; the whole answer."""
        answer = await self.http.post(f"/bot{TOKEN}/{method}", json=params)
        body: dict[str, object] = answer.json()
        assert body["ok"] is (answer.status_code == 200)
        return body

    async def refusal(self, method: str, **params: object) -> str:
        """The description of a call that must be refused."""
        body = await self.call(method, **params)
        assert body["ok"] is False, body
        return str(body["description"])

    async def updates(self, offset: int = 0, **params: object) -> list[dict[str, object]]:
        """GetUpdates without waiting."""
        body = await self.call("getUpdates", offset=offset, **params)
        result = body["result"]
        assert isinstance(result, list)
        return result

    async def started(self) -> int:
        """Ana has said /start and the bot has read it; her ID."""
        sent = await self.people.send_text("ana", "bot", "/start")
        read = await self.updates()
        await self.updates(offset=int(str(read[-1]["update_id"])) + 1)
        return int(sent["chat"]["id"])


class _Server(uvicorn.Server):
    """A server that says when it is up and leaves signals to pytest."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.up = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        self.up.set()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@contextlib.asynccontextmanager
async def serving(app: Starlette, port: int = 0) -> AsyncIterator[tuple[str, uvicorn.Server]]:
    """A uvicorn server on a free port of this machine."""
    listener = socket.create_server(("127.0.0.1", port))
    port = listener.getsockname()[1]
    config = uvicorn.Config(app, log_level="warning", ws="none", timeout_graceful_shutdown=2)
    server = _Server(config)
    task = asyncio.ensure_future(server.serve(sockets=[listener]))
    up = asyncio.ensure_future(server.up.wait())
    await asyncio.wait({task, up}, return_when=asyncio.FIRST_COMPLETED)
    try:
        yield f"http://127.0.0.1:{port}", server
    finally:
        if hasattr(app.state, "stop"):
            app.state.stop()
        server.should_exit = True
        await task
        listener.close()


@contextlib.asynccontextmanager
async def sandbox(
    directory: Path | None = None, *, webhook_waits: tuple[float, ...] = (0.5,)
) -> AsyncIterator[Sandbox]:
    """A running sandbox with its clients."""
    clock = LoopClock()
    world = open_world(clock, CountingIds(), directory, token=TOKEN)
    app = create_app(world, page_token=PAGE_TOKEN, directory=directory, webhook_waits=webhook_waits)
    async with serving(app) as (url, server):
        request, polls = (HTTPXRequest(connection_pool_size=8) for _ in range(2))
        bot = Bot(
            TOKEN,
            base_url=f"{url}/bot",
            base_file_url=f"{url}/file/bot",
            request=request,
            get_updates_request=polls,
        )
        async with (
            httpx.AsyncClient(base_url=url, timeout=60, trust_env=False) as http,
            SandboxClient(url, PAGE_TOKEN) as people,
            bot,
        ):
            yield Sandbox(url, world, clock, people, bot, http, server)
