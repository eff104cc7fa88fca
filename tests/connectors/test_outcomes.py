"""The table of outcomes: every exception that httpx exports, statuses, resets, disk errors."""

from __future__ import annotations

import errno
import socket
import ssl
from datetime import UTC, datetime, timedelta

import httpx
import pytest

from connectors.outcomes import (
    DISK_FULL,
    DISK_NEEDS_PERSON,
    EXCEPTIONS,
    RESET_DEFAULT,
    RESET_MAX,
    definite_at_link,
    disk_words,
    exception_meaning,
    retry_at,
    status_meaning,
)
from tests.world import START

EXPORTED = [
    exported
    for name in httpx.__all__
    if isinstance(exported := getattr(httpx, name), type) and issubclass(exported, Exception)
]
PROOFS = {
    httpx.ConnectError,
    httpx.ConnectTimeout,
    httpx.PoolTimeout,
    httpx.ProxyError,
    httpx.UnsupportedProtocol,
    httpx.InvalidURL,
    ConnectionRefusedError,
    socket.gaierror,
    ssl.SSLCertVerificationError,
}


def test_every_exception_of_the_client_is_in_the_table() -> None:
    assert len(EXPORTED) > 20
    assert [exported.__name__ for exported in EXPORTED if exported not in EXCEPTIONS] == []


def test_only_these_prove_that_the_provider_was_not_entered() -> None:
    assert {kind for kind, meaning in EXCEPTIONS.items() if meaning == "not_entered"} == PROOFS
    assert set(EXCEPTIONS.values()) == {"not_entered", "unknown"}


def test_an_exception_that_is_not_listed_is_unknown_even_if_its_parent_is() -> None:
    class Newer(httpx.ConnectError):
        """What a later version of the client may raise."""

    assert exception_meaning(httpx.ConnectError("refused")) == "not_entered"
    assert exception_meaning(Newer("later")) == "unknown"
    assert exception_meaning(ValueError()) == "unknown"
    assert exception_meaning(ConnectionResetError()) == "unknown"


async def test_a_refused_connection_is_what_the_client_calls_a_connect_error() -> None:
    """The table rests on what the client does, so the client is asked."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listening: refused
        port = taken.getsockname()[1]
        async with httpx.AsyncClient(trust_env=False) as client:
            with pytest.raises(httpx.HTTPError) as caught:
                await client.post(f"http://127.0.0.1:{port}/")
    assert exception_meaning(caught.value) == "not_entered"


async def test_a_connection_that_ends_after_the_request_is_unknown() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        import asyncio

        def hang_up() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(65_536)

        async with httpx.AsyncClient(trust_env=False) as client:
            peer = asyncio.create_task(asyncio.to_thread(hang_up))
            with pytest.raises(httpx.HTTPError) as caught:
                await client.post(f"http://127.0.0.1:{port}/", content=b"effect")
            await peer
    assert exception_meaning(caught.value) == "unknown"


@pytest.mark.parametrize(
    ("status", "meaning"),
    [
        (199, "unknown"),
        (200, "parse"),
        (201, "parse"),
        (299, "parse"),
        (300, "unknown"),
        (302, "unknown"),
        (400, "rejected"),
        (401, "not_entered"),
        (403, "rejected"),
        (404, "unknown"),
        (408, "unknown"),
        (409, "unknown"),
        (422, "rejected"),
        (429, "not_entered"),
        (500, "unknown"),
        (502, "unknown"),
        (503, "unknown"),
        (504, "unknown"),
        (599, "unknown"),
        (999, "unknown"),
    ],
)
def test_a_status_means_what_it_defines_and_anything_else_is_unknown(
    status: int, meaning: str
) -> None:
    assert status_meaning(status) == meaning


def test_a_connector_may_add_documented_refusals_and_no_server_fault() -> None:
    assert status_meaning(404, frozenset({404, 503})) == "rejected"
    assert status_meaning(503, frozenset({404, 503})) == "unknown"


def test_the_latest_of_all_advertised_resets_decides() -> None:
    """Public case 31: a window with calls left hides a daily cap that is spent."""
    nine_hours = START + timedelta(hours=9)
    headers = {
        "x-rate-limit-remaining": "412",
        "x-rate-limit-reset": str(int((START + timedelta(minutes=10)).timestamp())),
        "x-app-limit-24hour-remaining": "0",
        "x-app-limit-24hour-reset": str(int(nine_hours.timestamp())),
    }
    assert retry_at(headers, START) == nine_hours


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, RESET_DEFAULT.total_seconds()),
        ({"Retry-After": "30"}, 30),
        ({"Retry-After": "0"}, 0),
        ({"RETRY-AFTER": "Mon, 04 Jan 2027 09:02:00 GMT"}, 120),
        ({"retry-after": "Mon, 04 Jan 2027 08:00:00 GMT"}, 0),
        ({"retry-after": "soon"}, RESET_DEFAULT.total_seconds()),
        ({"retry-after": "-5"}, RESET_DEFAULT.total_seconds()),
        ({"retry-after": "٣"}, RESET_DEFAULT.total_seconds()),
        ({"x-rate-limit-reset": "999999999999"}, RESET_MAX.total_seconds()),
        ({"x-rate-limit-reset": "9" * 400}, RESET_DEFAULT.total_seconds()),
        ({"ratelimit-reset": "60"}, 60),
        ({"retry-after": "999999999"}, RESET_MAX.total_seconds()),
    ],
)
def test_a_reset_is_read_in_every_form_and_bounded(headers: dict[str, str], seconds: float) -> None:
    assert retry_at(headers, START) == START + timedelta(seconds=seconds)


def test_a_reset_is_given_in_utc() -> None:
    at = retry_at({"retry-after": "Mon, 04 Jan 2027 11:02:00 +0200"}, START)
    assert at.astimezone(UTC) == datetime(2027, 1, 4, 9, 2, tzinfo=UTC)


def test_a_link_that_failed_is_proved_absent_only_by_what_is_listed() -> None:
    for number in (*DISK_FULL, *DISK_NEEDS_PERSON, errno.ENOENT):
        assert definite_at_link(OSError(number, ""))
    for number in (errno.EIO, errno.EINTR, errno.ETIMEDOUT, errno.ESTALE, errno.EEXIST):
        assert not definite_at_link(OSError(number, ""))
    assert not definite_at_link(OSError())


def test_a_disk_error_is_said_without_its_path() -> None:
    error = OSError(errno.ENOSPC, "No space left", "/secret/place")
    assert disk_words(error) == "the disk is full"
    assert disk_words(OSError(errno.EPIPE, "", "/secret/place")) == "EPIPE"
    assert disk_words(TimeoutError()) == "TimeoutError"
