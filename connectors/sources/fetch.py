"""Following a link that somebody sent, without becoming their hand inside our network.

For each hop: the link's text is checked, its host is resolved *here*, every address found must be
public, and the connection goes to exactly one of these addresses, as a literal; the name is only
sent (Host, TLS server name) and checked against the certificate. Nothing resolves the name a
second time, so a name server that changes its answer gains nothing. After the connection the
socket's own peer is compared with the checked address. Redirects are followed here, each as a new
link, at most five, never twice the same, never from https down to http.

No cookies, no credentials, no referrer, no proxy from the environment; one fixed user agent. One
deadline covers everything, and bodies are bounded before and after unpacking. Whatever happens is
a `runtime.errors.BadInput` with a sentence for the operator.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

import httpx
from pydantic import BaseModel, ConfigDict

from connectors.errors import (
    EmptySource,
    LinkRefused,
    LinkUnreachable,
    SourceTooLarge,
    UnsupportedSource,
)
from connectors.sources.addresses import Address, Network, address_of, refusal
from connectors.sources.bodies import ACCEPTED_ENCODINGS, read_body
from connectors.sources.detect import SUPPORTED, media_type
from connectors.sources.limits import SOURCE_BYTES_MAX
from connectors.sources.links import PORTS, Link, check_link, parse_link
from runtime.ports import Fetched

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
Deadline = Callable[[float], AbstractAsyncContextManager[Any]]

USER_AGENT = "Harmonia/1 (source reader)"
HOPS_MAX = 5
ADDRESSES_MAX = 16
"""A name with more addresses than this is refused: nobody needs them, and each is checked."""
CONNECTS_MAX = 3
"""Addresses of one name that are tried; the deadline is shared."""
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_OK = 200
_LENGTH_DIGITS_MAX = 20
_TYPES = frozenset(
    {
        "",
        "application/pdf",
        "application/x-pdf",
        "application/xhtml+xml",
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        "application/octet-stream",
        "binary/octet-stream",
        "application/x-subrip",
        "application/json",
        "application/xml",
    }
)


class LinkPolicy(BaseModel):
    """What may be followed, and how far."""

    model_config = ConfigDict(frozen=True, arbitrary_types_allowed=True)

    ports: frozenset[int] = PORTS
    allow_addresses: tuple[Network, ...] = ()
    seconds: float = 20.0
    bytes_max: int = SOURCE_BYTES_MAX


async def resolve_by_system(host: str, port: int) -> Sequence[str]:
    """The addresses of a name, as the operating system knows them."""
    import socket

    loop = asyncio.get_running_loop()
    rows = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(row[4][0]) for row in rows]


class GuardedFetch:
    """The `Fetch` port over httpx."""

    def __init__(
        self,
        policy: LinkPolicy | None = None,
        *,
        resolve: Resolve = resolve_by_system,
        deadline: Deadline = asyncio.timeout,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._policy = policy or LinkPolicy()
        self._resolve = resolve
        self._deadline = deadline
        self._tls = tls

    async def fetch(self, link: str) -> Fetched:
        """What the link leads to; raises a SourceError that says why there is nothing."""
        first = parse_link(link, self._policy.ports)
        try:
            async with self._deadline(self._policy.seconds):
                return await self._follow(first)
        except TimeoutError:
            reason = f"it took longer than {self._policy.seconds:g} seconds"
            raise LinkUnreachable(link=first.shown, reason=reason) from None

    async def _follow(self, first: Link) -> Fetched:
        link = first
        seen = {first.identity}
        for _hop in range(HOPS_MAX + 1):
            found = await self._hop(link)
            if isinstance(found, Fetched):
                return found
            if link.secure and not found.secure:
                raise LinkRefused(link=first.shown, reason="it leads from https down to http")
            if found.identity in seen:
                raise LinkRefused(link=first.shown, reason="its redirects go in a circle")
            seen.add(found.identity)
            link = found
        raise LinkRefused(link=first.shown, reason=f"it redirects more than {HOPS_MAX} times")

    async def _addresses(self, link: Link) -> list[Address]:
        """The checked addresses of a link's host, each of them public."""
        literal = address_of(link.host)
        if literal is not None:
            texts: Sequence[str] = [link.host]
        else:
            try:
                texts = await self._resolve(link.host, link.port)
            except (OSError, UnicodeError):
                reason = "its host name is not known"
                raise LinkUnreachable(link=link.shown, reason=reason) from None
        found: list[Address] = []
        for text in dict.fromkeys(texts):
            address = address_of(text)
            why = (
                "an unreadable address"
                if address is None
                else refusal(address, self._policy.allow_addresses)
            )
            if address is None or why is not None:
                raise LinkRefused(link=link.shown, reason=f"it leads to {why}")
            found.append(address)
        if not found:
            raise LinkUnreachable(link=link.shown, reason="its host name has no address")
        if len(found) > ADDRESSES_MAX:
            raise LinkRefused(link=link.shown, reason="its host name has too many addresses")
        return found

    async def _hop(self, link: Link) -> Fetched | Link:
        """One request: the answer's content, or where it redirects to."""
        addresses = (await self._addresses(link))[:CONNECTS_MAX]
        # A new client for each hop: nothing (cookies, connections) is carried to another host.
        async with httpx.AsyncClient(
            transport=httpx.AsyncHTTPTransport(
                verify=self._trusted(),
                trust_env=False,
                http2=False,
            ),
            trust_env=False,
            follow_redirects=False,
            timeout=httpx.Timeout(
                self._policy.seconds, connect=self._policy.seconds / (CONNECTS_MAX + 1)
            ),
        ) as client:
            for index, address in enumerate(addresses):
                try:
                    response = await client.send(_request(link, address), stream=True)
                except (httpx.ConnectError, httpx.ConnectTimeout) as fault:
                    if index + 1 < len(addresses):
                        continue
                    raise _unreachable(link, fault) from None
                except httpx.HTTPError as fault:
                    raise _unreachable(link, fault) from None
                try:
                    return await self._answer(link, address, response)
                except httpx.HTTPError as fault:
                    raise _unreachable(link, fault) from None
                finally:
                    await response.aclose()
        raise LinkUnreachable(link=link.shown, reason="no address answered")

    def _trusted(self) -> ssl.SSLContext:
        if self._tls is None:
            self._tls = httpx.create_ssl_context(trust_env=False)
        return self._tls

    async def _answer(
        self, link: Link, address: Address, response: httpx.Response
    ) -> Fetched | Link:
        _check_peer(link, address, response)
        if response.status_code in _REDIRECTS:
            return self._redirect(link, response)
        if response.status_code != _OK:
            reason = f"the server answered {response.status_code}"
            raise LinkUnreachable(link=link.shown, reason=reason)
        content_type = response.headers.get("content-type", "")[:200]
        bare = media_type(content_type)
        if not bare.startswith("text/") and bare not in _TYPES:
            looks_like = f"the content type {bare[:80]}"
            raise UnsupportedSource(
                name=link.file_name, looks_like=looks_like, declared="", supported=SUPPORTED
            )
        self._check_stated_length(link, response)
        data = await read_body(
            response.aiter_raw(),
            response.headers.get("content-encoding", ""),
            name=link.file_name,
            shown=link.shown,
            limit=self._policy.bytes_max,
        )
        if not data:
            raise EmptySource(name=link.file_name)
        return Fetched(
            data=data, address=link.shown, content_type=content_type, file_name=link.file_name
        )

    def _redirect(self, link: Link, response: httpx.Response) -> Link:
        target = response.headers.get("location", "")
        if not target:
            raise LinkUnreachable(link=link.shown, reason="it redirects to nowhere")
        try:
            url = link.url.join(target)
        except (httpx.InvalidURL, ValueError):
            raise LinkRefused(link=link.shown, reason="it redirects to no web address") from None
        return check_link(url, self._policy.ports)

    def _check_stated_length(self, link: Link, response: httpx.Response) -> None:
        stated = response.headers.get("content-length", "")
        limit = self._policy.bytes_max
        if not (stated.isascii() and stated.isdecimal()):
            return  # absent, or the client has refused it already
        if len(stated) > _LENGTH_DIGITS_MAX or int(stated) > limit:
            stated = stated[:_LENGTH_DIGITS_MAX]
            raise SourceTooLarge(name=link.file_name, found=int(stated), limit=limit, unit="bytes")


def _request(link: Link, address: Address) -> httpx.Request:
    """A request whose URL names the checked address, while Host and TLS name the host."""
    named = f"[{link.host}]" if ":" in link.host else link.host
    standard = link.port == (443 if link.secure else 80)
    return httpx.Request(
        "GET",
        link.url.copy_with(host=str(address), port=link.port),
        headers={
            "Host": named if standard else f"{named}:{link.port}",
            "User-Agent": USER_AGENT,
            "Accept": "text/html, text/*, application/pdf, */*;q=0.5",
            "Accept-Encoding": ACCEPTED_ENCODINGS,
        },
        extensions={"sni_hostname": link.host},
    )


def _check_peer(link: Link, address: Address, response: httpx.Response) -> None:
    """The socket itself says whom it is connected to; anything else is not used."""
    stream = response.extensions.get("network_stream")
    peer = stream.get_extra_info("server_addr") if stream is not None else None
    if peer is None or address_of(str(peer[0])) != address:
        raise LinkRefused(link=link.shown, reason="the connection went to another address")


def _unreachable(link: Link, fault: httpx.HTTPError) -> LinkUnreachable:
    """The kind of the fault in words; its own text may quote what was received."""
    if isinstance(fault, httpx.TimeoutException):
        reason = "the server did not answer in time"
    elif isinstance(fault, httpx.ConnectError):
        reason = "no secure or open connection could be made"
    elif isinstance(fault, httpx.RemoteProtocolError):
        reason = "the server broke off or answered in no proper form"
    else:
        reason = f"the connection failed ({type(fault).__name__})"
    return LinkUnreachable(link=link.shown, reason=reason)
