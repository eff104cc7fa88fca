"""The story as it happens: what the operator sees, line by line, with the time since the start.

Keeps: what is printed about the bot is read from the chat; this module makes no claim of its own.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Final

from bot.sandbox.client import labels
from runtime.system import SystemClock
from tests.acceptance.people import Json, Person

WIDTH: Final = 100
LINES_MAX: Final = 3
QUIET: Final = ("▫️", "Digest ", "Working.", "Source: ")
"""Beginnings of lines that need no retelling when an edit brings them."""
Say = Callable[[str], None]


class Story:
    """Prints who did what. `told` keeps every line."""

    def __init__(self, say: Say) -> None:
        self._clock = SystemClock()
        self._began = self._clock.monotonic()
        self._say = say
        self.told: list[str] = []

    @property
    def seconds(self) -> float:
        """Since the beginning."""
        return self._clock.monotonic() - self._began

    def tell(self, who: str, what: str) -> None:
        """One line of the story."""
        line = f"{self.seconds:5.1f} s  {who:<9} {_cut(what)}"
        self.told.append(line)
        self._say(line)

    def chapter(self, title: str) -> None:
        """A heading."""
        self._say("")
        self._say(title)

    @contextlib.asynccontextmanager
    async def watching(self, person: Person) -> AsyncIterator[None]:
        """Tell what the bot writes and changes in a person's chat, while the block runs."""
        task = asyncio.ensure_future(self._watch(person))
        try:
            yield
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    async def _watch(self, person: Person) -> None:
        known: dict[int, list[str]] = {}

        async def look(_: object) -> bool:
            for message in await person.history():
                if message["from"].get("is_bot"):
                    self._news(known, message)
            return False

        while True:
            await person.client.wait_until(look, seconds=3600)

    def _news(self, known: dict[int, list[str]], message: Json) -> None:
        """Tell what is new in one message: its beginning, or the lines that an edit changed."""
        number = int(message["message_id"])
        text = str(message.get("text") or message.get("caption") or "")
        lines = [line for line in text.split("\n") if line.strip()]
        before = known.get(number)
        if before == lines:
            return
        known[number] = lines
        if before is None:
            self.tell("bot", f"writes: {' / '.join(lines[:LINES_MAX])}")
            if buttons := labels(message):
                self.tell("", "        " + " ".join(f"[{label}]" for label in buttons))
            return
        fresh = [line for line in lines if line not in before and not line.startswith(QUIET)]
        for line in fresh[: LINES_MAX + 1]:
            self.tell("bot", f"changes “{_cut(lines[0], 34)}”: {line}")


def _cut(text: str, width: int = WIDTH) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= width else flat[: width - 1] + "…"
