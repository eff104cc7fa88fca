"""What an answer means: one table for every exception, status and disk error a connector can meet.

    not_entered   proved: the provider was not reached, nothing happened, it may be tried again
    rejected      the provider refused, definitely, as it documents
    parse         it says that it did it: applied if the body parses, else unknown
    unknown       anything else, and anything that is not listed

The table presumes a client that follows no redirects and repeats no request by itself: after
either, "could not connect" would be about a later request, while an earlier one may have acted.

Keeps INV-6's ground: only what stands here as proof opens a new attempt.
"""

from __future__ import annotations

import errno
import socket
import ssl
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Final, Literal

import httpx

Meaning = Literal["not_entered", "rejected", "parse", "unknown"]

# --- exceptions -----------------------------------------------------------------------------------

EXCEPTIONS: Final[Mapping[type[BaseException], Meaning]] = {
    # The connection was never made: refused, no such name, or TLS failed before the request.
    httpx.ConnectError: "not_entered",
    httpx.ConnectTimeout: "not_entered",
    httpx.PoolTimeout: "not_entered",
    # A proxy refused the tunnel; the request was to follow it.
    httpx.ProxyError: "not_entered",
    # Refused by the client itself before it opened a connection.
    httpx.UnsupportedProtocol: "not_entered",
    httpx.InvalidURL: "not_entered",
    # Part of the request, or all of it, may have arrived.
    httpx.WriteError: "unknown",
    httpx.WriteTimeout: "unknown",
    httpx.ReadError: "unknown",
    httpx.ReadTimeout: "unknown",
    httpx.CloseError: "unknown",
    httpx.LocalProtocolError: "unknown",
    httpx.RemoteProtocolError: "unknown",
    # An answer came, so the request had arrived; what it says is not known.
    httpx.DecodingError: "unknown",
    httpx.TooManyRedirects: "unknown",
    httpx.HTTPStatusError: "unknown",
    httpx.ResponseNotRead: "unknown",
    httpx.StreamClosed: "unknown",
    httpx.StreamConsumed: "unknown",
    httpx.StreamError: "unknown",
    httpx.CookieConflict: "unknown",
    httpx.RequestNotRead: "unknown",
    # Families, raised only by name of a member that is not known here.
    httpx.HTTPError: "unknown",
    httpx.NetworkError: "unknown",
    httpx.ProtocolError: "unknown",
    httpx.RequestError: "unknown",
    httpx.TimeoutException: "unknown",
    httpx.TransportError: "unknown",
    # Below httpx, for what speaks sockets itself.
    ConnectionRefusedError: "not_entered",
    socket.gaierror: "not_entered",
    ssl.SSLCertVerificationError: "not_entered",
    ssl.SSLError: "unknown",
    ConnectionResetError: "unknown",
    ConnectionAbortedError: "unknown",
    BrokenPipeError: "unknown",
    TimeoutError: "unknown",
    OSError: "unknown",
}


def exception_meaning(error: BaseException) -> Meaning:
    """What an exception of a send means. Only the very type counts: a subclass is unlisted."""
    return EXCEPTIONS.get(type(error), "unknown")


# --- statuses -------------------------------------------------------------------------------------

REFUSALS: Final = frozenset({400, 403, 422})
"""Definite by their definition. A connector adds those that its provider documents."""
UNAUTHORISED: Final = 401
THROTTLED: Final = 429


def status_meaning(status: int, documented: frozenset[int] = frozenset()) -> Meaning:
    """What an HTTP status of a send means.

    Args:
        status: as the provider answered.
        documented: further statuses by which this provider definitely refuses this request.
    """
    if 200 <= status <= 299:  # noqa: PLR2004 - the class of success, as RFC 9110 numbers it
        return "parse"
    if status in {UNAUTHORISED, THROTTLED}:
        return "not_entered"
    if status in REFUSALS or (status in documented and 400 <= status <= 499):  # noqa: PLR2004 - as above
        return "rejected"
    return "unknown"


RESET_DEFAULT: Final = timedelta(minutes=15)
RESET_MAX: Final = timedelta(hours=48)
EPOCH_SECONDS_MIN: Final = 1_000_000_000
"""Smaller numbers are seconds from now, as RFC 9110 and the IETF draft write them."""
NUMBER_CHARS_MAX: Final = 12


def retry_at(headers: Mapping[str, str], now: datetime) -> datetime:
    """When a throttled request may be tried again: the latest reset that is advertised.

    A provider may have several windows (fifteen minutes, a day); the longest one decides, whatever
    it says is left in the others. Bounded, so that a wrong header does not park work for ever.
    """
    resets = [
        at
        for name, value in headers.items()
        if name.lower() == "retry-after" or name.lower().endswith("-reset")
        if (at := _reset(value.strip(), now)) is not None
    ]
    latest = max(resets, default=now + RESET_DEFAULT)
    return min(max(latest, now), now + RESET_MAX)


def _reset(value: str, now: datetime) -> datetime | None:
    if value.isascii() and value.isdigit() and len(value) <= NUMBER_CHARS_MAX:
        seconds = int(value)
        if seconds < EPOCH_SECONDS_MIN:
            return now + timedelta(seconds=seconds)
        return min(datetime.fromtimestamp(min(seconds, 2**33), UTC), now + RESET_MAX)
    try:
        at = parsedate_to_datetime(value)
    except ValueError:
        return None
    return at if at.tzinfo is not None else at.replace(tzinfo=UTC)


# --- disks ----------------------------------------------------------------------------------------

DISK_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
DISK_NEEDS_PERSON: Final = frozenset(
    {
        errno.EACCES,
        errno.EPERM,
        errno.EROFS,
        errno.ENOTDIR,
        errno.EISDIR,
        errno.ELOOP,
        errno.ENAMETOOLONG,
        errno.EOPNOTSUPP,
        errno.ENOTSUP,
        errno.ENOSYS,
        errno.EXDEV,
        errno.EMLINK,
        errno.EFBIG,
    }
)
"""No amount of trying helps: a person has to change the folder or its rights."""
_DEFINITE: Final = DISK_FULL | DISK_NEEDS_PERSON | {errno.ENOENT, errno.ENOMEM}

_WORDS: Final = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is used up",
    errno.EACCES: "permission denied",
    errno.EPERM: "the file system does not permit it",
    errno.EROFS: "the file system is read-only",
    errno.ENOTDIR: "a part of the path is not a folder",
    errno.ELOOP: "a part of the path is a link or no plain file",
    errno.EOPNOTSUPP: "the file system has no hard links",
    errno.EFBIG: "this system allows no file of that size",
    errno.EIO: "the disk reports an error",
}


def definite_at_link(error: OSError) -> bool:
    """Whether a link that failed so is proved not to exist. Anything unlisted is not."""
    return error.errno in _DEFINITE


def disk_words(error: OSError) -> str:
    """A disk error in words, without the path."""
    number = error.errno or 0
    return _WORDS.get(number, errno.errorcode.get(number, type(error).__name__))
