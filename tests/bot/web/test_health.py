"""Health: the process answers; readiness: its store does."""

from __future__ import annotations

from pathlib import Path

import httpx
from starlette.applications import Starlette

from bot.web.health import health_routes
from runtime.engine.kit import Kit
from tests.world import make_kit


async def ask(kit: Kit, path: str) -> httpx.Response:
    app = Starlette(routes=list(health_routes(kit)))
    transport = httpx.ASGITransport(app=app)
    async with httpx.AsyncClient(transport=transport, base_url="http://bot") as client:
        return await client.get(path)


async def test_a_process_with_its_store_is_ready(tmp_path: Path) -> None:
    kit = await make_kit(tmp_path)
    assert (await ask(kit, "/healthz")).status_code == 200
    assert (await ask(kit, "/readyz")).status_code == 200


async def test_a_process_without_its_store_is_alive_but_not_ready(tmp_path: Path) -> None:
    kit = await make_kit(tmp_path)
    await kit.store.close()
    assert (await ask(kit, "/healthz")).status_code == 200
    answer = await ask(kit, "/readyz")
    assert answer.status_code == 503
    assert answer.json()["fault"] == "StoreUnavailable"
