"""Setting the scene: new groups, topics, migration, standing, privacy, redelivery.

Keeps: each of these is something Telegram really does to a bot, told to it by the same updates and
service messages; nothing here is reachable through the Bot API.
"""

from __future__ import annotations

from typing import Any

from bot.sandbox.acting import Acting
from bot.sandbox.errors import ControlRefusal
from bot.sandbox.methods.chats import open_topic, remove_topic
from bot.sandbox.model import Chat, ChatType, MemberStatus, Message, Person, Topic
from bot.sandbox.posting import member_update, service
from bot.sandbox.updates import Updates
from bot.sandbox.views import user
from bot.sandbox.world import World

Json = dict[str, Any]
FIRST_GROUP_ID = 4_001_000_100
FIRST_CHANNEL_ID = 2_150_009_000
SUPERGROUP_BASE = 1_000_000_000_000


class Staging:
    """Changes of the scene."""

    def __init__(self, world: World, updates: Updates, acting: Acting) -> None:
        self.world = world
        self.updates = updates
        self.acting = acting

    def create_chat(
        self, creator: Person, title: str, kind: ChatType, members: list[Person]
    ) -> Chat:
        """A new group, supergroup or channel with the bot in it."""
        if kind == "private":
            raise ControlRefusal(kind=kind, cause="private chats are there already")
        standing: dict[int, MemberStatus] = {person.id: "member" for person in members}
        bot_id = self.world.bot.id
        standing[creator.id] = "creator"
        standing[bot_id] = "administrator" if kind == "channel" else "member"
        chat = self.world.put(Chat(id=self._new_id(kind), type=kind, title=title, members=standing))
        member_update(self.world, self.updates, chat, creator.id, change=("left", standing[bot_id]))
        if kind == "group":
            service(self.world, self.updates, chat, creator.id, {"group_chat_created": True})
        elif kind == "supergroup":
            added = {"new_chat_members": [user(self.world.bot)]}
            service(self.world, self.updates, chat, creator.id, added)
        return chat

    def _new_id(self, kind: ChatType) -> int:
        if kind == "group":
            return -(FIRST_GROUP_ID + self.world.count("groups"))
        return -(SUPERGROUP_BASE + FIRST_CHANNEL_ID + self.world.count("channels"))

    def migrate(self, chat: Chat) -> Chat:
        """Upgrade a basic group: the old chat refuses, the new one goes on."""
        if chat.type != "group" or chat.migrated_to is not None:
            raise ControlRefusal(chat=chat.id, cause="only a basic group can be upgraded, once")
        new = self.world.put(
            chat.model_copy(update={"id": self._new_id("supergroup"), "type": "supergroup"})
        )
        actor = next(uid for uid, status in chat.members.items() if status == "creator")
        service(self.world, self.updates, chat, actor, {"migrate_to_chat_id": new.id})
        service(self.world, self.updates, new, actor, {"migrate_from_chat_id": chat.id})
        self.world.put(
            chat.model_copy(
                update={
                    "migrated_to": new.id,
                    "members": {**chat.members, **dict.fromkeys(chat.members, "left")},
                }
            )
        )
        return new

    def create_topic(self, chat: Chat, name: str, creator: Person) -> int:
        """A new forum topic; its number."""
        if chat.type != "supergroup":
            raise ControlRefusal(chat=chat.id, cause="only supergroups have topics")
        if not chat.is_forum:
            chat = self.world.put(chat.model_copy(update={"is_forum": True}))
        made = open_topic(self.world, self.updates, chat, name, creator.id)
        return int(made["message_thread_id"])

    def delete_topic(self, chat: Chat, thread_id: int) -> None:
        """A topic goes with its messages; the bot hears nothing of it."""
        if self.world.get(Topic, chat.id, thread_id) is None:
            raise ControlRefusal(thread_id=thread_id, cause="no such topic")
        remove_topic(self.world, chat, thread_id)

    def freeze(self, chat: Chat, message_id: int, *, frozen: bool) -> Message:
        """Make a message uneditable, or editable again."""
        message = self.acting.message(chat, message_id)
        return self.world.put(message.model_copy(update={"frozen_by_test": frozen}))

    def set_standing(self, chat: Chat, who: int, status: MemberStatus, actor: Person) -> Chat:
        """Promote, demote, remove or add a member (the bot included)."""
        before = chat.members.get(who, "left")
        changed = self.world.put(chat.model_copy(update={"members": {**chat.members, who: status}}))
        if who == self.world.bot.id:
            member_update(self.world, self.updates, changed, actor.id, change=(before, status))
        return changed

    def set_privacy(self, *, reads_all: bool) -> None:
        """Privacy mode, as set with BotFather."""
        setup = self.world.setup
        self.world.put(setup.model_copy(update={"reads_all_group_messages": reads_all}))

    def redeliver(self, update_id: int | None, times: int) -> int:
        """Deliver an update again (the newest without a number)."""
        number = self.updates.latest if update_id is None else update_id
        if number is None or not all(self.updates.redeliver(number) for _ in range(times)):
            raise ControlRefusal(update_id=number, cause="not among the remembered updates")
        return number

    def add_person(self, row: Person) -> Person:
        """One more person, with a private chat that is not yet started."""
        if self.world.get(Person, row.id) is not None:
            raise ControlRefusal(person=row.id, cause="this number is taken")
        self.world.put(
            Chat(
                id=row.id,
                type="private",
                started=False,
                members={row.id: "member", self.world.bot.id: "member"},
            )
        )
        return self.world.put(row)
