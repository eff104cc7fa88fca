"""A store that can be taken down and brought back, around a real one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from runtime.engine.kit import Kit
from runtime.errors import StoreUnavailable
from runtime.ports import Ask, Body, Key, Page, Store
from tests.world import make_kit


class Weather:
    """A store that is down while `down` says so."""

    def __init__(self, inner: Store) -> None:
        self.inner = inner
        self.down = False

    def _check(self) -> None:
        if self.down:
            raise StoreUnavailable(cause="a test took it down")

    async def get(self, key: Key[Any]) -> Any:  # noqa: ANN401 - as the port
        self._check()
        return await self.inner.get(key)

    async def find(self, ask: Ask[Any]) -> Page[Any]:
        self._check()
        return await self.inner.find(ask)

    async def transact(self, body: Body[Any]) -> Any:  # noqa: ANN401 - as the port
        self._check()
        return await self.inner.transact(body)

    async def close(self) -> None:
        await self.inner.close()


async def weathered(folder: Path) -> tuple[Kit, Weather]:
    made: list[Weather] = []

    def wrap(store: Store) -> Store:
        made.append(Weather(store))
        return made[0]

    kit = await make_kit(folder, wrap=wrap)
    return kit, made[0]
