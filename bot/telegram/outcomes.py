"""What an answer of the Bot API means: one exhaustive table, error → Delivery.

Keeps: what is not listed is uncertain; a refusal is never mistaken for a lost answer (`BadRequest`
is a subclass of `NetworkError`, so it is looked at first); no reason carries a token or a text
that we sent.
"""

from __future__ import annotations

import os
from typing import Final

import httpx
from telegram import error as errors

from runtime.ports import (
    Delivery,
    Gone,
    Moved,
    NotEntered,
    Refused,
    Throttled,
    Uncertain,
    Unchanged,
    Unreachable,
)

REASON_CHARS_MAX: Final = 200

# The library's own way to choose what `retry_after` is; unset, every 429 would warn.
os.environ.setdefault("PTB_TIMEDELTA", "1")

_NOT_MODIFIED: Final = "message is not modified"
# Descriptions of the Bot API server, lower case, by what they mean for a message.
_GONE: Final = (
    "message to edit not found",
    "message can't be edited",
    "message_id_invalid",
    "there is no text in the message to edit",
    "there is no caption in the message to edit",
)
_UNREACHABLE: Final = (
    "chat not found",
    "user not found",
    "peer_id_invalid",
    "chat_write_forbidden",
    "have no rights to send a message",
    "not enough rights to send",
    "need administrator rights in the channel chat",
    "bot was kicked",
    "bot was blocked",
    "bot can't initiate conversation",
    "user is deactivated",
    "group chat was deactivated",
    "group chat was deleted",
    "chat_restricted",
    "topic_closed",
    "topic_deleted",
    "message thread not found",
)
_PARSE: Final = ("can't parse entities", "can't find end of the entity")
# The connection was never made, so that nothing of the request can have arrived.
_BEFORE: Final = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.ProxyError)
_BEFORE_ALSO: Final = (httpx.UnsupportedProtocol, httpx.InvalidURL, httpx.LocalProtocolError)


def classify(error: errors.TelegramError) -> Delivery:
    """What became of a send or an edit that raised `error`."""
    reason = _reason(error)
    match error:
        case errors.RetryAfter():
            return Throttled(_seconds(error))
        case errors.ChatMigrated():
            return Moved(error.new_chat_id)
        case errors.Forbidden():
            return Unreachable(reason)
        case errors.InvalidToken() | errors.EndPointNotFound():
            return NotEntered("the bot's token or the method was not accepted")
        case errors.Conflict():
            return NotEntered(reason)
        case errors.BadRequest():
            return _refusal(reason)
        case errors.TimedOut() | errors.NetworkError():
            return _network(error, reason)
        case errors.PassportDecryptionError():
            return Uncertain(reason)
        case _:
            return Uncertain(reason)


def parse_refused(error: errors.TelegramError) -> bool:
    """Whether the text's marks could not be read: nothing was sent, plain text may be."""
    return isinstance(error, errors.BadRequest) and any(
        known in str(error).lower() for known in _PARSE
    )


def _refusal(reason: str) -> Delivery:
    lowered = reason.lower()
    if _NOT_MODIFIED in lowered:
        return Unchanged()
    if any(known in lowered for known in _GONE):
        return Gone(reason)
    if any(known in lowered for known in _UNREACHABLE):
        return Unreachable(reason)
    return Refused(reason)


def _network(error: errors.TelegramError, reason: str) -> Delivery:
    if isinstance(error.__cause__, _BEFORE + _BEFORE_ALSO):
        return NotEntered(reason)
    # A 429 whose waiting time is missing or zero arrives as a plain network error.
    if reason.startswith("Too Many Requests"):
        return Throttled(1.0)
    return Uncertain(reason)


def _seconds(error: errors.RetryAfter) -> float:
    after = error.retry_after
    return float(after) if isinstance(after, int | float) else after.total_seconds()


def _reason(error: errors.TelegramError) -> str:
    if isinstance(error, errors.InvalidToken):
        return "InvalidToken"
    cause = error.__cause__
    if isinstance(cause, httpx.HTTPError | httpx.InvalidURL):
        return f"{type(error).__name__}: {type(cause).__name__}"
    if isinstance(error, errors.NetworkError) and not isinstance(error, errors.BadRequest):
        # The library quotes an unparsable body here, up to its whole length.
        return str(error).partition(". Parsing the server response")[0][:REASON_CHARS_MAX]
    return str(error)[:REASON_CHARS_MAX]
