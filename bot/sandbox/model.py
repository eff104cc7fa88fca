"""The records of a sandbox world.

Keeps: records are frozen and JSON-serialisable; ids are Telegram's kinds of numbers (people
positive, basic groups negative, supergroups and channels -100...). What Telegram would only show,
it does not store: views.py makes the Bot API's objects from these.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

ChatType = Literal["private", "group", "supergroup", "channel"]
MemberStatus = Literal["creator", "administrator", "member", "restricted", "left", "kicked"]
Json = dict[str, Any]

GENERAL_TOPIC = 1
ANONYMOUS_ADMIN_ID = 1087968824
CHANNEL_SENDER_ID = 136817688


class Row(BaseModel):
    """A frozen row of the world."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Person(Row):
    """A Telegram user who is not a bot, or the bot itself."""

    id: int
    key: str
    first_name: str
    last_name: str = ""
    username: str = ""
    language_code: str = ""
    is_bot: bool = False
    note: str = ""


class Chat(Row):
    """A chat as the bot sees it; `members` maps a user ID to that user's status."""

    id: int
    type: ChatType
    title: str = ""
    is_forum: bool = False
    members: dict[int, MemberStatus]
    started: bool = True
    blocked: bool = False
    migrated_to: int | None = None
    pinned: int | None = None


class Topic(Row):
    """A forum topic. The general one has no row."""

    chat_id: int
    thread_id: int
    name: str


class StoredFile(Row):
    """Bytes that were uploaded once."""

    file_id: str
    unique_id: str
    path: str
    name: str
    mime_type: str
    size: int
    width: int = 0
    height: int = 0


class Message(Row):
    """One message. `service` holds the extra fields of a service message."""

    chat_id: int
    message_id: int
    date: int
    sender_id: int | None = None
    sender_chat_id: int | None = None
    thread_id: int | None = None
    edit_date: int | None = None
    text: str | None = None
    entities: tuple[Json, ...] = ()
    caption: str | None = None
    document: str | None = None
    photo: str | None = None
    inline_keyboard: tuple[tuple[Json, ...], ...] = ()
    input_markup: Json | None = None
    reply_to: int | None = None
    quote: str | None = None
    forward_origin: Json | None = None
    link_preview_options: Json | None = None
    protect_content: bool = False
    service: Json = {}
    reactions: dict[int, tuple[Json, ...]] = {}
    frozen_by_test: bool = False
    automatic_forward: bool = False


class QueuedUpdate(Row):
    """An update that waits for confirmation. `lane` orders webhook delivery."""

    update_id: int
    kind: str
    body: Json
    date: int
    lane: str


class Press(Row):
    """A button press and, later, the bot's answer to it."""

    query_id: str
    person_id: int
    chat_id: int
    message_id: int
    data: str | None
    date: int
    answered: bool = False
    text: str = ""
    show_alert: bool = False
    url: str = ""
    seen: bool = False


class Webhook(Row):
    """Where updates are pushed to."""

    url: str
    secret_token: str = ""
    max_connections: int = 40
    last_error_date: int = 0
    last_error_message: str = ""


class Setup(Row):
    """Everything about the bot account that is not a row of its own."""

    token: str
    bot_id: int
    next_update_id: int
    counters: dict[str, int] = {}
    allowed_updates: tuple[str, ...] | None = None
    webhook: Webhook | None = None
    commands: dict[str, tuple[Json, ...]] = {}
    reads_all_group_messages: bool = False
    logged_out_until: int = 0
    profile: dict[str, str] = {}
