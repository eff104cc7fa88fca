"""What people do: write, attach, press, edit, forward, block, migrate.

Keeps: a person acts only in chats they are in; what they do reaches the bot as the update Telegram
would send; numbers and names of people are never taken from the text they write.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from bot.sandbox import views
from bot.sandbox.errors import ControlRefusal
from bot.sandbox.filing import image_size, store_upload
from bot.sandbox.markup_text import CAPTION_UNITS_MAX, TEXT_UNITS_MAX, Raw, settle, units
from bot.sandbox.methods.sending import origin_of_message
from bot.sandbox.model import (
    ANONYMOUS_ADMIN_ID,
    CHANNEL_SENDER_ID,
    GENERAL_TOPIC,
    Chat,
    Message,
    Person,
    Press,
    Topic,
)
from bot.sandbox.params import Upload
from bot.sandbox.posting import announce, member_update, next_message_id, post, thread_of
from bot.sandbox.updates import Updates
from bot.sandbox.world import World

Json = dict[str, Any]
SenderKind = Literal["self", "anonymous", "channel"]
Shape = Literal["full", "stub", "inline", "bare"]


@dataclass(frozen=True)
class Place:
    """Where and as whom a person writes."""

    chat: Chat
    reply_to: int | None = None
    thread_id: int | None = None
    sender: SenderKind = "self"
    channel_id: int | None = None


class Acting:
    """People's side of the world."""

    def __init__(self, world: World, updates: Updates) -> None:
        self.world = world
        self.updates = updates

    # --- finding ---

    def person(self, name: object) -> Person:
        """A person by key, user name or number."""
        wanted = str(name).lower().lstrip("@")
        for person in self.world.all(Person):
            if not person.is_bot and wanted in {
                person.key,
                str(person.id),
                person.username.lower() or person.key,
            }:
                return person
        raise ControlRefusal(person=name, known=", ".join(self._people()))

    def _people(self) -> list[str]:
        return [person.key for person in self.world.all(Person) if not person.is_bot]

    def chat(self, person: Person, name: object) -> Chat:
        """A chat the person is in: "bot" or "private", a title, a number."""
        wanted = str(name)
        if wanted in {"bot", "private", ""}:
            wanted = str(person.id)
        for chat in self.chats(person):
            if wanted in {str(chat.id), chat.title}:
                return chat
        raise ControlRefusal(chat=name, person=person.key, cause="not a chat of this person")

    def chats(self, person: Person) -> list[Chat]:
        """The chats a person sees."""
        return [
            chat
            for chat in self.world.all(Chat)
            if chat.members.get(person.id) not in {None, "left", "kicked"}
            and (chat.type != "private" or chat.id == person.id)
        ]

    def message(self, chat: Chat, message_id: int) -> Message:
        """A message of a chat."""
        message = self.world.get(Message, chat.id, message_id)
        if message is None:
            raise ControlRefusal(message_id=message_id, chat=chat.id, cause="no such message")
        return message

    # --- writing ---

    def send_text(
        self, person: Person, place: Place, text: str, marks: list[Raw] | None = None
    ) -> Message:
        """Send a text; over-long ones are refused as a client would not send them."""
        settled, entities = settle(text, marks or [])
        if not settled:
            raise ControlRefusal(text="empty")
        if units(settled) > TEXT_UNITS_MAX:
            raise ControlRefusal(text_units=units(settled), most=TEXT_UNITS_MAX)
        return self._post(person, place, {"text": settled, "entities": tuple(entities)})

    def send_file(
        self, person: Person, place: Place, upload: Upload, caption: str, *, photo: bool
    ) -> Message:
        """Send a file, as a document or as a photo."""
        settled, entities = settle(caption, [])
        if units(settled) > CAPTION_UNITS_MAX:
            raise ControlRefusal(caption_units=units(settled), most=CAPTION_UNITS_MAX)
        if photo and not image_size(upload.content)[0]:
            raise ControlRefusal(photo=upload.name, cause="not an image")
        self._check_place(person, place)
        held = store_upload(self.world, upload, "photos" if photo else "documents")
        fields: Json = {"caption": settled or None, "entities": tuple(entities)}
        fields["photo" if photo else "document"] = held.file_id
        return self._post(person, place, fields)

    def edit(self, person: Person, chat: Chat, message_id: int, text: str) -> Message:
        """Edit an own message."""
        message = self.message(chat, message_id)
        if message.sender_id != person.id:
            raise ControlRefusal(message_id=message_id, cause="not this person's message")
        settled, entities = settle(text, [])
        if not settled:
            raise ControlRefusal(text="empty")
        field = "text" if message.text is not None else "caption"
        changed = self.world.put(
            message.model_copy(
                update={
                    field: settled,
                    "entities": tuple(entities),
                    "edit_date": self.world.now(),
                }
            )
        )
        announce(self.world, self.updates, changed, edited=True)
        return changed

    def forward(self, person: Person, source: Message, place: Place) -> Message:
        """Forward a message to another chat."""
        fields = {
            name: getattr(source, name)
            for name in ("text", "entities", "caption", "document", "photo")
        }
        fields["forward_origin"] = origin_of_message(self.world, source)
        return self._post(person, place, fields)

    def delete(self, person: Person, chat: Chat, message_id: int) -> None:
        """Delete a message; the bot hears nothing of it, as in Telegram."""
        message = self.message(chat, message_id)
        creator = chat.members.get(person.id) == "creator"
        if chat.type != "private" and message.sender_id != person.id and not creator:
            raise ControlRefusal(message_id=message_id, cause="not this person's message")
        self.world.drop(message)

    def _check_place(self, person: Person, place: Place) -> None:
        thread = place.thread_id
        in_topic = bool(thread) and place.chat.is_forum and thread != GENERAL_TOPIC
        if in_topic and self.world.get(Topic, place.chat.id, thread) is None:
            raise ControlRefusal(thread_id=thread, cause="no such topic")
        if place.reply_to is not None:
            self.message(place.chat, place.reply_to)
        if place.sender == "anonymous" and place.chat.members.get(person.id) not in {
            "creator",
            "administrator",
        }:
            raise ControlRefusal(person=person.key, cause="only administrators can be anonymous")

    def _post(self, person: Person, place: Place, fields: Json) -> Message:
        self._check_place(person, place)
        chat = self._opened(person, place.chat)
        thread = thread_of(chat, place.thread_id)
        if thread is None and place.reply_to is not None and chat.is_forum:
            thread = self.message(chat, place.reply_to).thread_id
        message = Message(
            chat_id=chat.id,
            message_id=next_message_id(self.world, chat),
            date=self.world.now(),
            thread_id=thread,
            reply_to=place.reply_to,
            **self._sender(person, chat, place),
            **fields,
        )
        return post(self.world, self.updates, message)

    def _sender(self, person: Person, chat: Chat, place: Place) -> Json:
        if chat.type == "channel":
            return {"sender_chat_id": chat.id}
        if place.sender == "anonymous":
            return {"sender_id": ANONYMOUS_ADMIN_ID, "sender_chat_id": chat.id}
        if place.sender == "channel":
            return {"sender_id": CHANNEL_SENDER_ID, "sender_chat_id": place.channel_id}
        return {"sender_id": person.id}

    def _opened(self, person: Person, chat: Chat) -> Chat:
        """Writing to the bot starts the chat and takes back a block."""
        if chat.type != "private":
            return chat
        if chat.blocked:
            chat = self.block(person, blocked=False)
        if not chat.started:
            chat = self.world.put(chat.model_copy(update={"started": True}))
        return chat

    # --- pressing ---

    def press(
        self, person: Person, chat: Chat, message_id: int, data: str | None, shape: Shape = "full"
    ) -> tuple[Press, int | None]:
        """Press a button: the query's row and the number of its update."""
        message = self.message(chat, message_id)
        press = self.world.put(
            Press(
                query_id=str(self._query_number(person)),
                person_id=person.id,
                chat_id=chat.id,
                message_id=message_id,
                data=data,
                date=self.world.now(),
            )
        )
        query: Json = {"id": press.query_id, "from": views.user(person)}
        if shape == "full":
            query["message"] = views.message(self.world, message)
        elif shape == "stub":
            shown = views.chat(self.world, chat)
            query["message"] = {"chat": shown, "message_id": message_id, "date": 0}
        elif shape == "inline":
            query["inline_message_id"] = f"AQAAAInline{press.query_id}"
        query["chat_instance"] = str(chat.id * 4096 + 7)
        if data is not None and shape != "bare":
            query["data"] = data
        # Presses have a lane of their own in Telegram's queue: one for each person.
        number = self.updates.push("callback_query", query, f"press:{person.id}")
        return press, number

    def _query_number(self, person: Person) -> int:
        return person.id * 2**32 % 2**62 + self.world.count("queries") * 1_000_003

    # --- standing ---

    def block(self, person: Person, *, blocked: bool) -> Chat:
        """Block or unblock the bot."""
        chat = self.chat(person, "bot")
        if chat.blocked == blocked:
            return chat
        changed = self.world.put(chat.model_copy(update={"blocked": blocked}))
        change = ("member", "kicked") if blocked else ("kicked", "member")
        member_update(self.world, self.updates, changed, person.id, change=change)
        return changed
