"""`connectors/sources/fetch.py`: against real servers, good and bad."""

from __future__ import annotations

import asyncio
import gzip
import ipaddress
import ssl
from pathlib import Path

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from connectors.errors import (
    LinkRefused,
    LinkUnreachable,
)
from connectors.sources import fetch as module
from connectors.sources.addresses import address_of
from connectors.sources.convert import convert
from connectors.sources.fetch import HOPS_MAX, GuardedFetch, LinkPolicy
from connectors.sources.links import parse_link
from runtime.ports import Fetch
from tests.connectors.sources.servers import (
    HERE,
    Names,
    app_server,
    certificate,
    ok,
    policy,
    raw_server,
    redirect,
    says,
)

# --- the good way ----------------------------------------------------------------------------


async def test_a_page_behind_redirects_is_fetched_by_name_and_converted() -> None:
    seen: list[httpx.Headers | dict[str, str]] = []

    async def page(request: Request) -> Response:
        seen.append(dict(request.headers))
        markup = "<!doctype html><h1>News</h1><script>x()</script><p>Hello</p>"
        return Response(markup, media_type="text/html", headers={"set-cookie": "a=b"})

    async def moved(_request: Request) -> Response:
        return RedirectResponse("../page?x=1#top", headers={"set-cookie": "id=1"})

    app = Starlette(routes=[Route("/page", page), Route("/old/{x}", moved)])
    async with app_server(app) as port:
        guard = GuardedFetch(policy(port), resolve=Names(news_test=HERE))
        found = await guard.fetch(f"http://news.test:{port}/old/1?token=secret")
    assert found.address == f"http://news.test:{port}/page"
    assert convert(found.data, name=found.file_name, content_type=found.content_type).text == (
        "# News\n\nHello"
    )
    (headers,) = seen
    assert headers["host"] == f"news.test:{port}"
    assert headers["user-agent"] == module.USER_AGENT
    assert not {"cookie", "referer", "authorization"} & set(headers)


async def test_a_packed_answer_is_unpacked() -> None:
    packed = gzip.compress("Grüße".encode())
    answer = ok(packed, "Content-Encoding: gzip", f"Content-Length: {len(packed)}")
    async with raw_server(says(answer)) as port:
        guard = GuardedFetch(policy(port), resolve=Names(news_test=HERE))
        assert (await guard.fetch(f"http://news.test:{port}/")).data == "Grüße".encode()


async def test_the_certificate_is_checked_for_the_name_and_not_for_the_address(
    tmp_path: Path,
) -> None:
    server, client = certificate(tmp_path, "news.test")
    asked: list[str | None] = []
    server.sni_callback = lambda _socket, name, _context: asked.append(name)
    names = Names(news_test=HERE, other_test=HERE)
    async with raw_server(says(ok(b"hello")), tls=server) as port:
        guard = GuardedFetch(policy(port), resolve=names, tls=client)
        assert (await guard.fetch(f"https://news.test:{port}/")).data == b"hello"
        with pytest.raises(LinkUnreachable):
            await guard.fetch(f"https://other.test:{port}/")
        untrusting = GuardedFetch(policy(port), resolve=names)
        with pytest.raises(LinkUnreachable):
            await untrusting.fetch(f"https://news.test:{port}/")
    assert asked == ["news.test", "other.test", "news.test"]


async def test_the_next_address_is_tried_when_the_first_does_not_answer() -> None:
    two = LinkPolicy(allow_addresses=(ipaddress.IPv4Network("127.0.0.0/28"),))
    async with raw_server(says(ok(b"hello"))) as port:
        guard = GuardedFetch(
            two.model_copy(update={"ports": frozenset({port})}),
            resolve=Names(news_test=[["127.0.0.9", "127.0.0.1"]]),
        )
        assert (await guard.fetch(f"http://news.test:{port}/")).data == b"hello"


# --- addresses -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.2",
        "10.0.0.1",
        "169.254.169.254",
        "100.64.0.1",
        "0.0.0.0",  # noqa: S104 - nothing is bound
        "224.0.0.1",
        "240.0.0.1",
        "192.168.1.1",
        "172.16.0.1",
        "::1",
        "::",
        "fe80::1",
        "fc00::1",
        "ff02::1",
        "::ffff:127.0.0.1",
        "64:ff9b::7f00:1",
        "2002:7f00:1::",
        "fe80::1%lo",
        "nonsense",
    ],
)
async def test_a_name_is_refused_if_any_of_its_addresses_is_not_public(address: str) -> None:
    guard = GuardedFetch(policy(80), resolve=Names(news_test=[["127.0.0.1", "1.1.1.1", address]]))
    with pytest.raises(LinkRefused) as refused:
        await guard.fetch("http://news.test/")
    assert "it leads to" in refused.value.sentence


@pytest.mark.parametrize(
    "link",
    [
        "http://127.0.0.1/",
        "http://localhost./",
        "http://[::1]/",
        "http://[::ffff:10.0.0.1]/",
        "http://169.254.169.254/latest/meta-data/",
        "http://0.0.0.0/",
        "http://[64:ff9b::a00:1]/",
    ],
)
async def test_by_default_no_link_leads_to_this_machine_or_its_network(link: str) -> None:
    with pytest.raises(LinkRefused):
        await GuardedFetch().fetch(link)


async def test_a_name_server_that_changes_its_answer_gains_nothing() -> None:
    """The first answer is checked and used; a second is never asked for within a hop."""
    inside: list[bytes] = []

    async def secret(head: bytes, writer: asyncio.StreamWriter) -> None:
        inside.append(head)
        writer.write(ok(b"secret"))

    async with (
        raw_server(says(ok(b"public"))) as port,
        raw_server(secret, host="127.0.0.2", port=port),
    ):
        names = Names(news_test=[["127.0.0.1"], ["127.0.0.2"]])
        found = await GuardedFetch(policy(port), resolve=names).fetch(f"http://news.test:{port}/")
    assert found.data == b"public"
    assert names.asked == ["news.test"]
    assert inside == []


async def test_a_name_that_turns_inward_between_two_hops_is_refused() -> None:
    inside: list[bytes] = []

    async def secret(head: bytes, writer: asyncio.StreamWriter) -> None:
        inside.append(head)
        writer.write(ok(b"secret"))

    async with (
        raw_server(says(redirect("/next"))) as port,
        raw_server(secret, host="127.0.0.2", port=port),
    ):
        names = Names(news_test=[["127.0.0.1"], ["127.0.0.2"]])
        with pytest.raises(LinkRefused):
            await GuardedFetch(policy(port), resolve=names).fetch(f"http://news.test:{port}/")
    assert names.asked == ["news.test", "news.test"]
    assert inside == []


@pytest.mark.parametrize("peer", [None, ("127.0.0.2", 80), ("::1", 80, 0, 0)])
def test_a_connection_to_another_address_than_the_checked_one_is_not_used(
    peer: tuple[object, ...] | None,
) -> None:
    class Stream:
        def get_extra_info(self, _info: str) -> tuple[object, ...] | None:
            return peer

    address = address_of("127.0.0.1")
    assert address is not None
    response = httpx.Response(200, extensions={"network_stream": Stream()})
    with pytest.raises(LinkRefused):
        module._check_peer(parse_link("http://news.test/"), address, response)


async def test_a_name_with_no_or_too_many_addresses_is_not_followed() -> None:
    many = [[f"1.1.1.{n}" for n in range(module.ADDRESSES_MAX + 1)]]
    guard = GuardedFetch(resolve=Names(none_test=[[]], many_test=many))
    with pytest.raises(LinkUnreachable):
        await guard.fetch("http://none.test/")
    with pytest.raises(LinkRefused):
        await guard.fetch("http://many.test/")
    with pytest.raises(LinkUnreachable) as refused:
        await guard.fetch("http://unknown.test/")
    assert "not known" in refused.value.sentence


# --- redirects -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ("http://10.0.0.1/", "a private network"),
        ("http://169.254.169.254/latest/", "link-local"),
        ("http://[::1]/", "this machine itself"),
        ("//inner.test/", "port 80"),
        ("ftp://news.test/", "only http and https"),
        ("file:///etc/passwd", "only http and https"),
        ("http://u:p@news.test/", "user name"),
        ("http://news.test:22/", "port 22"),
        ("http://0x7f.1/", "unusual spelling"),
    ],
)
async def test_a_redirect_is_checked_like_a_link(target: str, reason: str) -> None:
    async with raw_server(says(redirect(target))) as port:
        ports = frozenset({port}) | (frozenset() if "port" in reason else frozenset({80}))
        guard = GuardedFetch(
            policy(*ports), resolve=Names(news_test=HERE, inner_test=[["10.0.0.1"]])
        )
        with pytest.raises(LinkRefused) as refused:
            await guard.fetch(f"http://news.test:{port}/")
    assert reason in refused.value.sentence


async def test_redirects_in_a_circle_are_refused() -> None:
    def other(request: Request) -> Response:
        return RedirectResponse("/b" if request.url.path == "/a" else "/a")

    async with app_server(Starlette(routes=[Route("/{x}", other)])) as port:
        guard = GuardedFetch(policy(port), resolve=Names(news_test=HERE))
        with pytest.raises(LinkRefused) as refused:
            await guard.fetch(f"http://news.test:{port}/a")
    assert "circle" in refused.value.sentence


@pytest.mark.parametrize("hops", [HOPS_MAX, HOPS_MAX + 1])
async def test_the_limit_of_hops_is_exact(hops: int) -> None:
    def onward(request: Request) -> Response:
        left = int(request.path_params["n"])
        return RedirectResponse(f"/{left - 1}") if left else PlainTextResponse("there")

    async with app_server(Starlette(routes=[Route("/{n}", onward)])) as port:
        guard = GuardedFetch(policy(port), resolve=Names(news_test=HERE))
        link = f"http://news.test:{port}/{hops}"
        if hops == HOPS_MAX:
            assert (await guard.fetch(link)).data == b"there"
        else:
            with pytest.raises(LinkRefused):
                await guard.fetch(link)


async def test_a_redirect_from_https_down_to_http_is_refused(tmp_path: Path) -> None:
    server, client = certificate(tmp_path, "news.test")
    async with (
        raw_server(says(ok(b"plain"))) as plain,
        raw_server(says(redirect(f"http://news.test:{plain}/")), tls=server) as secure,
    ):
        guard = GuardedFetch(policy(plain, secure), resolve=Names(news_test=HERE), tls=client)
        with pytest.raises(LinkRefused) as refused:
            await guard.fetch(f"https://news.test:{secure}/")
    assert "down to http" in refused.value.sentence


async def test_nobody_at_the_port_is_a_sentence() -> None:
    async with raw_server(says(b"")) as port:
        pass
    guard = GuardedFetch(policy(port), resolve=Names(news_test=HERE))
    with pytest.raises(LinkUnreachable) as refused:
        await guard.fetch(f"http://news.test:{port}/")
    assert "no secure or open connection" in refused.value.sentence


def test_the_guard_is_the_fetch_port() -> None:
    port: Fetch = GuardedFetch()
    assert isinstance(port, GuardedFetch)


def test_the_default_trust_is_a_verifying_one() -> None:
    trust = GuardedFetch()._trusted()
    assert trust.verify_mode == ssl.CERT_REQUIRED
    assert trust.check_hostname
