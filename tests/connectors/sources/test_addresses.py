"""`connectors/sources/addresses.py`: public unicast, and nothing else."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.sources.addresses import address_of, refusal


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("0.0.0.0", "unspecified"),  # noqa: S104 - nothing is bound
        ("0.255.255.255", "unspecified"),
        ("10.0.0.0", "private"),
        ("10.255.255.255", "private"),
        ("100.64.0.0", "carrier"),
        ("100.100.100.200", "carrier"),
        ("100.127.255.255", "carrier"),
        ("127.0.0.1", "this machine"),
        ("127.255.255.255", "this machine"),
        ("169.254.0.0", "link-local"),
        ("169.254.169.254", "link-local"),
        ("169.254.255.255", "link-local"),
        ("172.16.0.0", "private"),
        ("172.31.255.255", "private"),
        ("192.0.0.1", "reserved"),
        ("192.0.2.1", "documentation"),
        ("192.88.99.1", "6to4"),
        ("192.168.0.0", "private"),
        ("192.168.255.255", "private"),
        ("198.18.0.0", "measurements"),
        ("198.19.255.255", "measurements"),
        ("198.51.100.7", "documentation"),
        ("203.0.113.7", "documentation"),
        ("224.0.0.1", "multicast"),
        ("239.255.255.255", "multicast"),
        ("240.0.0.1", "reserved"),
        ("255.255.255.255", "reserved"),
        ("168.63.129.16", "cloud"),
        ("::", "unspecified"),
        ("::1", "this machine"),
        ("::ffff:127.0.0.1", "IPv6 form"),
        ("::ffff:8.8.8.8", "IPv6 form"),
        ("::ffff:0:8.8.8.8", "IPv6 form"),
        ("::8.8.8.8", "IPv6 form"),
        ("64:ff9b::8.8.8.8", "NAT64"),
        ("64:ff9b::10.0.0.1", "NAT64"),
        ("64:ff9b:1::1", "NAT64"),
        ("100::1", "discarded"),
        ("2001::1", "Teredo"),
        ("2001:10::1", "reserved"),
        ("2001:db8::1", "documentation"),
        ("2002:7f00:1::", "6to4"),
        ("2002:808:808::", "6to4"),
        ("3fff::1", "documentation"),
        ("4000::1", "reserved"),
        ("5f00::1", "reserved"),
        ("fc00::1", "private"),
        ("fd00:ec2::254", "private"),
        ("fe80::1", "link-local"),
        ("fe80::1%eth0", "link-local"),
        ("2606:4700::1%eth0", "link-local"),
        ("fec0::1", "private"),
        ("ff02::1", "multicast"),
    ],
)
def test_every_range_that_is_not_public_is_refused_with_its_kind(text: str, word: str) -> None:
    address = address_of(text)
    assert address is not None
    assert word in (refusal(address) or "")


@pytest.mark.parametrize(
    "text",
    [
        "1.1.1.1",
        "8.8.8.8",
        "9.255.255.255",
        "11.0.0.0",
        "100.63.255.255",
        "100.128.0.0",
        "126.255.255.255",
        "128.0.0.0",
        "169.253.255.255",
        "169.255.0.0",
        "172.15.255.255",
        "172.32.0.0",
        "192.167.255.255",
        "192.169.0.0",
        "198.17.255.255",
        "198.20.0.0",
        "223.255.255.255",
        "2606:4700::1111",
        "2001:4860:4860::8888",
        "2a00:1450::1",
    ],
)
def test_public_addresses_are_open_right_up_to_the_borders(text: str) -> None:
    address = address_of(text)
    assert address is not None
    assert refusal(address) is None


@given(st.ip_addresses())
def test_nothing_that_python_calls_private_is_open(
    address: ipaddress.IPv4Address | ipaddress.IPv6Address,
) -> None:
    closed = (
        address.is_private
        or address.is_loopback
        or address.is_link_local
        or address.is_multicast
        or address.is_reserved
        or address.is_unspecified
    )
    if closed:
        assert refusal(address) is not None


@given(st.ip_addresses(v=4))
def test_no_ipv4_address_is_reachable_inside_an_ipv6_one(address: ipaddress.IPv4Address) -> None:
    number = int(address)
    for base, shift in (("::ffff:0:0", 0), ("::", 0), ("64:ff9b::", 0), ("2002::", 80)):
        wrapped = ipaddress.IPv6Address(int(ipaddress.IPv6Address(base)) | number << shift)
        assert refusal(wrapped) is not None


def test_only_the_allowed_network_is_opened() -> None:
    allowed = (ipaddress.IPv4Network("127.0.0.1/32"),)
    assert refusal(ipaddress.IPv4Address("127.0.0.1"), allowed) is None
    assert refusal(ipaddress.IPv4Address("127.0.0.2"), allowed) is not None
    assert refusal(ipaddress.IPv6Address("::1"), allowed) is not None
    assert refusal(ipaddress.IPv6Address("::ffff:127.0.0.1"), allowed) is not None


@pytest.mark.parametrize("text", ["", "1.2.3", "01.2.3.4", "0x7f.0.0.1", "host", "::g", "1.2.3.4 "])
def test_unusual_spellings_are_no_addresses(text: str) -> None:
    assert address_of(text) is None
