"""Opening and serving a sandbox: beside the bot in one process, or alone."""

from __future__ import annotations

import asyncio
import fcntl
import os
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from starlette.applications import Starlette

from bot.sandbox.cast import open_world
from bot.sandbox.errors import WorldTaken
from bot.sandbox.server import create_app
from bot.web.serving import listen, serving
from runtime.ports import Clock, Ids
from runtime.system import SystemClock, SystemIds


@dataclass(frozen=True, slots=True)
class Sandbox:
    """An open sandbox: its application, the token of its bot, and what keeps others out."""

    app: Starlette
    token: str
    lock: int


def open_sandbox(clock: Clock, ids: Ids, directory: Path) -> Sandbox:
    """The sandbox whose world `directory` keeps.

    Raises:
        WorldTaken: another process plays in it.
    """
    lock = _taken(directory)
    world = open_world(clock, ids, directory)
    return Sandbox(create_app(world, directory=directory), world.setup.token, lock)


def _taken(directory: Path) -> int:
    """Keep the world for this process. The kernel lets go of it when the process ends."""
    directory.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(directory / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise WorldTaken(folder=str(directory)) from None
    return descriptor


async def serve_sandbox(directory: Path, port: int, say: Callable[[str], None]) -> None:
    """Serve a sandbox until SIGTERM or Ctrl-C."""
    box = open_sandbox(SystemClock(), SystemIds(), directory)
    ended = asyncio.Event()
    running = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        running.add_signal_handler(number, ended.set)
    sock = listen("127.0.0.1", port)
    async with serving(box.app, sock) as address:
        say(f"Telegram sandbox, not Telegram. Open the chat page: {address}/")
        say(f"TELEGRAM_API_URL={address}")
        say(f"TELEGRAM_BOT_TOKEN={box.token}")
        await ended.wait()
        box.app.state.stop()  # ends the long polls, for which the server would wait
    sock.close()
    os.close(box.lock)
