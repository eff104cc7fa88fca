"""Methods that change messages: edit text, caption, markup; delete; pin.

Keeps: an edit that changes nothing is refused as "not modified"; an edit without a keyboard takes
the keyboard away; only the bot's own, unforwarded messages can be edited.
"""

from __future__ import annotations

from typing import Any

from bot.sandbox import keyboard, views
from bot.sandbox.errors import bad_request
from bot.sandbox.markup_text import CAPTION_UNITS_MAX, TEXT_UNITS_MAX
from bot.sandbox.methods.call import (
    Call,
    chat_of,
    check_length,
    formatted,
    own_message,
    text_argument,
)
from bot.sandbox.model import Chat, Message
from bot.sandbox.posting import ADMINS, service

Json = dict[str, Any]
NOT_MODIFIED = (
    "message is not modified: specified new message content and reply markup are exactly the same "
    "as a current content and reply markup of the message"
)
DELETE_SECONDS_MAX = 48 * 3600
MANY_MAX = 100


def _target(call: Call) -> tuple[Chat, Message]:
    if call.params.text("inline_message_id") and not call.params.has("chat_id"):
        raise bad_request(detail="MESSAGE_ID_INVALID")
    if call.params.number("message_id") <= 0 and not call.params.text("message_id"):
        raise bad_request(detail="Message identifier is not specified")
    chat = chat_of(call, write=True)
    return chat, own_message(call, chat)


def _change(call: Call, message: Message, fields: Json) -> Json:
    changed = message.model_copy(update=fields)
    if changed == message:
        raise bad_request(NOT_MODIFIED)
    changed = changed.model_copy(update={"edit_date": call.world.now()})
    call.world.put(changed)
    return views.message(call.world, changed)


def edit_message_text(call: Call) -> Json:
    """EditMessageText."""
    text, entities = text_argument(call)
    preview = call.params.json("link_preview_options", "link preview options")
    buttons, _ = keyboard.read_markup(call.params)
    _, message = _target(call)
    if message.text is None:
        raise bad_request(detail="there is no text in the message to edit")
    keyboard.check_limits(buttons)
    check_length(text, TEXT_UNITS_MAX, "Message")
    fields: Json = {"text": text, "entities": entities, "inline_keyboard": buttons}
    if preview is not None:
        fields["link_preview_options"] = preview
    return _change(call, message, fields)


def edit_message_caption(call: Call) -> Json:
    """EditMessageCaption."""
    caption, entities = formatted(call, "caption", "caption_entities")
    buttons, _ = keyboard.read_markup(call.params)
    _, message = _target(call)
    if message.text is not None:
        raise bad_request(detail="there is no caption in the message to edit")
    keyboard.check_limits(buttons)
    check_length(caption, CAPTION_UNITS_MAX, "Message caption")
    fields = {"caption": caption or None, "entities": entities, "inline_keyboard": buttons}
    return _change(call, message, fields)


def edit_message_reply_markup(call: Call) -> Json:
    """EditMessageReplyMarkup."""
    buttons, _ = keyboard.read_markup(call.params)
    _, message = _target(call)
    keyboard.check_limits(buttons)
    return _change(call, message, {"inline_keyboard": buttons})


def _may_delete(call: Call, chat: Chat, message: Message) -> bool:
    if chat.type != "private" and chat.members.get(call.world.bot.id) in ADMINS:
        return True
    if chat.type != "private" and message.sender_id != call.world.bot.id:
        return False
    return message.date + DELETE_SECONDS_MAX > call.world.now()


def delete_message(call: Call) -> bool:
    """DeleteMessage."""
    if not call.params.text("message_id"):
        raise bad_request(detail="Message identifier is not specified")
    chat = chat_of(call, write=True)
    message = call.world.get(Message, chat.id, call.params.number("message_id"))
    if message is None:
        raise bad_request(detail="message to delete not found")
    if not _may_delete(call, chat, message):
        raise bad_request(detail="message can't be deleted")
    call.world.drop(message)
    return True


def delete_messages(call: Call) -> bool:
    """deleteMessages: those that cannot be found are skipped."""
    numbers = call.params.json("message_ids", "message_ids")
    if not isinstance(numbers, list):
        raise bad_request(detail="Expected an Array of message identifiers")
    if len(numbers) > MANY_MAX:
        raise bad_request(detail="Too many message identifiers specified")
    chat = chat_of(call, write=True)
    found = [call.world.get(Message, chat.id, number) for number in numbers]
    for message in found:
        if message is not None and not _may_delete(call, chat, message):
            raise bad_request(detail="message can't be deleted")
    for message in found:
        if message is not None:
            call.world.drop(message)
    return True


def pin_chat_message(call: Call) -> bool:
    """PinChatMessage."""
    chat = chat_of(call, write=True)
    message = call.world.get(Message, chat.id, call.params.number("message_id"))
    if message is None:
        raise bad_request(detail="message to pin not found")
    if chat.type != "private" and chat.members.get(call.world.bot.id) not in ADMINS:
        raise bad_request(detail="not enough rights to manage pinned messages in the chat")
    if chat.pinned != message.message_id:
        chat = call.world.put(chat.model_copy(update={"pinned": message.message_id}))
        fields = {"pinned_message": views.message(call.world, message, reply=False)}
        service(
            call.world,
            call.updates,
            chat,
            call.world.bot.id,
            fields,
            thread_id=message.thread_id,
        )
    return True


def unpin_chat_message(call: Call) -> bool:
    """UnpinChatMessage."""
    chat = chat_of(call, write=True)
    if chat.pinned is None:
        raise bad_request(detail="message to unpin not found")
    call.world.put(chat.model_copy(update={"pinned": None}))
    return True


METHODS = {
    "editMessageText": edit_message_text,
    "editMessageCaption": edit_message_caption,
    "editMessageReplyMarkup": edit_message_reply_markup,
    "deleteMessage": delete_message,
    "deleteMessages": delete_messages,
    "pinChatMessage": pin_chat_message,
    "unpinChatMessage": unpin_chat_message,
    "unpinAllChatMessages": unpin_chat_message,
}
