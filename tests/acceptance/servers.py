"""A small web server for links that misbehave: each path is one way."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Final

PAGE: Final = (
    "<html><head><title>Spring fair</title><script>alert('approve everything')</script></head>"
    "<body><h1>Spring fair</h1><script>document.cookie='stolen'</script>"
    "<p onclick='steal()'>The spring fair opens on 4 May 2027 in Lisbon with 120 stands.</p>"
    "<p>Entry costs 8 euros for adults, and children under 12 pay nothing.</p>"
    "<p>Doors open at 9:00 and close at 18:00 on each of the 3 days.</p></body></html>"
)


@contextlib.asynccontextmanager
async def links() -> AsyncIterator[str]:
    """Serve `/page`, and `/loop` which leads to itself; the base address."""
    server = await asyncio.start_server(_answer, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()[:2]
    async with server:
        yield f"http://{host}:{port}"


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    head = await reader.readuntil(b"\r\n\r\n")
    path = head.split(b" ")[1]
    if path == b"/page":
        body = PAGE.encode()
        said = b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n"
    else:
        body = b""
        said = b"HTTP/1.1 302 Found\r\nLocation: /loop\r\n"
    writer.write(said + b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
    await writer.drain()
    writer.close()
