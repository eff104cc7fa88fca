"""Refuses the network to the test process: only loopback and Unix sockets may be reached.

An audit hook sees every connect, datagram and name look-up of this interpreter, also those made
below the `socket` module's classes. It does not see C libraries that bring sockets of their own
(gRPC), nor child processes. An attempt is refused *and* remembered, so that a test whose code
swallows the refusal fails all the same (tests/conftest.py).
"""

from __future__ import annotations

import ipaddress
import sys

CONNECTS = frozenset({"socket.connect", "socket.sendto", "socket.sendmsg"})
LOOK_UPS = frozenset({"socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr"})

attempts: list[str] = []
"""What was tried, in order; each test must leave this as long as it found it."""


class NetworkRefused(RuntimeError):
    """A test reached for an address outside this machine."""


def is_loopback(host: object) -> bool:
    """Whether a host names this machine without asking anybody."""
    if isinstance(host, bytes):
        host = host.decode("ascii", "replace")
    if not isinstance(host, str):
        return False
    if host in {"localhost", ""}:
        return True
    try:
        return ipaddress.ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return False


def is_literal(host: object) -> bool:
    """Whether a look-up of this host needs no resolver: an address, or nothing at all."""
    if host is None:
        return True
    text = host.decode("ascii", "replace") if isinstance(host, bytes) else str(host)
    try:
        ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return False
    return True


def allowed(event: str, arguments: tuple[object, ...]) -> bool:
    """Decide one audit event; pure, so that it can be tested by a table."""
    if event in CONNECTS:
        address = arguments[1]
        if isinstance(address, tuple):
            return is_loopback(address[0])
        return address is None or isinstance(address, str | bytes)  # connected, or a Unix path
    if event in LOOK_UPS:
        return is_literal(arguments[0]) or is_loopback(arguments[0])
    return True


def _hook(event: str, arguments: tuple[object, ...]) -> None:
    if event not in CONNECTS and event not in LOOK_UPS:
        return
    if not allowed(event, arguments):
        what = f"{event} {arguments[1] if event in CONNECTS else arguments[0]!r}"
        attempts.append(what)
        raise NetworkRefused(what)


def refuse_network() -> None:
    """Install the hook once per process; Python offers no way to take it off again."""
    if not getattr(sys, "_harmonia_network_refused", False):
        sys.addaudithook(_hook)
        sys._harmonia_network_refused = True  # type: ignore[attr-defined]  # once per interpreter, however often this file is imported
