"""The Bot API's objects, made from the world's rows.

Keeps: fields stand exactly where the Bot API puts them (a private chat has names, a group a title;
only inline keyboards come back; a reply shows its original without that one's own reply).
"""

from __future__ import annotations

from typing import Any

from bot.sandbox.model import (
    ANONYMOUS_ADMIN_ID,
    CHANNEL_SENDER_ID,
    Chat,
    Message,
    Person,
    StoredFile,
)
from bot.sandbox.world import World

Json = dict[str, Any]
DOWNLOAD_BYTES_MAX = 20 * 1024 * 1024


def user(person: Person) -> Json:
    """A User."""
    shown: Json = {"id": person.id, "is_bot": person.is_bot, "first_name": person.first_name}
    for name in ("last_name", "username", "language_code"):
        if value := getattr(person, name):
            shown[name] = value
    return shown


def user_by_id(world: World, user_id: int) -> Json:
    """A User, also one of Telegram's own helpers."""
    if user_id == ANONYMOUS_ADMIN_ID:
        return {
            "id": user_id,
            "is_bot": True,
            "first_name": "Group",
            "username": "GroupAnonymousBot",
        }
    if user_id == CHANNEL_SENDER_ID:
        return {
            "id": user_id,
            "is_bot": True,
            "first_name": "Channel",
            "username": "Channel_Bot",
        }
    person = world.get(Person, user_id)
    if person is None:
        return {"id": user_id, "is_bot": False, "first_name": ""}
    return user(person)


def me(world: World) -> Json:
    """The bot's own User, as getMe shows it."""
    return {
        **user(world.bot),
        "can_join_groups": True,
        "can_read_all_group_messages": world.setup.reads_all_group_messages,
        "supports_inline_queries": False,
        "can_connect_to_business": False,
        "has_main_web_app": False,
        "has_topics_enabled": False,
        "allows_users_to_create_topics": False,
        "can_manage_bots": False,
        "supports_guest_queries": False,
    }


def chat(world: World, row: Chat) -> Json:
    """A Chat."""
    if row.type == "private":
        person = world.get(Person, row.id)
        shown: Json = {"id": row.id, "type": "private"}
        if person is not None:
            for name in ("first_name", "last_name", "username"):
                if value := getattr(person, name):
                    shown[name] = value
        return shown
    shown = {"id": row.id, "title": row.title, "type": row.type}
    if row.is_forum:
        shown["is_forum"] = True
    if row.type == "group":
        shown["all_members_are_administrators"] = True
        shown["accepted_gift_types"] = dict.fromkeys(_GIFTS, False)
    return shown


_GIFTS = (
    "unlimited_gifts",
    "limited_gifts",
    "unique_gifts",
    "premium_subscription",
    "gifts_from_channels",
)


def full_chat(world: World, row: Chat) -> Json:
    """A ChatFullInfo."""
    shown = {
        **chat(world, row),
        "accent_color_id": row.id % 7 if row.id > 0 else -row.id % 7,
        "max_reaction_count": 11,
        "accepted_gift_types": dict.fromkeys(_GIFTS, False),
    }
    if row.type != "private":
        shown["permissions"] = {
            "can_send_messages": True,
            "can_send_documents": True,
            "can_send_photos": True,
        }
    if row.pinned is not None:
        pinned = world.get(Message, row.id, row.pinned)
        if pinned is not None:
            shown["pinned_message"] = message(world, pinned, reply=False)
    return shown


def file(row: StoredFile, *, with_path: bool = False) -> Json:
    """A File, or the file part of a document or photo."""
    shown: Json = {
        "file_id": row.file_id,
        "file_unique_id": row.unique_id,
        "file_size": row.size,
    }
    if with_path:
        shown["file_path"] = row.path
    return shown


def entities(world: World, rows: tuple[Json, ...]) -> list[Json]:
    """MessageEntity objects; a mention by number shows its User."""
    return [
        {
            **{name: value for name, value in row.items() if name != "user_id"},
            **({"user": user_by_id(world, row["user_id"])} if "user_id" in row else {}),
        }
        for row in rows
    ]


def message(world: World, row: Message, *, reply: bool = True) -> Json:
    """A Message."""
    home = world.get(Chat, row.chat_id)
    shown: Json = {"message_id": row.message_id}
    if row.sender_id is not None:
        shown["from"] = user_by_id(world, row.sender_id)
    if row.sender_chat_id is not None:
        sender = world.get(Chat, row.sender_chat_id)
        shown["sender_chat"] = chat(world, sender) if sender else {"id": row.sender_chat_id}
    shown["chat"] = chat(world, home) if home else {"id": row.chat_id}
    shown["date"] = row.date
    if row.thread_id is not None:
        shown |= {"message_thread_id": row.thread_id, "is_topic_message": True}
    if row.edit_date is not None:
        shown["edit_date"] = row.edit_date
    if row.forward_origin is not None:
        shown |= _forwarded(row)
    if reply and row.reply_to is not None:
        original = world.get(Message, row.chat_id, row.reply_to)
        if original is not None:
            shown["reply_to_message"] = message(world, original, reply=False)
            if row.quote:
                shown["quote"] = {"text": row.quote, "position": 0, "is_manual": True}
    shown |= _content(world, row)
    if row.inline_keyboard:
        shown["reply_markup"] = {"inline_keyboard": [list(line) for line in row.inline_keyboard]}
    if row.link_preview_options:
        shown["link_preview_options"] = row.link_preview_options
    if row.protect_content:
        shown["has_protected_content"] = True
    if row.automatic_forward:
        shown["is_automatic_forward"] = True
    return shown | row.service


def _forwarded(row: Message) -> Json:
    origin = row.forward_origin or {}
    old: Json = {"forward_origin": origin, "forward_date": origin.get("date", row.date)}
    if origin.get("type") == "user":
        old["forward_from"] = origin["sender_user"]
    return old


def _content(world: World, row: Message) -> Json:
    shown: Json = {}
    marks = entities(world, row.entities)
    if row.text is not None:
        shown["text"] = row.text
        if marks:
            shown["entities"] = marks
        return shown
    if row.document and (held := world.get(StoredFile, row.document)):
        shown["document"] = {"file_name": held.name, "mime_type": held.mime_type, **file(held)}
    if row.photo and (held := world.get(StoredFile, row.photo)):
        shown["photo"] = [{"width": held.width, "height": held.height, **file(held)}]
    if row.caption:
        shown["caption"] = row.caption
        if marks:
            shown["caption_entities"] = marks
    return shown
