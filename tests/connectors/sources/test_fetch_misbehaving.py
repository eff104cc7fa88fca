"""`connectors/sources/fetch.py` against servers that misbehave: each is a sentence, none a hang."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import Callable

import pytest

from connectors.errors import (
    EmptySource,
    LinkRefused,
    LinkUnreachable,
    SourceExploded,
    SourceTooLarge,
    UnsupportedSource,
)
from connectors.sources.fetch import GuardedFetch
from tests.connectors.sources.servers import (
    HERE,
    Handler,
    Names,
    ok,
    policy,
    raw_server,
    redirect,
    says,
)


async def fails(answer: bytes, kind: type[Exception], **limits: int) -> Exception:
    async with raw_server(says(answer)) as port:
        guard = GuardedFetch(policy(port, **limits), resolve=Names(news_test=HERE))
        with pytest.raises(kind) as refused:
            await guard.fetch(f"http://news.test:{port}/a.txt?token=secret")
    assert "secret" not in str(refused.value)
    return refused.value


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (b"", LinkUnreachable),
        (b"SSH-2.0-OpenSSH_9.6\r\n", LinkUnreachable),
        (b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", LinkUnreachable),
        (b"HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n", LinkUnreachable),
        (b"HTTP/1.1 206 Partial\r\nContent-Length: 1\r\n\r\nx", LinkUnreachable),
        (b"HTTP/1.1 302 Found\r\nContent-Length: 0\r\n\r\n", LinkUnreachable),
        (redirect("http://[nonsense/"), LinkRefused),
        (ok(b"short", "Content-Length: 100"), LinkUnreachable),
        (ok(b"", "Content-Length: 0"), EmptySource),
        (ok(b"x", "Content-Length: -1"), LinkUnreachable),
        (ok(b"x", "Content-Length: 1, 2"), LinkUnreachable),
        (ok(b"x", "Content-Length: 99999999999"), SourceTooLarge),
        (ok(b"x", "Transfer-Encoding: chunked"), LinkUnreachable),
        (ok(b"x", "Content-Encoding: br"), LinkUnreachable),
        (ok(b"x" * 5000), SourceTooLarge),
        (ok(b"5000\r\n" + b"x" * 0x5000, "Transfer-Encoding: chunked"), SourceTooLarge),
        (ok(b"x", content_type="image/png"), UnsupportedSource),
        (ok(b"x", content_type="video/mp4"), UnsupportedSource),
        (ok(gzip.compress(bytes(1 << 26)), "Content-Encoding: gzip"), SourceExploded),
    ],
)
async def test_a_bad_answer_is_a_sentence(answer: bytes, kind: type[Exception]) -> None:
    limit = (1 << 20) if kind is SourceExploded else 4096
    assert isinstance(await fails(answer, kind, bytes_max=limit), kind)


async def test_a_body_longer_than_stated_ends_where_it_was_stated_to_end() -> None:
    async with raw_server(says(ok(b"hello and more", "Content-Length: 5"))) as port:
        guard = GuardedFetch(policy(port), resolve=Names(news_test=HERE))
        assert (await guard.fetch(f"http://news.test:{port}/")).data == b"hello"


async def test_a_body_without_end_is_cut_off_at_the_limit() -> None:
    sent = 0

    async def endless(_head: bytes, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        writer.write(ok(b""))
        while True:
            writer.write(b"x" * 65_536)
            sent += 65_536
            await writer.drain()

    async with raw_server(endless) as port:
        guard = GuardedFetch(policy(port, bytes_max=100_000), resolve=Names(news_test=HERE))
        with pytest.raises(SourceTooLarge):
            await guard.fetch(f"http://news.test:{port}/")
    assert sent < 20_000_000  # what the kernel's buffers took, not what the server would send


async def _dripping(first: bytes, drips: int, done: Callable[[], None]) -> Handler:
    async def drip(_head: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(first)
        for count in range(1_000_000):
            writer.write(b"x")
            await writer.drain()
            if count == drips:
                done()
                break
        await asyncio.Event().wait()

    return drip


@pytest.mark.parametrize("first", [ok(b""), b"HTTP/1.1 200 OK\r\nX-Slow: "])
async def test_a_server_that_drips_is_left_at_the_deadline(first: bytes) -> None:
    """The deadline is one for the whole fetch: bytes that keep coming do not move it."""
    timers: list[asyncio.Timeout] = []

    def deadline(seconds: float) -> asyncio.Timeout:
        assert seconds == 20.0
        timers.append(asyncio.timeout(None))
        return timers[-1]

    def strike() -> None:
        timers[0].reschedule(asyncio.get_running_loop().time())

    async with raw_server(await _dripping(first, 50, strike)) as port:
        guard = GuardedFetch(policy(port), resolve=Names(news_test=HERE), deadline=deadline)
        with pytest.raises(LinkUnreachable) as refused:
            await guard.fetch(f"http://news.test:{port}/")
    assert "longer than 20 seconds" in refused.value.sentence


async def test_a_name_server_that_never_answers_is_left_at_the_deadline() -> None:
    async def silent(_host: str, _port: int) -> list[str]:
        await asyncio.Event().wait()
        return []

    guard = GuardedFetch(policy(80), resolve=silent, deadline=lambda _seconds: asyncio.timeout(0))
    with pytest.raises(LinkUnreachable):
        await guard.fetch("http://news.test/")
