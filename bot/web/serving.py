"""One HTTP server inside the process: it leaves signals alone and says on which port it listens."""

from __future__ import annotations

import asyncio
import contextlib
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
        raise SettingsError(
            setting="HARMONIA_LISTEN_PORT", cause=f"{host}:{port}: {error.strerror}"
        ) from None


@contextlib.asynccontextmanager
async def serving(app: ASGIApp, sock: socket.socket) -> AsyncIterator[str]:
    """Serve `app` on `sock` while the block runs; yields the base address."""
    host, port = sock.getsockname()[:2]
    config = uvicorn.Config(
        app,
        log_level="error",
        access_log=False,
        lifespan="on",
        timeout_graceful_shutdown=STOP_SECONDS,
    )
    server = _Quiet(config)
    task = asyncio.create_task(server.serve(sockets=[sock]))
    try:
        yield f"http://{host}:{port}"
    finally:
        server.should_exit = True
        await task
