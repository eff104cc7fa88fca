"""Putting messages into chats, whoever writes them.

Keeps: a message of a person becomes an update for the bot exactly when Telegram would send one
(privacy mode included); the bot's own messages never do; message numbers rise per chat.
"""

from __future__ import annotations

import re
from typing import Any

from bot.sandbox import views
from bot.sandbox.model import GENERAL_TOPIC, Chat, Message, Person
from bot.sandbox.updates import Updates
from bot.sandbox.world import World

Json = dict[str, Any]
ADMINS = ("creator", "administrator")


def next_message_id(world: World, chat: Chat) -> int:
    """Supergroups and channels count for themselves; all other chats of a bot share one row."""
    own = chat.type in {"supergroup", "channel"}
    return world.count(f"messages:{chat.id}" if own else "messages")


def lane(message: Message) -> str:
    """Updates of one chat are delivered in order."""
    return f"chat:{message.chat_id}"


def hears(world: World, message: Message) -> bool:
    """Whether the bot is told of this message (privacy mode)."""
    chat = world.get(Chat, message.chat_id)
    bot = world.bot
    if chat is None or chat.members.get(bot.id) in {None, "left", "kicked"}:
        return False
    if chat.type in {"private", "channel"} or message.service:
        return True
    if world.setup.reads_all_group_messages or chat.members.get(bot.id) in ADMINS:
        return True
    if message.reply_to is not None:
        original = world.get(Message, message.chat_id, message.reply_to)
        if original is not None and original.sender_id == bot.id:
            return True
    text = (message.text or message.caption or "").encode("utf-16-le")
    for entity in message.entities:
        start, end = entity["offset"] * 2, (entity["offset"] + entity["length"]) * 2
        piece = text[start:end].decode("utf-16-le").lower()
        name = f"@{bot.username}".lower()
        if entity["type"] == "mention" and piece == name:
            return True
        if entity["type"] == "bot_command" and (
            re.fullmatch(r"/\w+", piece) or piece.endswith(name)
        ):
            return True
    return False


def post(world: World, updates: Updates, message: Message) -> Message:
    """Keep the message and tell the bot where it must hear of it."""
    world.put(message)
    announce(world, updates, message, edited=False)
    return message


def announce(world: World, updates: Updates, message: Message, *, edited: bool) -> None:
    """Queue the update of a new or edited message."""
    if message.sender_id == world.bot.id and not message.service:
        return
    if not hears(world, message):
        return
    chat = world.get(Chat, message.chat_id)
    kind = "channel_post" if chat is not None and chat.type == "channel" else "message"
    updates.push(f"edited_{kind}" if edited else kind, views.message(world, message), lane(message))


def service(
    world: World,
    updates: Updates,
    chat: Chat,
    sender_id: int,
    fields: Json,
    *,
    thread_id: int | None = None,
    number: int | None = None,
) -> Message:
    """A service message; the bot hears of it."""
    return post(
        world,
        updates,
        Message(
            chat_id=chat.id,
            message_id=number or next_message_id(world, chat),
            date=world.now(),
            sender_id=sender_id,
            thread_id=thread_id,
            service=fields,
        ),
    )


def member_update(
    world: World, updates: Updates, chat: Chat, actor_id: int, *, change: tuple[str, str]
) -> None:
    """my_chat_member: the bot's own standing in a chat changed."""
    bot = views.user(world.bot)
    actor = world.get(Person, actor_id)
    updates.push(
        "my_chat_member",
        {
            "chat": views.chat(world, chat),
            "from": views.user(actor) if actor else bot,
            "date": world.now(),
            "old_chat_member": member(bot, change[0]),
            "new_chat_member": member(bot, change[1]),
        },
        f"chat:{chat.id}",
    )


_ADMIN_RIGHTS = (
    "can_be_edited",
    "can_manage_chat",
    "can_change_info",
    "can_delete_messages",
    "can_invite_users",
    "can_restrict_members",
    "can_pin_messages",
    "can_manage_topics",
    "can_promote_members",
    "can_manage_video_chats",
    "can_post_stories",
    "can_edit_stories",
    "can_delete_stories",
)
_GIVEN = frozenset({"can_manage_chat", "can_delete_messages", "can_pin_messages"})


def member(user: Json, status: str) -> Json:
    """A ChatMember."""
    shown: Json = {"user": user, "status": status}
    if status == "creator":
        shown["is_anonymous"] = False
    elif status == "administrator":
        shown |= {right: right in _GIVEN for right in _ADMIN_RIGHTS}
        shown["is_anonymous"] = False
    elif status == "kicked":
        shown["until_date"] = 0
    return shown


def thread_of(chat: Chat, thread_id: int | None) -> int | None:
    """The general topic carries no thread number."""
    if not chat.is_forum or thread_id in {None, 0, GENERAL_TOPIC}:
        return None
    return thread_id
