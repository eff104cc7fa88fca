"""One Bot API call on its way, and what most methods need of it.

Keeps: checks come in the server's order (arguments, then chat, then topic, then the replied
message), so that the first refusal is the one Telegram would give.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from bot.sandbox.errors import ApiRefusal, bad_request, forbidden
from bot.sandbox.markup_given import read_given
from bot.sandbox.markup_html import HtmlReader
from bot.sandbox.markup_markdown import MarkdownV2Reader, read_markdown
from bot.sandbox.markup_text import Raw, settle, units
from bot.sandbox.model import GENERAL_TOPIC, Chat, Message, Topic
from bot.sandbox.params import Params
from bot.sandbox.updates import Updates
from bot.sandbox.world import World

Json = dict[str, Any]
RAW_BYTES_MAX = 1 << 15


@dataclass(frozen=True)
class Call:
    """A call's arguments and the world it is about."""

    world: World
    updates: Updates
    params: Params
    query_seconds: int


Method = Callable[[Call], Any]


def chat_of(call: Call, name: str = "chat_id", *, write: bool = False) -> Chat:
    """The chat that an argument names, if the bot may use it."""
    raw = call.params.text(name)
    if not raw:
        raise bad_request(detail=f"{name} is empty")
    if raw.startswith("@"):
        raise bad_request(detail="chat not found")
    chat = call.world.get(Chat, call.params.number(name))
    if chat is None:
        raise bad_request(detail="chat not found")
    if chat.migrated_to is not None:
        raise bad_request(
            detail="group chat was upgraded to a supergroup chat",
            parameters={"migrate_to_chat_id": chat.migrated_to},
        )
    standing = chat.members.get(call.world.bot.id, "left")
    where = "group" if chat.type == "group" else f"{chat.type}"
    if chat.type != "private" and standing == "kicked":
        raise forbidden(detail=f"bot was kicked from the {where} chat")
    if chat.type != "private" and standing == "left":
        raise forbidden(detail=f"bot is not a member of the {where} chat")
    if write and chat.type == "private":
        _may_write(chat)
    return chat


def _may_write(chat: Chat) -> None:
    if chat.blocked:
        raise forbidden(detail="bot was blocked by the user")
    if not chat.started:
        # The bot knows a person from a shared group, but a person must speak first in private.
        raise forbidden(detail="bot can't initiate conversation with a user")


def topic_of(call: Call, chat: Chat) -> int | None:
    """The checked message_thread_id; None for the general topic and outside forums."""
    thread = call.params.number("message_thread_id")
    if thread == 0 or chat.type not in {"supergroup", "private"}:
        return None
    if not chat.is_forum:
        if chat.type == "supergroup" and call.world.get(Message, chat.id, thread):
            return None
        raise bad_request(detail="message thread not found")
    if thread == GENERAL_TOPIC or call.world.get(Topic, chat.id, thread) is None:
        raise bad_request(detail="message thread not found")
    return thread


def reply_of(call: Call, chat: Chat) -> tuple[int | None, str | None]:
    """The message replied to (in this chat) and the quoted part."""
    value = call.params.json("reply_parameters", "reply parameters")
    if value is not None and not isinstance(value, dict):
        raise bad_request(detail="Object expected as reply parameters")
    if value is None:
        value = {
            "message_id": call.params.number("reply_to_message_id"),
            "allow_sending_without_reply": call.params.flag("allow_sending_without_reply"),
        }
    given = Params(value)
    number = given.number("message_id")
    if number <= 0:
        return None, None
    original = call.world.get(Message, given.number("chat_id", chat.id), number)
    if original is None or original.chat_id != chat.id:
        if value.get("allow_sending_without_reply"):
            return None, None
        raise bad_request(detail="message to be replied not found")
    quote = given.text("quote") or None
    if quote and quote not in (original.text or original.caption or ""):
        raise bad_request(detail="QUOTE_TEXT_INVALID")
    return number, quote


def formatted(
    call: Call, name: str, entities_name: str = "entities"
) -> tuple[str, tuple[Json, ...]]:
    """An argument's text and entities, by parse_mode or as given."""
    raw = call.params.text(name)
    mode = call.params.text("parse_mode").lower()
    if len(raw.encode()) > RAW_BYTES_MAX:
        raise bad_request(detail="Text is too long")
    if raw and mode not in {"", "none"}:
        text, marks = _parse(raw, mode)
    else:
        text, marks = raw, read_given(raw, call.params.loose_json(entities_name))
    text, entities = settle(text, marks)
    return text, tuple(entities)


def _parse(raw: str, mode: str) -> tuple[str, list[Raw]]:
    if mode == "html":
        return HtmlReader(raw).read()
    if mode == "markdownv2":
        return MarkdownV2Reader(raw).read()
    if mode == "markdown":
        return read_markdown(raw)
    raise bad_request(detail="Unsupported parse_mode")


def text_argument(call: Call) -> tuple[str, tuple[Json, ...]]:
    """A message's text: there, readable, not empty. Its length is checked later."""
    if not call.params.text("text"):
        raise bad_request(detail="Message text is empty")
    text, entities = formatted(call, "text")
    if not text:
        raise bad_request(detail="Text must be non-empty")
    return text, entities


def check_length(text: str, limit: int, what: str) -> None:
    """The length after the marks are gone, in UTF-16 units."""
    if units(text) > limit:
        raise bad_request(detail=f"{what} is too long")


def own_message(call: Call, chat: Chat, what: str = "message to edit") -> Message:
    """The bot's message that an edit names."""
    message = call.world.get(Message, chat.id, call.params.number("message_id"))
    if message is None:
        raise bad_request(detail=f"{what} not found")
    if message.sender_id != call.world.bot.id or message.forward_origin or message.frozen_by_test:
        raise bad_request(detail="Message can't be edited")
    return message


def require(condition: object, refusal: ApiRefusal) -> None:
    """Refuse where a condition does not hold."""
    if not condition:
        raise refusal
