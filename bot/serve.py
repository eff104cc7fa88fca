"""`harmonia up`: every service of the bot in one process, until it is told to stop.

On SIGTERM or Ctrl-C the loops end after their round, running work comes to its end, leases are
given back and the store is closed. A kill at any moment is as good: what was stored goes on at the
next start.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Final

import structlog
from starlette.applications import Starlette
from starlette.routing import Route

from bot.app import Base, base, seed
from bot.engine import Engine, build
from bot.sandbox.run import open_sandbox
from bot.settings import Settings
from bot.telegram.client import make_bot
from bot.telegram.setup import begin_polling, self_check, use_webhook
from bot.web.health import health_routes
from bot.web.serving import address_of, listen, serving
from bot.web.telegram import telegram_webhook
from connectors.registry import Registry
from runtime.domain.effect import Finding
from runtime.domain.lease import SERVICE_LEASE
from runtime.engine.projector import Projector
from runtime.engine.retention import Cursors, sweep
from runtime.engine.scanner import Scanner
from runtime.engine.services import Stop, loop
from runtime.errors import SettingsError
from runtime.ports import Clock
from runtime.system import collect_calmly

if TYPE_CHECKING:
    from telegram import Bot

SCAN_SECONDS: Final = 1.0
TERM_MIN: Final = timedelta(seconds=3 * SCAN_SECONDS)
"""A lease must outlast the pauses of its loop."""
PROJECT_SECONDS: Final = 0.5
RETENTION_SECONDS: Final = 60.0
RETENTION_PAGE: Final = 100
START_TRIES: Final = 5
START_PAUSE_SECONDS: Final = 0.5
LEFTOVER_AGE: Final = timedelta(hours=1)
"""Parts of blobs that a crash left; no write takes that long."""

log = structlog.get_logger()

Service = Callable[[], Awaitable[None]]
Say = Callable[[str], None]
"""Prints a line for whoever started the process."""


async def serve(settings: Settings, say: Say, stop: Stop | None = None) -> None:
    """Run the bot.

    Args:
        settings: what was chosen.
        say: prints a line for whoever started the process.
        stop: ends it; by default SIGTERM and SIGINT do.

    Raises:
        SettingsError: it cannot start as configured.
    """
    collect_calmly()
    ending = stop or Stop()
    if stop is None:
        _end_on_signals(ending, say)
    secret = settings.hook_secret
    async with base(settings) as parts, contextlib.AsyncExitStack() as stack:
        sock = listen(settings.harmonia_listen_host, settings.harmonia_listen_port)
        stack.callback(sock.close)
        address = address_of(sock)
        if settings.sandboxed:
            box = open_sandbox(parts.kit.clock, parts.kit.ids, parts.sandbox_dir)
            stack.callback(os.close, box.lock)
            box.app.router.routes[:0] = health_routes(parts.kit)
            await stack.enter_async_context(serving(box.app, sock))
            # Ends the long polls of open chat pages, for which the server would wait.
            stack.callback(box.app.state.stop)
            bot = await stack.enter_async_context(connected(parts.kit.clock, box.token, address))
            say(f"Telegram sandbox, not Telegram. Open the chat page: {address}/")
        else:
            bot = await stack.enter_async_context(connected(parts.kit.clock, *_real(settings)))
        engine = build(parts, bot)
        stack.push_async_callback(engine.close)
        if not settings.sandboxed:
            app = Starlette(routes=[*health_routes(parts.kit), *_webhook(secret, parts, bot)])
            await stack.enter_async_context(serving(app, sock))
        say(f"Model: {engine.sentence}")
        say(f"Bot: @{bot.username}, workspace {parts.settings.tenant.workspace}")
        await _set_up(settings, parts.kit.clock, bot, secret)
        await _announce(parts, bot, engine, say)
        await _run(settings, parts, engine, ending)


async def patiently(clock: Clock, call: Callable[[], Awaitable[object]]) -> None:
    """Make a call of the start again while the Bot API does not answer or asks to wait.

    Raises:
        TelegramError: it did not work out in `START_TRIES` tries, or a retry cannot help.
    """
    from telegram.error import BadRequest, NetworkError, RetryAfter

    for time in range(1, START_TRIES + 1):
        try:
            await call()
        except BadRequest:
            raise
        except (NetworkError, RetryAfter) as error:
            if time == START_TRIES:
                raise
            log.warning("start_waits", error=type(error).__name__, time=time)
            await clock.sleep(START_PAUSE_SECONDS * time)
        else:
            return


@contextlib.asynccontextmanager
async def connected(clock: Clock, token: str, api: str) -> AsyncIterator[Bot]:
    """An initialized bot on the Bot API at `api`.

    Raises:
        SettingsError: the API does not know the token, or cannot be reached.
    """
    from telegram.error import InvalidToken, TelegramError

    bot = make_bot(token, f"{api}/bot", f"{api}/file/bot")
    try:
        await patiently(clock, bot.initialize)
    except InvalidToken:
        raise SettingsError(setting="TELEGRAM_BOT_TOKEN", cause="not a known token") from None
    except TelegramError as error:
        cause = f"no answer from the Bot API ({type(error).__name__})"
        raise SettingsError(setting="TELEGRAM_API_URL", cause=cause) from None
    try:
        yield bot
    finally:
        await bot.shutdown()


def _real(settings: Settings) -> tuple[str, str]:
    token = settings.telegram_bot_token
    if token is None:
        raise SettingsError(setting="TELEGRAM_BOT_TOKEN", cause="missing")
    return token.get_secret_value(), settings.telegram_api_url.rstrip("/")


def _webhook(secret: str | None, parts: Base, bot: Bot) -> list[Route]:
    if secret is None:
        return []
    return [telegram_webhook(parts.kit, bot.id, bot.username, secret)]


async def _set_up(settings: Settings, clock: Clock, bot: Bot, secret: str | None) -> None:
    """Have updates come in the chosen way; the self-check afterwards then sees what holds.

    Raises:
        SettingsError: Telegram does not take it.
    """
    from telegram.error import BadRequest, TelegramError

    address = settings.telegram_webhook_url.rstrip("/")
    try:
        if secret is None:
            await patiently(clock, lambda: begin_polling(bot))
        else:
            hook = f"{address}/telegram/webhook"
            await patiently(clock, lambda: use_webhook(bot, hook, secret))
    except BadRequest as error:
        setting = "TELEGRAM_API_URL" if secret is None else "TELEGRAM_WEBHOOK_URL"
        cause = f"Telegram refuses it: {str(error)[:200]}"
        raise SettingsError(setting=setting, cause=cause) from None
    except TelegramError as error:
        cause = f"no answer from the Bot API ({type(error).__name__})"
        raise SettingsError(setting="TELEGRAM_API_URL", cause=cause) from None


async def _announce(parts: Base, bot: Bot, engine: Engine, say: Say) -> None:
    """Say in words what is missing, and how the first person pairs."""
    from telegram.error import TelegramError

    for problem in await _unconnected(engine.registry):
        engine.problems.append(problem)
        say(f"Note: {problem}")
    try:
        for problem in await self_check(bot, polling=not parts.settings.telegram_webhook_url):
            engine.problems.append(problem)
            say(f"Note: {problem}")
    except TelegramError as error:
        say(f"Note: I could not check what I can hear ({type(error).__name__}).")
    code = await seed(parts)
    if code is not None:
        say(f"Nobody is admin yet. In a private chat with the bot, send:  /start {code}")
        say("The code works once, for 24 hours.")


async def _unconnected(registry: Registry) -> list[str]:
    """Why connectors cannot work as things stand, a sentence each."""
    problems = [finding.evidence for finding in registry.inactive]
    for descriptor in registry.descriptors:
        connector = registry.by_id(descriptor.id)
        if isinstance(connector, Finding):
            continue
        found = await connector.validate_connection()
        if not found.ok:
            problems.append(found.evidence)
    return problems


async def _run(settings: Settings, parts: Base, engine: Engine, stop: Stop) -> None:
    """Every service side by side. One that ends by a fault takes the process down, loudly."""
    kit = parts.kit
    projector, scanner = Projector(kit), Scanner(kit)
    cursors: Cursors | None = None
    # What a killed process left is found by the scanner: it must not stay away for longer than
    # the claims that it is to release.
    term = max(TERM_MIN, min(SERVICE_LEASE, settings.lease))

    async def scan() -> bool:
        return (await scanner.once()).busy

    async def retain() -> bool:
        nonlocal cursors
        swept = await sweep(kit, engine.blobs, RETENTION_PAGE, cursors)
        await engine.blobs.sweep(kit.clock.now() - LEFTOVER_AGE)
        cursors = swept.cursors
        return False

    async def wake_when_stopped() -> None:
        await stop.wait()
        parts.wakes.wake()

    services: list[Awaitable[None]] = [
        engine.worker.run(stop),
        engine.deliverer.run(stop),
        loop(
            kit,
            stop,
            "projector",
            projector.once,
            idle_seconds=PROJECT_SECONDS,
            single=True,
            watch="markers",
            term=term,
        ),
        loop(kit, stop, "scanner", scan, idle_seconds=SCAN_SECONDS, single=True, term=term),
        loop(kit, stop, "retention", retain, idle_seconds=RETENTION_SECONDS, single=True),
        wake_when_stopped(),
    ]
    if not settings.telegram_webhook_url:
        services.append(engine.poller.run(stop))
    async with asyncio.TaskGroup() as group:
        for service in services:
            group.create_task(_carry(service, stop))


async def _carry(service: Awaitable[None], stop: Stop) -> None:
    """A service that ends ends the others: half a bot is worse than a restart."""
    try:
        await service
    finally:
        stop.ask()


def _end_on_signals(stop: Stop, say: Say) -> None:
    """The first signal drains; the next one ends at once, which loses nothing either."""
    running = asyncio.get_running_loop()
    numbers = (signal.SIGTERM, signal.SIGINT)

    def end() -> None:
        stop.ask()
        say("Stopping: what runs comes to its end. Once more ends at once; nothing is lost.")
        for number in numbers:
            running.remove_signal_handler(number)
            signal.signal(number, signal.SIG_DFL)

    for number in numbers:
        running.add_signal_handler(number, end)
