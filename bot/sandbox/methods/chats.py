"""Methods about chats and their members.

Keeps: a member that nobody knows is refused as in Telegram; leaving is told to the bot as a change
of its own standing.
"""

from __future__ import annotations

from typing import Any

from bot.sandbox import views
from bot.sandbox.errors import bad_request
from bot.sandbox.methods.call import Call, chat_of
from bot.sandbox.model import Chat, Person, Topic
from bot.sandbox.posting import ADMINS, member, member_update, next_message_id, service
from bot.sandbox.updates import Updates
from bot.sandbox.world import World

Json = dict[str, Any]
TOPIC_NAME_MAX = 128


def get_chat(call: Call) -> Json:
    """GetChat."""
    return views.full_chat(call.world, chat_of(call))


def get_chat_member(call: Call) -> Json:
    """GetChatMember."""
    chat = chat_of(call)
    user_id = call.params.number("user_id")
    person = call.world.get(Person, user_id)
    if user_id <= 0:
        raise bad_request(detail="invalid user_id specified")
    if person is None:
        raise bad_request(detail="user not found")
    return member(views.user(person), chat.members.get(user_id, "left"))


def get_chat_administrators(call: Call) -> list[Json]:
    """getChatAdministrators: other bots are not listed, the own one is."""
    chat = chat_of(call)
    if chat.type == "private":
        raise bad_request(detail="there are no administrators in the private chat")
    return [
        member(views.user_by_id(call.world, user_id), status)
        for user_id, status in chat.members.items()
        if status in ADMINS
    ]


def get_chat_member_count(call: Call) -> int:
    """GetChatMemberCount."""
    chat = chat_of(call)
    return sum(1 for status in chat.members.values() if status not in {"left", "kicked"})


def leave_chat(call: Call) -> bool:
    """LeaveChat."""
    chat = chat_of(call)
    bot_id = call.world.bot.id
    if chat.type == "private":
        raise bad_request(detail="chat member status can't be changed in private chats")
    before = chat.members[bot_id]
    left = call.world.put(chat.model_copy(update={"members": {**chat.members, bot_id: "left"}}))
    member_update(call.world, call.updates, left, bot_id, change=(before, "left"))
    return True


def _forum(call: Call) -> Chat:
    chat = chat_of(call, write=True)
    if chat.type != "supergroup" or not chat.is_forum:
        raise bad_request(detail="the chat is not a forum")
    if chat.members.get(call.world.bot.id) not in ADMINS:
        raise bad_request(detail="not enough rights to create a topic")
    return chat


def create_forum_topic(call: Call) -> Json:
    """CreateForumTopic."""
    name = call.params.text("name").strip()
    chat = _forum(call)
    if not 1 <= len(name) <= TOPIC_NAME_MAX:
        raise bad_request(detail="TOPIC_TITLE_EMPTY" if not name else "TOPIC_TITLE_INVALID")
    return open_topic(call.world, call.updates, chat, name, call.world.bot.id)


def open_topic(world: World, updates: Updates, chat: Chat, name: str, creator_id: int) -> Json:
    """A topic begins with its own service message, whose number names it."""
    fields = {"forum_topic_created": {"name": name, "icon_color": 7322096}}
    number = next_message_id(world, chat)
    service(world, updates, chat, creator_id, fields, thread_id=number, number=number)
    world.put(Topic(chat_id=chat.id, thread_id=number, name=name))
    return {"message_thread_id": number, "name": name, "icon_color": 7322096}


def delete_forum_topic(call: Call) -> bool:
    """DeleteForumTopic."""
    chat = _forum(call)
    remove_topic(call.world, chat, call.params.number("message_thread_id"))
    return True


def remove_topic(world: World, chat: Chat, thread_id: int) -> None:
    """A topic goes with its messages."""
    topic = world.get(Topic, chat.id, thread_id)
    if topic is None:
        raise bad_request(detail="TOPIC_ID_INVALID")
    world.drop(topic)
    for message in world.messages(chat.id):
        if message.thread_id == thread_id:
            world.drop(message)


METHODS = {
    "getChat": get_chat,
    "getChatMember": get_chat_member,
    "getChatAdministrators": get_chat_administrators,
    "getChatMemberCount": get_chat_member_count,
    "leaveChat": leave_chat,
    "createForumTopic": create_forum_topic,
    "deleteForumTopic": delete_forum_topic,
}
