"""Methods that make a new message: sendMessage, sendDocument, sendPhoto, forward, copy.

Keeps: a refused send leaves no message, no file and no number behind.
"""

from __future__ import annotations

from typing import Any

from bot.sandbox import keyboard, views
from bot.sandbox.errors import bad_request
from bot.sandbox.filing import store_upload, usable_photo
from bot.sandbox.markup_text import CAPTION_UNITS_MAX, TEXT_UNITS_MAX
from bot.sandbox.methods.call import (
    Call,
    chat_of,
    check_length,
    formatted,
    reply_of,
    text_argument,
    topic_of,
)
from bot.sandbox.model import Chat, Message, StoredFile
from bot.sandbox.params import Upload
from bot.sandbox.posting import next_message_id
from bot.sandbox.world import World

Json = dict[str, Any]
ACTIONS = frozenset(
    {
        "cancel",
        "typing",
        "record_video",
        "upload_video",
        "record_audio",
        "upload_audio",
        "record_voice",
        "upload_voice",
        "upload_photo",
        "upload_document",
        "find_location",
        "choose_sticker",
        "pick_up_location",
        "record_video_note",
        "upload_video_note",
    }
)


def _deliver(call: Call, chat: Chat, fields: Json) -> Json:
    """Make the message in a chat that was checked."""
    world = call.world
    message = world.put(
        Message(
            chat_id=chat.id,
            message_id=next_message_id(world, chat),
            date=world.now(),
            sender_id=None if chat.type == "channel" else world.bot.id,
            sender_chat_id=chat.id if chat.type == "channel" else None,
            protect_content=call.params.flag("protect_content"),
            **fields,
        )
    )
    return views.message(world, message)


def _place(call: Call) -> tuple[Chat, Json]:
    """Where a new message goes: chat, topic, reply, markup; all checked."""
    buttons, other = keyboard.read_markup(call.params)
    chat = chat_of(call, write=True)
    thread = topic_of(call, chat)
    reply_to, quote = reply_of(call, chat)
    keyboard.check_limits(buttons)
    if thread is None and reply_to is not None and chat.is_forum:
        original = call.world.get(Message, chat.id, reply_to)
        thread = original.thread_id if original else None
    return chat, {
        "thread_id": thread,
        "reply_to": reply_to,
        "quote": quote,
        "inline_keyboard": buttons,
        "input_markup": other,
    }


def send_message(call: Call) -> Json:
    """SendMessage."""
    text, entities = text_argument(call)
    preview = call.params.json("link_preview_options", "link preview options")
    if preview is not None and not isinstance(preview, dict):
        raise bad_request(detail="Object expected as link preview options")
    if preview is None and call.params.flag("disable_web_page_preview"):
        preview = {"is_disabled": True}
    chat, place = _place(call)
    check_length(text, TEXT_UNITS_MAX, "Message")
    fields = {"text": text, "entities": entities, "link_preview_options": preview}
    return _deliver(call, chat, {**place, **fields})


def _media(call: Call, name: str, what: str) -> StoredFile | Upload:
    """The file of an argument: uploaded now, or held already."""
    upload = call.params.upload(name)
    if upload is not None:
        if not upload.content:
            raise bad_request(detail="File must be non-empty")
        return upload
    value = call.params.text(name)
    if not value:
        raise bad_request(detail=f"There is no {what} in the request")
    if value.startswith(("http://", "https://")):
        # The sandbox reaches no network; Telegram's own words for a link it could not fetch.
        raise bad_request(detail="Failed to get HTTP URL content")
    held = call.world.get(StoredFile, value)
    if held is None:
        raise bad_request(detail="wrong file identifier/HTTP URL specified")
    return held


def _send_media(call: Call, name: str, what: str) -> Json:
    media = _media(call, name, what)
    if name == "photo":
        usable_photo(media)
    caption, entities = formatted(call, "caption", "caption_entities")
    chat, place = _place(call)
    check_length(caption, CAPTION_UNITS_MAX, "Message caption")
    if isinstance(media, Upload):
        media = store_upload(call.world, media, "photos" if name == "photo" else "documents")
    fields = {name: media.file_id, "caption": caption or None, "entities": entities}
    return _deliver(call, chat, {**place, **fields})


def send_document(call: Call) -> Json:
    """SendDocument."""
    return _send_media(call, "document", "document")


def send_photo(call: Call) -> Json:
    """SendPhoto."""
    return _send_media(call, "photo", "photo")


def _source(call: Call, what: str) -> Message:
    origin = chat_of(call, "from_chat_id")
    message = call.world.get(Message, origin.id, call.params.number("message_id"))
    if message is None:
        raise bad_request(detail=f"message to {what} not found")
    if message.service or message.protect_content:
        done = {"forward": "forwarded", "copy": "copied"}[what]
        raise bad_request(detail=f"message can't be {done}")
    return message


def forward_message(call: Call) -> Json:
    """ForwardMessage."""
    chat = chat_of(call, write=True)
    thread = topic_of(call, chat)
    source = _source(call, "forward")
    return _deliver(
        call,
        chat,
        {
            "thread_id": thread,
            "text": source.text,
            "entities": source.entities,
            "caption": source.caption,
            "document": source.document,
            "photo": source.photo,
            "forward_origin": origin_of_message(call.world, source),
        },
    )


def origin_of_message(world: World, source: Message) -> Json:
    """Who a forwarded message is from."""
    if source.forward_origin is not None:
        return source.forward_origin
    if source.sender_id is not None and source.sender_chat_id is None:
        sender = views.user_by_id(world, source.sender_id)
        return {"type": "user", "sender_user": sender, "date": source.date}
    chat = world.get(Chat, source.sender_chat_id or source.chat_id)
    shown = views.chat(world, chat) if chat else {"id": source.chat_id}
    return {"type": "chat", "sender_chat": shown, "date": source.date}


def copy_message(call: Call) -> Json:
    """CopyMessage."""
    chat, place = _place(call)
    source = _source(call, "copy")
    caption, entities = source.caption, source.entities
    if call.params.has("caption") and source.text is None:
        caption, entities = formatted(call, "caption", "caption_entities")
        check_length(caption, CAPTION_UNITS_MAX, "Message caption")
    made = _deliver(
        call,
        chat,
        {
            **place,
            "text": source.text,
            "entities": entities,
            "caption": caption,
            "document": source.document,
            "photo": source.photo,
        },
    )
    return {"message_id": made["message_id"]}


def send_chat_action(call: Call) -> bool:
    """SendChatAction."""
    if call.params.text("action") not in ACTIONS:
        raise bad_request(detail="Wrong parameter action in request")
    topic_of(call, chat_of(call, write=True))
    return True


METHODS = {
    "sendMessage": send_message,
    "sendDocument": send_document,
    "sendPhoto": send_photo,
    "forwardMessage": forward_message,
    "copyMessage": copy_message,
    "sendChatAction": send_chat_action,
}
