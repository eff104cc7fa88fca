"""What a link must look like before anything is asked of the network.

Pure. A link is parsed once, and the parsed parts are what is resolved, connected to and sent: no
second parser can read it differently. `Link.shown` is the only form that reaches logs, errors and
records: no credentials, no query, no fragment (INV-20).
"""

from __future__ import annotations

import re
from typing import NamedTuple

import httpx

from connectors.errors import LinkRefused
from connectors.sources.addresses import address_of
from connectors.sources.limits import LINK_CHARS_MAX
from connectors.sources.names import shown_name

PORTS = frozenset({80, 443})
_DEFAULT_PORTS = {"http": 80, "https": 443}
_UNFIT = re.compile(r"[\x00-\x20\x7f-\xa0\\<>\u2028\u2029]")
_HOST = re.compile(r"(?=.{1,253}\Z)[a-z0-9_](?:[a-z0-9_-]{0,62}\.)*[a-z0-9_.-]{0,63}\Z")
SHOWN_PATH_CHARS_MAX = 80
NAMELESS = "that link"


class Link(NamedTuple):
    """A link that may be followed as far as its own text goes."""

    url: httpx.URL
    host: str
    port: int
    shown: str

    @property
    def secure(self) -> bool:
        """Whether it is https."""
        return self.url.scheme == "https"

    @property
    def file_name(self) -> str:
        """The last part of the path, as a name for the source; the host if the path has none."""
        last = self.url.path.rstrip("/").rsplit("/", 1)[-1]
        # The host stands apart from an ending: .zip and .md are also top-level domains.
        return shown_name(last) if last else f"{self.host} (page)"

    @property
    def identity(self) -> str:
        """What makes two links the same request."""
        return f"{self.url.scheme}://{self.host}:{self.port}{self.url.raw_path.decode('ascii')}"


def parse_link(raw: str, ports: frozenset[int] = PORTS) -> Link:
    """Check a link that a person sent; raises LinkRefused."""
    text = raw.strip()
    if len(text) > LINK_CHARS_MAX:
        raise LinkRefused(link=NAMELESS, reason=f"it is longer than {LINK_CHARS_MAX} characters")
    if _UNFIT.search(text):
        raise LinkRefused(link=NAMELESS, reason="it contains characters that links do not have")
    try:
        url = httpx.URL(text)
    except (httpx.InvalidURL, ValueError):
        raise LinkRefused(link=NAMELESS, reason="it is not a complete web address") from None
    return check_link(url, ports)


def link_name(raw: str) -> str:
    """What a link is called wherever people or packs see it: no user name, query or fragment."""
    try:
        return parse_link(raw).shown
    except LinkRefused as refused:
        return str(refused.fields.get("link", NAMELESS))


def check_link(url: httpx.URL, ports: frozenset[int] = PORTS) -> Link:
    """Check an absolute URL, a redirect's target included; raises LinkRefused."""
    if url.scheme not in _DEFAULT_PORTS:
        raise LinkRefused(link=NAMELESS, reason="only http and https links are opened")
    host = _host(url)
    port = url.port or _DEFAULT_PORTS[url.scheme]
    shown = _shown(url, host, port)
    if url.userinfo:
        raise LinkRefused(link=shown, reason="it carries a user name or password")
    if port not in ports:
        raise LinkRefused(link=shown, reason=f"port {port} is not a web server's")
    return Link(url=url.copy_with(fragment=None), host=host, port=port, shown=shown)


def _host(url: httpx.URL) -> str:
    """The host in lower-case ASCII (IDNA), without the root's dot."""
    host = url.raw_host.decode("ascii").lower().removesuffix(".")
    if address_of(host) is not None and "%" not in host:
        return host
    last = host.rsplit(".", 1)[-1]
    if "%" in host or last.isdigit() or re.fullmatch(r"0x[0-9a-f]*", last):
        # 2130706433, 0x7f.1 and 127.1 are addresses to some resolvers and names to others.
        raise LinkRefused(link=NAMELESS, reason="its host is an unusual spelling of an address")
    if not _HOST.match(host) or ".." in host:
        raise LinkRefused(link=NAMELESS, reason="its host is not a valid name")
    return host


def _shown(url: httpx.URL, host: str, port: int) -> str:
    named = f"[{host}]" if ":" in host else host
    border = "" if port == _DEFAULT_PORTS[url.scheme] else f":{port}"
    path = url.raw_path.decode("ascii").partition("?")[0]
    if len(path) > SHOWN_PATH_CHARS_MAX:
        path = path[: SHOWN_PATH_CHARS_MAX - 1] + "…"
    return f"{url.scheme}://{named}{border}{path}"
