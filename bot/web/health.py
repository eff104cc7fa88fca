"""Health and readiness: the process answers, and the store does."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from runtime.engine.kit import Kit
from runtime.errors import StoreError
from runtime.ports import Ask
from runtime.stores.collections import OPERATIONS


def health_routes(kit: Kit) -> list[Route]:
    """`/healthz`: this process answers. `/readyz`: its store answers too, else 503."""

    async def healthz(request: Request) -> JSONResponse:
        del request
        return JSONResponse({"status": "ok"})

    async def readyz(request: Request) -> JSONResponse:
        del request
        try:
            await kit.store.find(Ask(OPERATIONS, "ready", None, equals=("pending",), limit=1))
        except StoreError as error:
            return JSONResponse({"status": "no store", "fault": type(error).__name__}, 503)
        return JSONResponse({"status": "ready"})

    return [Route("/healthz", healthz), Route("/readyz", readyz)]
