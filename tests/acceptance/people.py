"""People of the sandbox as tests move them: they say, send, see and press; they know nothing else.

Keeps: a person waits by the sandbox's long poll, never by a pause; what a press answered is what
the person's toast said.
"""

from __future__ import annotations

from typing import Any, Final

from bot.sandbox.client import SandboxClient, Test, has_button, labels
from runtime.errors import HarmoniaError

Json = dict[str, Any]
SEE_SECONDS: Final = 40.0
STRATEGY: Final = "Strategy"
PACK: Final = "Content pack"


class NoButton(HarmoniaError):
    """A message does not carry the button that was to be pressed."""


class Person:
    """One person in one chat (their private chat with the bot, unless another is named)."""

    def __init__(self, client: SandboxClient, name: str, chat: str | int = "bot") -> None:
        self.client = client
        self.name = name
        self.chat = chat

    def elsewhere(self, chat: str | int) -> Person:
        """The same person in another chat."""
        return Person(self.client, self.name, chat)

    async def says(self, text: str, **options: object) -> int:
        """Send a text; its number."""
        sent = await self.client.send_text(self.name, self.chat, text, **options)
        return int(sent["message_id"])

    async def sends(self, name: str, data: bytes, **options: object) -> int:
        """Send a file; its message's number."""
        sent = await self.client.send_file(self.name, self.chat, name, data, **options)
        return int(sent["message_id"])

    async def sees(self, test: Test | str, after: int = 0, seconds: float = SEE_SECONDS) -> Json:
        """The newest message (numbered above `after`) that passes."""
        return await self.client.wait_for(self.name, self.chat, test, after=after, seconds=seconds)

    async def asks(self, text: str, expected: Test | str) -> Json:
        """Say something, and the answer to it."""
        return await self.sees(expected, after=await self.says(text))

    async def asks_with(self, name: str, data: bytes, expected: Test | str) -> Json:
        """Send a file, and the answer to it."""
        return await self.sees(expected, after=await self.sends(name, data))

    async def card(self, what: str, after: int = 0, seconds: float = SEE_SECONDS) -> Json:
        """The newest card that asks for a decision about `what`."""

        def asks(message: Json) -> bool:
            text = str(message.get("text", ""))
            return text.startswith(f"Approve? · {what}") and "Approve" in labels(message)

        return await self.sees(asks, after=after, seconds=seconds)

    async def presses(self, message: Json, label: str) -> str:
        """Press a button; what the toast said."""
        return str((await self.presses_at(int(message["message_id"]), label=label))["text"])

    async def presses_at(self, number: int, **options: object) -> Json:
        """Press by label or `data`; the whole answer."""
        label = options.pop("label", None)
        press = await self.client.press(
            self.name, self.chat, number, None if label is None else str(label), **options
        )
        return await self.client.answer_to(press, seconds=SEE_SECONDS)

    async def history(self) -> list[Json]:
        """Every message of the chat, as it is now."""
        return await self.client.messages(self.name, self.chat)

    async def approves(self, what: str, after: int = 0) -> Json:
        """Wait for the card, press Approve; the card as it was."""
        card = await self.card(what, after=after)
        toast = await self.presses(card, "Approve")
        assert toast.startswith("Approved."), toast
        return card

    async def verified(self, job: int = 1, seconds: float = SEE_SECONDS) -> Json:
        """The job's card once it says that the effect is verified."""
        head = f"Job {job} ·"

        def done(message: Json) -> bool:
            text = str(message.get("text", ""))
            return text.startswith(head) and "Effect: verified at" in text

        return await self.sees(done, seconds=seconds)


def button_data(message: Json, label: str) -> str:
    """The token behind a button, as a client holds it."""
    for row in message["reply_markup"]["inline_keyboard"]:
        for button in row:
            if button["text"] == label:
                return str(button["callback_data"])
    raise NoButton(label=label, buttons=labels(message))


__all__ = ["PACK", "STRATEGY", "Person", "button_data", "has_button", "labels"]
