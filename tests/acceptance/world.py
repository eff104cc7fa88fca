"""The running bot: real processes on one data directory, people in a sandbox, the stored truth.

Two shapes: the sandbox as a process of its own with any number of `harmonia up` beside it (they
believe that it is Telegram), or one `harmonia up` that serves the chat page itself, as `make up`
does without a token. Keeps: free ports, an empty folder, everything ended at the end.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

from bot.sandbox.client import SandboxClient
from tests.acceptance.people import Person
from tests.acceptance.processes import Json, Process
from tests.acceptance.truth import Truth

LEASE_SECONDS: Final = "3"


class World:
    """One data directory and everything that runs on it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.data = folder / "data"
        self.truth = Truth(self.data)
        self.processes: list[Process] = []
        self.address = ""
        self._settings: dict[str, str] = {
            "HARMONIA_DATA_DIR": str(self.data),
            "HARMONIA_LISTEN_PORT": "0",
            "HARMONIA_LEASE_SECONDS": LEASE_SECONDS,
            "HARMONIA_LOG_LEVEL": "debug",
        }
        self._client: SandboxClient | None = None

    @property
    def client(self) -> SandboxClient:
        assert self._client is not None, "no sandbox is running"
        return self._client

    def person(self, name: str, chat: str | int = "bot") -> Person:
        return Person(self.client, name, chat)

    @property
    def ana(self) -> Person:
        return self.person("ana")

    async def sandbox(self) -> Process:
        """Serve Telegram's stand-in in a process of its own; later `up`s use it."""
        process = await self._start("sandbox", "sandbox")
        self._settings["TELEGRAM_API_URL"] = _value(await process.line("TELEGRAM_API_URL="))
        self._settings["TELEGRAM_BOT_TOKEN"] = _value(await process.line("TELEGRAM_BOT_TOKEN="))
        await self._talk_to(self._settings["TELEGRAM_API_URL"])
        return process

    async def up(self, name: str = "up", **settings: str) -> Process:
        """Start `harmonia up`; returns once it has said who it is."""
        process = await self._start(name, "up", **settings)
        if "TELEGRAM_BOT_TOKEN" not in self._settings:
            page = await process.line("Open the chat page:")
            await self._talk_to(page.split()[-1].rstrip("/"))
        await process.line("Bot: @")
        return process

    async def _start(self, name: str, *words: str, **settings: str) -> Process:
        given = {**self._settings, **settings}
        process = await Process.start(name, ["bot.cli", *words], self.folder, **given)
        self.processes.append(process)
        return process

    async def _talk_to(self, address: str) -> None:
        if self._client is not None:
            await self._client.close()
        token = (self.data / "sandbox" / "page-token").read_text()
        self.address = address
        self._client = SandboxClient(address, token)

    async def pair(self, process: Process) -> Person:
        """Ana becomes the admin by the code that the process printed."""
        code = (await process.line("/start ")).split()[-1]
        await self.ana.asks(f"/start {code}", "you are admin here")
        return self.ana

    async def invite(self, name: str, role: str = "approver") -> Person:
        """Ana invites a person, who becomes a member."""
        card = await self.ana.asks(f"/invite {role}", "/start ")
        code = str(card["text"]).partition("/start ")[2].split()[0]
        person = self.person(name)
        await person.asks(f"/start {code}", f"you are {role} here")
        return person

    async def group(self) -> str:
        """The bot works in the group, which Ana, Bo and Sam are in; its title."""
        state = await self.client.state()
        chats = [chat for person in state["people"] for chat in person["chats"]]
        title = next(str(chat["title"]) for chat in chats if chat["type"] == "supergroup")
        bot = state["bot"]["username"]

        def told(message: Json) -> bool:
            return str(message.get("text")).startswith(("I work here now", "You are admin"))

        await self.person("ana", title).asks(f"/start@{bot}", told)
        return title

    async def calls(self, *methods: str) -> list[Json]:
        """What the bot truly called, by method."""
        ledger = await self.client.ledger()
        return [call for call in ledger["calls"] if not methods or call["method"] in methods]

    async def deliveries(self) -> dict[int, Json]:
        """How often each update was handed to the bot."""
        ledger = await self.client.ledger()
        return {int(row["update_id"]): row for row in ledger["deliveries"]}

    def logged(self, event: str) -> list[Json]:
        """Entries of this name in the logs of all processes."""
        return [
            {**entry, "process": process.name}
            for process in self.processes
            for entry in process.logged
            if entry["event"] == event
        ]

    def report(self) -> str:
        return "\n\n".join(process.report() for process in self.processes)

    async def close(self) -> None:
        if self._client is not None:
            await self._client.close()
            self._client = None
        for process in reversed(self.processes):
            await process.end()
        self.truth.close()


def _value(line: str) -> str:
    return line.partition("=")[2].strip()


@contextlib.asynccontextmanager
async def opened(folder: Path) -> AsyncIterator[World]:
    """A world for the length of the block; a failure inside shows what its processes said."""
    world = World(folder)
    try:
        yield world
    except Exception as error:
        error.add_note(world.report())
        raise
    finally:
        await world.close()
