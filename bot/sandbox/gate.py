"""Who may use the page and the control API.

Keeps: the caller is on this machine, the Host header names this machine (so a page of the web that
re-points its own name here stays outside), and the run's token is in X-Sandbox-Token. A page of the
web can neither read the token nor send the header.
"""

from __future__ import annotations

import hmac
import ipaddress

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

TOKEN_HEADER = "X-Sandbox-Token"  # noqa: S105 - the name of the header, no secret
_LOCAL_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]"})
_IN_PROCESS = frozenset({"testclient", "sandbox-in-process"})


class Gate:
    """The door of one run."""

    def __init__(self, token: str) -> None:
        self.token = token

    def foreign(self, request: Request) -> Response | None:
        """A refusal for callers from elsewhere."""
        host = request.headers.get("host", "")
        name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
        client = request.client.host if request.client else ""
        if _loopback(client) and name.lower() in _LOCAL_NAMES:
            return None
        return JSONResponse({"error": "the sandbox answers only on this machine"}, 403)

    def denied(self, request: Request) -> Response | None:
        """A refusal for callers without the token."""
        foreign = self.foreign(request)
        if foreign is not None:
            return foreign
        given = request.headers.get(TOKEN_HEADER, "")
        if hmac.compare_digest(given.encode(), self.token.encode()):
            return None
        return JSONResponse({"error": "this page is from another run; reload it"}, 403)


def _loopback(client: str) -> bool:
    if client in _IN_PROCESS:
        return True
    try:
        return ipaddress.ip_address(client).is_loopback
    except ValueError:
        return False
