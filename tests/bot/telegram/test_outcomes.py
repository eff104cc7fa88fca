"""What an answer means: every error class of the library stands in the table."""

from __future__ import annotations

import inspect
from datetime import timedelta

import httpx
import pytest
from telegram import error as errors

from bot.telegram.outcomes import classify, parse_refused
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

SAMPLES: dict[type[errors.TelegramError], tuple[errors.TelegramError, type]] = {
    errors.TelegramError: (errors.TelegramError("Invalid server response"), Uncertain),
    errors.Forbidden: (errors.Forbidden("bot was blocked by the user"), Unreachable),
    errors.InvalidToken: (errors.InvalidToken("The token `1:secret` was rejected"), NotEntered),
    errors.EndPointNotFound: (errors.EndPointNotFound("sendX"), NotEntered),
    errors.NetworkError: (errors.NetworkError("Bad Gateway"), Uncertain),
    errors.BadRequest: (errors.BadRequest("STICKER_INVALID"), Refused),
    errors.TimedOut: (errors.TimedOut(), Uncertain),
    errors.ChatMigrated: (errors.ChatMigrated(-1005), Moved),
    errors.RetryAfter: (errors.RetryAfter(timedelta(seconds=7)), Throttled),
    errors.Conflict: (errors.Conflict("terminated by other getUpdates request"), NotEntered),
    errors.PassportDecryptionError: (errors.PassportDecryptionError("x"), Uncertain),
}


def test_every_error_class_of_the_library_is_in_the_table() -> None:
    found = {
        item
        for _, item in inspect.getmembers(errors, inspect.isclass)
        if issubclass(item, errors.TelegramError)
    }
    assert found == set(SAMPLES)


@pytest.mark.parametrize("kind", list(SAMPLES), ids=lambda kind: kind.__name__)
def test_each_class_has_its_meaning(kind: type[errors.TelegramError]) -> None:
    error, meaning = SAMPLES[kind]
    assert isinstance(classify(error), meaning)


def test_a_refusal_is_not_a_lost_answer_although_the_library_derives_it_from_one() -> None:
    assert issubclass(errors.BadRequest, errors.NetworkError)
    assert isinstance(classify(errors.BadRequest("Text must be non-empty")), Refused)


@pytest.mark.parametrize(
    ("description", "meaning"),
    [
        ("Message is not modified: specified new message content and", Unchanged),
        ("Message to edit not found", Gone),
        ("Message can't be edited", Gone),
        ("Chat not found", Unreachable),
        ("Not enough rights to send text messages to the chat", Unreachable),
        ("Message thread not found", Unreachable),
        ("Message text is empty", Refused),
        ("Button_data_invalid", Refused),
    ],
)
def test_descriptions_of_bad_requests(description: str, meaning: type) -> None:
    assert isinstance(classify(errors.BadRequest(description)), meaning)


def caused(error: errors.TelegramError, cause: Exception) -> Delivery:
    error.__cause__ = cause
    return classify(error)


@pytest.mark.parametrize(
    "cause",
    [
        httpx.ConnectError("refused"),
        httpx.ConnectTimeout("slow"),
        httpx.PoolTimeout("busy"),
        httpx.ProxyError("no"),
    ],
)
def test_what_failed_before_the_request_was_written_was_not_entered(cause: Exception) -> None:
    assert isinstance(caused(errors.NetworkError("httpx"), cause), NotEntered)
    assert isinstance(caused(errors.TimedOut(), cause), NotEntered)


@pytest.mark.parametrize(
    "cause",
    [
        httpx.ReadTimeout("slow"),
        httpx.WriteTimeout("slow"),
        httpx.ReadError("reset"),
        httpx.WriteError("reset"),
        httpx.RemoteProtocolError("closed"),
        ValueError("odd"),
    ],
)
def test_what_failed_later_is_uncertain(cause: Exception) -> None:
    assert isinstance(caused(errors.NetworkError("httpx"), cause), Uncertain)
    assert isinstance(caused(errors.TimedOut(), cause), Uncertain)


def test_a_429_without_its_time_is_still_a_429() -> None:
    assert classify(errors.NetworkError("Too Many Requests: retry after 0")) == Throttled(1.0)
    assert classify(errors.RetryAfter(timedelta(seconds=7))) == Throttled(7.0)


def test_no_reason_quotes_the_token_or_a_body() -> None:
    quoted = errors.NetworkError(
        "Bad Gateway (502). Parsing the server response b'<html>secret text</html>' failed"
    )
    assert "secret" not in str(classify(quoted))
    assert "secret" not in str(classify(SAMPLES[errors.InvalidToken][0]))


def test_a_refused_parse_is_recognised() -> None:
    assert parse_refused(errors.BadRequest("Can't parse entities: unsupported start tag"))
    assert not parse_refused(errors.BadRequest("Message text is empty"))
    assert not parse_refused(errors.TimedOut())
