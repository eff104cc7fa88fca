"""Setting up a bot: what it hears, how updates come, its menu; and what it cannot hear.

Keeps: `allowed_updates` is set explicitly (an earlier setup's list would silently stay), polling
first takes a webhook away, and the self-check names in a sentence each what stays unheard and how
to fix it.
"""

from __future__ import annotations

from typing import Final

import structlog
from telegram import Bot, BotCommand
from telegram.error import TelegramError

from bot.telegram.updates import ALLOWED_UPDATES

MENU: Final[tuple[tuple[str, str], ...]] = (
    ("new", "start a job from a file, a link or a text"),
    ("needs", "what waits for a person"),
    ("jobs", "the newest jobs"),
    ("job", "one job: /job 17"),
    ("why", "where a job's result comes from: /why 17"),
    ("status", "who you are here and how I am"),
    ("invite", "a one-time code for a colleague: /invite approver"),
    ("help", "what I understand"),
    ("start", "pair with a code, or show the status"),
)

log = structlog.get_logger()


async def begin_polling(bot: Bot) -> None:
    """Take a webhook away (waiting updates stay) and publish the menu."""
    await bot.delete_webhook(drop_pending_updates=False)
    await publish_menu(bot)


async def use_webhook(bot: Bot, address: str, secret: str) -> None:
    """Have updates sent to `address`, with the secret in a header, and publish the menu."""
    await bot.set_webhook(address, secret_token=secret, allowed_updates=list(ALLOWED_UPDATES))
    await publish_menu(bot)


async def publish_menu(bot: Bot) -> None:
    """The commands that Telegram offers while typing; a bot without them works as well."""
    try:
        await bot.set_my_commands([BotCommand(name, words) for name, words in MENU])
    except TelegramError as error:
        # Telegram limits this call strictly: a few restarts in a row must not keep the bot down.
        log.warning("menu_not_published", error=type(error).__name__)


async def self_check(bot: Bot, *, polling: bool) -> list[str]:
    """What this bot cannot hear, and the fix, in a sentence each; empty if nothing."""
    problems: list[str] = []
    me = await bot.get_me()
    hook = await bot.get_webhook_info()
    if not me.can_read_all_group_messages:
        problems.append(
            "In groups I hear only commands and replies to me (privacy mode is on); to change it, "
            "open @BotFather, /setprivacy, choose me, Disable, then add me to the group again."
        )
    if polling and hook.url:
        problems.append(
            "A webhook is set for this bot although I took it away, so polling hears nothing; stop "
            "whatever sets it, then restart me."
        )
    if not polling and not hook.url:
        problems.append("No webhook is set for this bot, so nothing arrives; restart me to set it.")
    if not polling and hook.url:
        missing = sorted(set(ALLOWED_UPDATES) - set(hook.allowed_updates or ()))
        if missing:
            problems.append(
                f"The webhook does not bring {', '.join(missing)}; restart me to set it again."
            )
        if hook.last_error_message:
            problems.append(
                "Telegram reports that its last delivery to the webhook failed; check that its "
                "address is reachable from outside with a valid certificate."
            )
    return problems
