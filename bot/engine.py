"""The engine, wired: which handler carries which kind of operation, over which adapters."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import structlog

from bot.agent.models import choose
from bot.app import Base
from bot.sources import SourceDesk, guarded_fetch
from bot.telegram.chat import CHAT, asked, chat_handler
from bot.telegram.client import PtbMessenger
from bot.telegram.commands.handlers import telegram_handlers
from bot.telegram.commands.turn import Desk
from bot.telegram.delivery import Deliverer
from bot.telegram.poll import Poller
from bot.terms import PackTerms
from connectors.content_pack.connector import ContentPack
from connectors.registry import Context, Registry, load
from connectors.sources.sandboxed import SandboxedConverter
from runtime.blobs.files import FileBlobs
from runtime.engine.compiler import Compiler
from runtime.engine.dispatcher import Dispatcher
from runtime.engine.effects import RECONCILE, VERIFY
from runtime.engine.pipeline import Pipeline
from runtime.engine.reading import Reading
from runtime.engine.reconciler import Reconciler
from runtime.engine.spill import Spill
from runtime.engine.thinking import Thinker
from runtime.engine.verifier import Verifier
from runtime.engine.work import Handler, Work
from runtime.engine.worker import Limits, Worker

if TYPE_CHECKING:
    from telegram import Bot

    from bot.agent.cognition import AdkCognition

GRANT_KEY = "grant-key"

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Engine:
    """The parts that do the work."""

    worker: Worker
    deliverer: Deliverer
    poller: Poller
    blobs: FileBlobs
    cognition: AdkCognition
    registry: Registry
    problems: list[str] = field(default_factory=list)

    @property
    def sentence(self) -> str:
        """What operators are told about the model."""
        return self.cognition.describe()

    async def close(self) -> None:
        """Close the model's connections."""
        await self.cognition.close()


def build(parts: Base, bot: Bot) -> Engine:
    """Wire everything for one bot."""
    settings, kit = parts.settings, parts.kit
    blobs = FileBlobs(parts.blobs_dir)
    spill = Spill(kit, blobs)
    cognition = choose(settings)
    thinker = Thinker(Compiler(spill, asked), cognition)
    messenger = PtbMessenger(bot)
    registry = load(
        Context(kit.clock, parts.keys, settings.harmonia_data_dir),
        [lambda context: ContentPack(context.data_dir / "packs", context.clock)],
    )
    key = parts.keys.ensure(GRANT_KEY)
    deliverer = Deliverer(kit, messenger, key, bot.id, spill)
    poller = Poller(kit, bot)
    terms = PackTerms(registry)
    problems: list[str] = []
    desk = Desk(
        bot_id=bot.id,
        bot_username=bot.username,
        messenger=messenger,
        spill=spill,
        terms=terms,
        model=cognition.describe(),
        key=key,
        polls=not settings.telegram_webhook_url,
        wake=deliverer.wake,
        health=lambda: [
            *(f"When I started: {problem}" for problem in problems),
            *([poller.health] if poller.health else []),
        ],
    )
    pipeline = Pipeline(thinker, spill, terms, Dispatcher(registry))
    sources = SourceDesk(
        messenger, guarded_fetch(settings.harmonia_link_allow), SandboxedConverter()
    )
    handlers: dict[str, Handler] = {
        **telegram_handlers(desk),
        **pipeline.handlers,
        CHAT: chat_handler(thinker),
        "stage.read": Reading(spill, sources),
        VERIFY: Verifier(registry),
        RECONCILE: Reconciler(registry),
    }
    limits = Limits(concurrency=settings.harmonia_concurrency, lease=settings.lease)
    told = {kind: _told(handler) for kind, handler in handlers.items()}
    return Engine(
        Worker(kit, told, limits), deliverer, poller, blobs, cognition, registry, problems
    )


def _told(handler: Handler) -> Handler:
    """The handler, saying in the log which attempt this process begins."""

    async def carry(work: Work) -> None:
        claimed = work.operation
        log.debug("attempt", operation=claimed.id, kind=claimed.kind, epoch=claimed.epoch)
        await handler(work)

    return carry
