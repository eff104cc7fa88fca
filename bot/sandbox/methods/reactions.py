"""Answers to presses, and reactions.

Keeps: a press can be answered once, and only for a while; later the server says that the query is
too old.
"""

from __future__ import annotations

from typing import Any

from bot.sandbox.errors import bad_request
from bot.sandbox.methods.call import Call, chat_of
from bot.sandbox.model import Message, Press

ANSWER_CHARACTERS_MAX = 200
_EMOJI_BYTES_MAX = 40
TOO_OLD = "query is too old and response timeout expired or query ID is invalid"


def answer_callback_query(call: Call) -> bool:
    """AnswerCallbackQuery."""
    press = call.world.get(Press, call.params.text("callback_query_id"))
    text = call.params.text("text")
    if press is None or press.answered:
        raise bad_request(TOO_OLD)
    if call.world.now() - press.date > call.query_seconds:
        raise bad_request(TOO_OLD)
    if len(text) > ANSWER_CHARACTERS_MAX:
        raise bad_request(detail="MESSAGE_TOO_LONG")
    call.world.put(
        press.model_copy(
            update={
                "answered": True,
                "text": text,
                "show_alert": call.params.flag("show_alert"),
                "url": call.params.text("url"),
            }
        )
    )
    return True


def set_message_reaction(call: Call) -> bool:
    """SetMessageReaction."""
    value: Any = call.params.json("reaction", "reaction types")
    if value is not None and not isinstance(value, list):
        raise bad_request(detail="Expected an Array of ReactionType")
    chat = chat_of(call, write=True)
    message = call.world.get(Message, chat.id, call.params.number("message_id"))
    if message is None:
        raise bad_request(detail="message to react not found")
    chosen = value or []
    if len(chosen) > 1:
        raise bad_request(detail="REACTIONS_TOO_MANY")
    for reaction in chosen:
        emoji = reaction.get("emoji") if isinstance(reaction, dict) else None
        if not isinstance(emoji, str) or not 0 < len(emoji.encode()) <= _EMOJI_BYTES_MAX:
            raise bad_request(detail="REACTION_INVALID")
    own = {**message.reactions, call.world.bot.id: tuple(chosen)}
    if not chosen:
        own.pop(call.world.bot.id)
    call.world.put(message.model_copy(update={"reactions": own}))
    return True


METHODS = {
    "answerCallbackQuery": answer_callback_query,
    "setMessageReaction": set_message_reaction,
}
