"""Drives people in a sandbox from tests and the demo.

    sandbox = SandboxClient("http://127.0.0.1:8081", token)
    sent = await sandbox.send_text("ana", "bot", "/start")
    card = await sandbox.wait_for("ana", "bot", has_button("Approve"))
    press = await sandbox.press("ana", "bot", card["message_id"], "Approve")
    answer = await sandbox.answer_to(press)

Keeps: waiting is done by the server (a long poll that ends with the next change), never by
sleeping; a wait that ends without its result is an error that shows what was seen.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import httpx

from bot.sandbox.errors import ControlRefusal, WaitEnded
from bot.sandbox.gate import TOKEN_HEADER

Json = dict[str, Any]
T = TypeVar("T")
Test = Callable[[Json], object]
WAIT_SECONDS = 10.0
_POLL_SECONDS_MAX = 20


class SandboxClient:
    """One connection to a sandbox's control API."""

    def __init__(
        self, base_url: str, token: str, transport: httpx.AsyncBaseTransport | None = None
    ) -> None:
        self._http = httpx.AsyncClient(
            base_url=base_url,
            headers={TOKEN_HEADER: token},
            timeout=httpx.Timeout(60),
            transport=transport,
            trust_env=False,
        )

    @classmethod
    def at(cls, base_url: str, directory: Path) -> Self:
        """A client that reads the run's token where the server left it."""
        return cls(base_url, (directory / "page-token").read_text("utf-8"))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Let go of the connection."""
        await self._http.aclose()

    async def _get(self, path: str, **query: object) -> Json:
        asked = {name: str(value) for name, value in query.items() if value is not None}
        return _checked(await self._http.get(f"/sandbox/{path}", params=asked))

    async def _post(self, path: str, **body: object) -> Json:
        given = {name: value for name, value in body.items() if value is not None}
        return _checked(await self._http.post(f"/sandbox/{path}", json=given))

    # --- looking ---

    async def state(self) -> Json:
        """People with their chats, the bot, its commands, the faults in force."""
        return await self._get("state")

    async def messages(self, person: str, chat: str | int = "bot") -> list[Json]:
        """The messages of a chat, oldest first, as a person sees them."""
        found: list[Json] = (await self._get("messages", person=person, chat=chat))["messages"]
        return found

    async def message(self, person: str, chat: str | int, message_id: int) -> Json | None:
        """One message as it is now; None once it is deleted."""
        held = await self.messages(person, chat)
        return next((item for item in held if item["message_id"] == message_id), None)

    async def ledger(self, after: int = 0) -> Json:
        """What truly happened: calls, and deliveries of updates."""
        return await self._get("ledger", after=after)

    async def download(self, file_id: str) -> bytes:
        """The bytes of a file that a message shows."""
        answer = await self._http.get("/sandbox/file", params={"file_id": file_id})
        if not answer.is_success:
            raise ControlRefusal(file_id=file_id, cause=answer.text)
        return answer.content

    # --- acting ---

    async def send_text(self, person: str, chat: str | int, text: str, **options: object) -> Json:
        """Send a text. Options: reply_to, thread_id, html, as ("anonymous" | "channel")."""
        return await self._post("send", person=person, chat=chat, text=text, **options)

    async def reply(self, person: str, chat: str | int, message_id: int, text: str) -> Json:
        """Answer a message."""
        return await self.send_text(person, chat, text, reply_to=message_id)

    async def send_file(
        self, person: str, chat: str | int, name: str, content: bytes, **options: object
    ) -> Json:
        """Send a file. Options: caption, mime_type, reply_to, thread_id, photo."""
        mime = str(options.pop("mime_type", "application/octet-stream"))
        fields = {key: str(value) for key, value in options.items() if value is not None}
        answer = await self._http.post(
            "/sandbox/file",
            data={"person": person, "chat": str(chat), **fields},
            files={"file": (name, content, mime)},
        )
        return _checked(answer)

    async def press(
        self,
        person: str,
        chat: str | int,
        message_id: int,
        label: str | None = None,
        **options: object,
    ) -> Json:
        """Press a button by its label, or by `data`. `shape`: full, stub, inline or bare."""
        return await self._post(
            "press", person=person, chat=chat, message_id=message_id, label=label, **options
        )

    async def edit(self, person: str, chat: str | int, message_id: int, text: str) -> Json:
        """Edit an own message."""
        return await self._post("edit", person=person, chat=chat, message_id=message_id, text=text)

    async def forward(
        self, person: str, from_chat: str | int, message_id: int, chat: str | int
    ) -> Json:
        """Forward a message to another chat."""
        return await self._post(
            "forward", person=person, from_chat=from_chat, message_id=message_id, chat=chat
        )

    async def delete(self, person: str, chat: str | int, message_id: int) -> None:
        """Delete a message."""
        await self._post("delete", person=person, chat=chat, message_id=message_id)

    # --- the scene ---

    async def misbehave(self, kind: str, method: str = "*", **options: object) -> None:
        """Lay a fault, see faults.py. Options: chat_id, times, code, retry_after, seconds, text."""
        await self._post("misbehave", kind=kind, method=method, **options)

    async def behave(self) -> None:
        """Take all faults away."""
        await self._post("behave")

    async def stage(self, do: str, **options: object) -> Json:
        """Change the scene: create_chat, create_topic, delete_topic, migrate, block, freeze, ..."""
        return await self._post("stage", do=do, **options)

    async def redeliver(self, update_id: int | None = None, times: int = 1) -> int:
        """Deliver an update again, with the same number."""
        made = await self.stage("redeliver", update_id=update_id, times=times)
        return int(made["update_id"])

    # --- waiting ---

    async def wait_for(
        self,
        person: str,
        chat: str | int,
        test: Test | str,
        *,
        after: int = 0,
        seconds: float = WAIT_SECONDS,
    ) -> Json:
        """The newest message (numbered above `after`) that passes; a text means "contains it"."""
        passes = _contains(test) if isinstance(test, str) else test
        seen: list[Json] = []

        async def look() -> tuple[Json | None, int]:
            page = await self._get("messages", person=person, chat=chat)
            seen[:] = page["messages"]
            fits = [item for item in seen if item["message_id"] > after and passes(item)]
            return (fits[-1] if fits else None), page["version"]

        found = await self._until(look, seconds)
        if found is None:
            shown = " | ".join(str(item.get("text", "?"))[:80] for item in seen[-5:])
            raise WaitEnded(awaited=f"a message for {person}", seconds=seconds, seen=shown)
        return found

    async def answer_to(self, press: Json, *, seconds: float = WAIT_SECONDS) -> Json:
        """The bot's answer to a press: text, show_alert."""

        async def look() -> tuple[Json | None, int]:
            row = await self._get("query", id=press["query_id"])
            return (row if row["answered"] else None), row["version"]

        found = await self._until(look, seconds)
        if found is None:
            raise WaitEnded(awaited="an answer to a press", seconds=seconds, seen=press["query_id"])
        return found

    async def wait_until(
        self, look: Callable[[SandboxClient], Awaitable[T]], *, seconds: float = WAIT_SECONDS
    ) -> T:
        """The first true value of an async look, tried again after each change of the world."""

        async def once() -> tuple[T, int]:
            version = (await self._get("events", after=0, timeout=0))["version"]
            return await look(self), version

        found = await self._until(once, seconds)
        if not found:
            raise WaitEnded(awaited="a condition", seconds=seconds, seen=found)
        return found

    async def _until(self, look: Callable[[], Awaitable[tuple[T, int]]], seconds: float) -> T:
        loop = asyncio.get_running_loop()
        ends = loop.time() + seconds
        while True:
            found, version = await look()
            left = ends - loop.time()
            if found or left <= 0:
                return found
            waited = max(1, min(int(left), _POLL_SECONDS_MAX))
            await self._get("events", after=version, timeout=waited)


def _checked(answer: httpx.Response) -> Json:
    if not answer.is_success:
        raise ControlRefusal(status=answer.status_code, cause=answer.text[:500])
    body: Json = answer.json()
    return body


def _contains(part: str) -> Test:
    return lambda message: part in (message.get("text") or message.get("caption") or "")


def labels(message: Json) -> list[str]:
    """The labels of a message's buttons."""
    rows = message.get("reply_markup", {}).get("inline_keyboard", [])
    return [button["text"] for row in rows for button in row]


def has_button(label: str) -> Test:
    """Whether a message carries this button."""
    return lambda message: label in labels(message)
