"""One HTTP server inside the process: it leaves signals alone and says on which port it listens."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
from collections.abc import AsyncIterator, Iterator

import uvicorn
from starlette.types import ASGIApp

from runtime.errors import SettingsError

STOP_SECONDS = 5


class _Quiet(uvicorn.Server):
    """A server that does not take SIGTERM: the process drains its own loops first."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def listen(host: str, port: int) -> socket.socket:
    """A bound socket, so that the port is known before anything else starts.

    Raises:
        SettingsError: the address cannot be listened on.
    """
    try:
        return socket.create_server((host, port), backlog=128)
    except OSError as error:
        of_port = error.errno in {errno.EADDRINUSE, errno.EACCES}
        setting = "HARMONIA_LISTEN_PORT" if of_port else "HARMONIA_LISTEN_HOST"
        # The library adds the address that it tried, in its own words.
        why = (error.strerror or str(error)).partition(" (while attempting")[0]
        raise SettingsError(setting=setting, cause=f"{host}:{port}: {why}") from None


def address_of(sock: socket.socket) -> str:
    """The address by which this machine reaches the socket, for browsers and for the bot."""
    host, port = sock.getsockname()[:2]
    known = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - names what was bound, binds nothing
    shown = known.get(host, host)
    return f"http://[{shown}]:{port}" if ":" in shown else f"http://{shown}:{port}"


@contextlib.asynccontextmanager
async def serving(app: ASGIApp, sock: socket.socket) -> AsyncIterator[str]:
    """Serve `app` on `sock` while the block runs; yields the base address."""
    config = uvicorn.Config(
        app,
        log_level="error",
        access_log=False,
        lifespan="on",
        proxy_headers=False,  # who calls is who is connected, whatever a header claims
        timeout_graceful_shutdown=STOP_SECONDS,
    )
    server = _Quiet(config)
    task = asyncio.create_task(server.serve(sockets=[sock]))
    try:
        yield address_of(sock)
    finally:
        server.should_exit = True
        await task
