"""Serves the chat page.

Keeps: the page is files of this package and nothing else; its policy allows no script, style,
picture or connection from elsewhere, and no other page may frame it.
"""

from __future__ import annotations

from importlib.resources import files

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from bot.sandbox.gate import Gate

_TYPES = {
    "page.css": "text/css",
    "page.js": "text/javascript",
    "render.js": "text/javascript",
    "panel.js": "text/javascript",
    "api.js": "text/javascript",
    "icon.svg": "image/svg+xml",
}
_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}


def page_routes(gate: Gate) -> list[Route]:
    """The page at / and its parts under /page."""

    async def index(request: Request) -> Response:
        foreign = gate.foreign(request)
        if foreign is not None:
            return foreign
        page = _read("index.html").replace("{{token}}", gate.token)
        return Response(page, media_type="text/html", headers=_HEADERS)

    async def part(request: Request) -> Response:
        foreign = gate.foreign(request)
        if foreign is not None:
            return foreign
        name = request.path_params["name"]
        if name not in _TYPES:
            return JSONResponse({"error": "no such part"}, 404)
        return Response(_read(name), media_type=_TYPES[name], headers=_HEADERS)

    return [
        Route("/", index, methods=["GET"]),
        Route("/page/{name}", part, methods=["GET"]),
    ]


def _read(name: str) -> str:
    return (files("bot.sandbox") / "page" / name).read_text("utf-8")
