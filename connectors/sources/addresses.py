"""Which addresses a link may lead to: public unicast, and nothing else.

The tables are written out rather than taken from `ipaddress.is_global`, whose answer changed
between patch releases of Python. IPv6 is closed by default: only 2000::/3 is open, less the blocks
inside it that carry or translate to IPv4 or are not for use. Addresses that embed an IPv4 address
are refused whatever they embed.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

_REFUSED_V4: tuple[tuple[str, str], ...] = (
    ("0.0.0.0/8", "an unspecified address"),
    ("10.0.0.0/8", "a private network"),
    ("100.64.0.0/10", "a carrier's inner network"),
    ("127.0.0.0/8", "this machine itself"),
    ("169.254.0.0/16", "a link-local address, where clouds keep credentials"),
    ("172.16.0.0/12", "a private network"),
    ("192.0.0.0/24", "a reserved address"),
    ("192.0.2.0/24", "an address for documentation"),
    ("192.31.196.0/24", "a reserved address"),
    ("192.52.193.0/24", "a reserved address"),
    ("192.88.99.0/24", "a 6to4 relay"),
    ("192.168.0.0/16", "a private network"),
    ("192.175.48.0/24", "a reserved address"),
    ("198.18.0.0/15", "a network for measurements"),
    ("198.51.100.0/24", "an address for documentation"),
    ("203.0.113.0/24", "an address for documentation"),
    ("224.0.0.0/4", "a multicast address"),
    ("240.0.0.0/4", "a reserved address"),
    # Public by number, but answered by the machine's own cloud host.
    ("168.63.129.16/32", "a cloud's inner address"),
)
_REFUSED_V6: tuple[tuple[str, str], ...] = (
    ("::/128", "an unspecified address"),
    ("::1/128", "this machine itself"),
    ("::ffff:0:0/96", "an IPv4 address in IPv6 form"),
    ("::ffff:0:0:0/96", "an IPv4 address in IPv6 form"),
    ("::/96", "an IPv4 address in IPv6 form"),
    ("64:ff9b::/96", "an IPv4 address behind a translator (NAT64)"),
    ("64:ff9b:1::/48", "an IPv4 address behind a translator (NAT64)"),
    ("100::/64", "a discarded address"),
    ("2001::/32", "an IPv4 address behind a tunnel (Teredo)"),
    ("2001::/23", "a reserved address"),
    ("2001:db8::/32", "an address for documentation"),
    ("2002::/16", "an IPv4 address behind a tunnel (6to4)"),
    ("2620:4f:8000::/48", "a reserved address"),
    ("3fff::/20", "an address for documentation"),
    ("fc00::/7", "a private network"),
    ("fe80::/10", "a link-local address"),
    ("fec0::/10", "a private network"),
    ("ff00::/8", "a multicast address"),
)
_TABLE_V4 = tuple((ipaddress.IPv4Network(text), why) for text, why in _REFUSED_V4)
_TABLE_V6 = tuple((ipaddress.IPv6Network(text), why) for text, why in _REFUSED_V6)
_OPEN_V6 = ipaddress.IPv6Network("2000::/3")


def address_of(text: str) -> Address | None:
    """The address, or None for text that is none. A zone (`%eth0`) is kept, and so refused."""
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


def refusal(address: Address, allowed: Iterable[Network] = ()) -> str | None:
    """Why an address is not connected to, or None if it is. `allowed` opens explicit networks."""
    if any(address.version == net.version and address in net for net in allowed):
        return None
    if isinstance(address, ipaddress.IPv4Address):
        return next((why for net, why in _TABLE_V4 if address in net), None)
    if address.scope_id is not None:
        return "a link-local address"
    found = next((why for net, why in _TABLE_V6 if address in net), None)
    if found is None and address not in _OPEN_V6:
        return "a reserved address"
    return found
