"""The network guard refuses what leaves this machine and nothing else."""

from __future__ import annotations

import socket

import pytest

from tests import network


@pytest.mark.parametrize(
    ("event", "arguments", "expected"),
    [
        ("socket.connect", (None, ("127.0.0.1", 80)), True),
        ("socket.connect", (None, ("127.255.0.9", 80)), True),
        ("socket.connect", (None, ("::1", 80, 0, 0)), True),
        ("socket.connect", (None, "/tmp/a.sock"), True),  # noqa: S108 - a path in a table, never opened
        ("socket.connect", (None, ("128.0.0.1", 80)), False),
        ("socket.connect", (None, ("126.255.255.255", 80)), False),
        ("socket.connect", (None, ("10.0.0.1", 80)), False),
        ("socket.connect", (None, ("0.0.0.0", 80)), False),  # noqa: S104 - an address in a table, never bound
        ("socket.connect", (None, ("example.org", 80)), False),
        ("socket.sendto", (None, ("8.8.8.8", 53)), False),
        ("socket.getaddrinfo", ("localhost", 80), True),
        ("socket.getaddrinfo", ("93.184.216.34", 80), True),
        ("socket.getaddrinfo", (None, 80), True),
        ("socket.getaddrinfo", ("example.org", 80), False),
        ("socket.gethostbyname", ("example.org",), False),
        ("open", ("anything",), True),
    ],
)
def test_only_loopback_is_allowed(
    event: str, arguments: tuple[object, ...], *, expected: bool
) -> None:
    assert network.allowed(event, arguments) is expected


def test_a_connect_outside_this_machine_is_refused_and_remembered() -> None:
    with socket.socket() as plain, pytest.raises(network.NetworkRefused):
        plain.connect(("192.0.2.1", 9))
    assert network.attempts.pop().startswith("socket.connect")


def test_a_name_look_up_is_refused_and_remembered() -> None:
    with pytest.raises(network.NetworkRefused):
        socket.getaddrinfo("example.org", 80)
    assert network.attempts.pop().startswith("socket.getaddrinfo")


def test_loopback_answers() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = server.getsockname()
        with socket.create_connection(address) as client:
            assert client.getpeername() == address
