"""Real servers on loopback for the link tests: well-behaved ones, and ones that misbehave.

A raw server is a function over asyncio streams, so that it can send what no HTTP library would.
Names are invented and resolved by `Names`; nothing here asks the system's resolver.
"""

from __future__ import annotations

import asyncio
import contextlib
import datetime as dt
import ipaddress
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path

import uvicorn
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from starlette.types import ASGIApp

from connectors.sources.fetch import LinkPolicy

Handler = Callable[[bytes, asyncio.StreamWriter], Awaitable[None]]
LOOPBACK = (ipaddress.IPv4Network("127.0.0.1/32"),)

HERE = [["127.0.0.1"]]


def says(answer: bytes) -> Handler:
    async def handler(_head: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(answer)
        await writer.drain()

    return handler


def ok(body: bytes, *headers: str, content_type: str = "text/plain") -> bytes:
    lines = ["HTTP/1.1 200 OK", f"Content-Type: {content_type}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def redirect(target: str) -> bytes:
    return f"HTTP/1.1 302 Found\r\nLocation: {target}\r\nContent-Length: 0\r\n\r\n".encode()


class Names:
    """A resolver that answers from a script; the last answer of a name stays."""

    def __init__(self, **scripts: Sequence[Sequence[str]]) -> None:
        self._scripts = {name.replace("_", "."): list(answers) for name, answers in scripts.items()}
        self.asked: list[str] = []

    async def __call__(self, host: str, _port: int) -> Sequence[str]:
        self.asked.append(host)
        if host not in self._scripts:
            raise socket.gaierror(socket.EAI_NONAME, "unknown")
        answers = self._scripts[host]
        return answers.pop(0) if len(answers) > 1 else answers[0]


def policy(*ports: int, seconds: float = 20.0, bytes_max: int = 1 << 20) -> LinkPolicy:
    """Links to 127.0.0.1 on these ports, and nowhere else on this machine."""
    return LinkPolicy(
        ports=frozenset(ports), allow_addresses=LOOPBACK, seconds=seconds, bytes_max=bytes_max
    )


@contextlib.asynccontextmanager
async def raw_server(
    handler: Handler, *, host: str = "127.0.0.1", port: int = 0, tls: ssl.SSLContext | None = None
) -> AsyncIterator[int]:
    """Serve each connection one request head; yields the port."""
    tasks: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            await handler(head, writer)
        except (ConnectionError, asyncio.IncompleteReadError, ssl.SSLError):
            pass  # the client left, which is what many tests are about
        finally:
            tasks.discard(task)
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    server = await asyncio.start_server(serve, host, port, ssl=tls)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        waiting = list(tasks)
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        await server.wait_closed()


@contextlib.asynccontextmanager
async def app_server(app: ASGIApp) -> AsyncIterator[int]:
    """Serve a Starlette app with uvicorn; yields the port."""
    bound = socket.socket()
    bound.bind(("127.0.0.1", 0))
    bound.listen()  # connections wait here until uvicorn takes them: nothing to poll for
    server = uvicorn.Server(uvicorn.Config(app, ws="none", lifespan="off", log_config=None))
    running = asyncio.create_task(server.serve(sockets=[bound]))
    try:
        yield bound.getsockname()[1]
    finally:
        server.should_exit = True
        await running
        bound.close()


def certificate(folder: Path, name: str) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """A server context with a certificate for one name, and a client context that trusts it."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(dt.datetime(2020, 1, 1, tzinfo=dt.UTC))
        .not_valid_after(dt.datetime(2120, 1, 1, tzinfo=dt.UTC))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    public = made.public_bytes(serialization.Encoding.PEM)
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    both = folder / f"{name}.pem"
    both.write_bytes(public + private)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(both)
    client = ssl.create_default_context(cadata=public.decode())
    return server, client
