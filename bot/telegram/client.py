"""The Messenger over python-telegram-bot, and the few calls of setting up a bot.

Keeps: every answer is classified (`outcomes.py`), nothing is raised for what Telegram did; callback
data above 64 bytes is refused before anything is sent; a text whose marks are refused goes out as
plain text; a topic that is gone or closed falls back to the chat itself, and the message says so;
the token reaches no log (the HTTP client logs addresses, which contain it).
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Final

import structlog
from telegram import (
    Bot,
    ForceReply,
    InlineKeyboardButton,
    InlineKeyboardMarkup,
    InputFile,
    LinkPreviewOptions,
    ReplyParameters,
)
from telegram.error import BadRequest, NetworkError, TelegramError
from telegram.request import HTTPXRequest

from bot.telegram import address
from bot.telegram.errors import FileNotGiven, FileTooLarge
from bot.telegram.html import plain
from bot.telegram.outcomes import classify, parse_refused
from bot.telegram.view import with_note
from runtime.domain.grant import CALLBACK_BYTES_MAX
from runtime.errors import StoreUnavailable
from runtime.ports import Content, Delivery, Refused, Sent

FILE_BYTES_MAX: Final = 20 * 1024 * 1024
"""A bot can download at most this from Telegram's servers."""
FILE_LIMIT: Final = "20 MB"
POLL_SECONDS: Final = 25
READ_SECONDS: Final = 20.0

log = structlog.get_logger()


def make_bot(token: str, base_url: str = "", base_file_url: str = "") -> Bot:
    """A bot with its connections, not yet initialized. Empty addresses mean Telegram's own."""
    for noisy in ("httpx", "httpcore", "telegram"):
        logging.getLogger(noisy).setLevel(logging.CRITICAL)
    addresses = {}
    if base_url:
        addresses["base_url"] = base_url
    if base_file_url:
        addresses["base_file_url"] = base_file_url
    # No proxy or other setting from the environment: where the token goes is decided here.
    own = {"trust_env": False}
    return Bot(
        token,
        request=HTTPXRequest(connection_pool_size=32, read_timeout=READ_SECONDS, httpx_kwargs=own),
        get_updates_request=HTTPXRequest(
            connection_pool_size=2, read_timeout=POLL_SECONDS + READ_SECONDS, httpx_kwargs=own
        ),
        **addresses,  # type: ignore[arg-type]  # both are plain strings
    )


class PtbMessenger:
    """`Messenger` over one bot."""

    def __init__(self, bot: Bot) -> None:
        """Hold an initialized bot; who made it shuts it down."""
        self._bot = bot

    async def send(self, destination: str, content: Content) -> Delivery:
        """A new message."""
        if refused := _refused(content):
            return refused
        chat, thread = address.parse(destination)

        async def attempt(shown: Content, parse_mode: str | None) -> Delivery:
            if shown.document is None:
                return await self._send_text(chat, thread, shown, parse_mode)
            return await self._send_file(chat, thread, shown, parse_mode)

        answer = await _in_html(content, attempt)
        if thread is not None and (what := _topic_refuses(answer)):
            elsewhere = with_note(content, f"(The topic this belongs to is {what}.)")
            return await self.send(address.destination(chat), elsewhere)
        return answer

    async def _send_text(
        self, chat: int, thread: int | None, content: Content, parse_mode: str | None
    ) -> Delivery:
        message = await self._bot.send_message(
            chat,
            content.text,
            parse_mode=parse_mode,
            message_thread_id=thread,
            link_preview_options=LinkPreviewOptions(is_disabled=True),
            reply_markup=_markup(content),
            reply_parameters=_reply(content),
        )
        return Sent(message.message_id)

    async def _send_file(
        self, chat: int, thread: int | None, content: Content, parse_mode: str | None
    ) -> Delivery:
        file_name, _, data = content.document or ("", "", b"")
        message = await self._bot.send_document(
            chat,
            InputFile(data, filename=file_name),
            caption=content.text,
            parse_mode=parse_mode,
            message_thread_id=thread,
            reply_markup=_markup(content),
            reply_parameters=_reply(content),
            disable_content_type_detection=True,
        )
        return Sent(message.message_id)

    async def edit(self, destination: str, message: int, content: Content) -> Delivery:
        """Change a message; its file, if any, stays."""
        if refused := _refused(content):
            return refused
        chat, _ = address.parse(destination)

        async def attempt(shown: Content, parse_mode: str | None) -> Delivery:
            markup = _markup(shown)
            keyboard = markup if isinstance(markup, InlineKeyboardMarkup) else None
            if shown.document is None:
                await self._bot.edit_message_text(
                    shown.text,
                    chat,
                    message,
                    parse_mode=parse_mode,
                    link_preview_options=LinkPreviewOptions(is_disabled=True),
                    reply_markup=keyboard,
                )
            else:
                await self._bot.edit_message_caption(
                    chat, message, caption=shown.text, parse_mode=parse_mode, reply_markup=keyboard
                )
            return Sent(message)

        return await _in_html(content, attempt)

    async def answer(self, query: str, text: str, *, alert: bool = False) -> None:
        """Answer a press. A query too old or a lost answer is harmless: the card says it too."""
        try:
            await self._bot.answer_callback_query(query, text[:200], show_alert=alert)
        except TelegramError as error:
            log.info("toast_not_shown", error=type(error).__name__)

    async def download(self, file: str) -> bytes:
        """The bytes of a file. Raises BadInput (too large, gone) or StoreUnavailable (later)."""
        try:
            found = await self._bot.get_file(file)
            if (found.file_size or 0) > FILE_BYTES_MAX:
                raise FileTooLarge(limit=FILE_LIMIT)
            return bytes(await found.download_as_bytearray())
        except BadRequest as error:
            if "too big" in str(error).lower():
                raise FileTooLarge(limit=FILE_LIMIT) from None
            raise FileNotGiven(cause=str(error)[:100]) from None
        except (NetworkError, TelegramError) as error:
            raise StoreUnavailable(cause=f"Telegram: {type(error).__name__}") from None


async def _in_html(
    content: Content, attempt: Callable[[Content, str | None], Awaitable[Delivery]]
) -> Delivery:
    try:
        return await attempt(content, "HTML")
    except TelegramError as error:
        if not parse_refused(error):
            return classify(error)
        log.warning("html_refused", chars=len(content.text))
    try:
        return await attempt(replace(content, text=plain(content.text)), None)
    except TelegramError as error:
        return classify(error)


def _topic_refuses(answer: Delivery) -> str:
    """What is the matter with the topic, if it is the topic (and not the chat) that refuses."""
    reason = getattr(answer, "reason", "").lower()
    if "message thread not found" in reason or "topic_deleted" in reason:
        return "gone"
    return "closed" if "topic_closed" in reason else ""


def _refused(content: Content) -> Refused | None:
    """Our own limit on buttons, checked before anything is sent."""
    for row in content.buttons:
        for button in row:
            size = len(button.data.encode())
            if not 1 <= size <= CALLBACK_BYTES_MAX:
                return Refused(f"callback data of {size} bytes; 1 to {CALLBACK_BYTES_MAX} fit")
    return None


def _markup(content: Content) -> InlineKeyboardMarkup | ForceReply | None:
    if content.buttons:
        return InlineKeyboardMarkup(
            [
                [InlineKeyboardButton(button.label, callback_data=button.data) for button in row]
                for row in content.buttons
            ]
        )
    return ForceReply(selective=True) if content.ask else None


def _reply(content: Content) -> ReplyParameters | None:
    if content.reply_to is None:
        return None
    return ReplyParameters(content.reply_to, allow_sending_without_reply=True)
