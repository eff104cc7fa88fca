"""What the sandbox refuses, with Telegram's own words.

    HarmoniaError
    └── SandboxError
        ├── ApiRefusal         an answer {ok: false} of the Bot API: code, description, parameters
        ├── ControlRefusal     the control API was asked for something that cannot be
        ├── WorldUnreadable    the stored world cannot be replayed
        ├── WorldTaken         another process plays in that world
        └── WaitEnded          a client waited for something that did not come

Keeps: a refusal's description is byte for byte what Telegram answers in that case (taken from the
public sources of its Bot API server), so that a bot which reads descriptions behaves the same here.
"""

from __future__ import annotations

from typing import Any

from runtime.errors import HarmoniaError


class SandboxError(HarmoniaError):
    """The sandbox could not do what was asked."""

    rule = "the sandbox behaves as Telegram does"
    remedy = "compare the request with the Bot API's documentation"


class ApiRefusal(SandboxError):
    """Fields: code, description, parameters."""

    def __init__(
        self, code: int, description: str, parameters: dict[str, int] | None = None
    ) -> None:
        """Keep what the answer's JSON will hold."""
        self.code = code
        self.description = description
        self.parameters = parameters or {}
        super().__init__(code=code, description=description)

    @property
    def body(self) -> dict[str, Any]:
        """The answer as the Bot API writes it."""
        body: dict[str, Any] = {
            "ok": False,
            "error_code": self.code,
            "description": self.description,
        }
        if self.parameters:
            body["parameters"] = self.parameters
        return body


class ControlRefusal(SandboxError):
    """Fields: what was asked and why it cannot be."""

    rule = "a person can only do what their Telegram client could do"
    remedy = "look at the named field"


class WorldTaken(SandboxError):
    """Fields: folder."""

    rule = "one process plays a sandbox world"
    remedy = "stop the other one, or choose another HARMONIA_DATA_DIR"


class WorldUnreadable(SandboxError):
    """Fields: file, line, cause."""

    rule = "a stored world is replayed whole or not at all"
    remedy = "move the sandbox folder away to start with a fresh world"


class WaitEnded(SandboxError):
    """Fields: awaited, seconds, seen."""

    rule = "a wait ends with what it waited for"
    remedy = "look at the last messages that were seen"


def bad_request(detail: str, parameters: dict[str, int] | None = None) -> ApiRefusal:
    """400 with Telegram's prefix; the first letter is lowered the way its server does."""
    raw = len(detail) > 1 and (detail[1] == "_" or "A" <= detail[1] <= "Z")
    shown = detail if raw else detail[:1].lower() + detail[1:]
    return ApiRefusal(400, f"Bad Request: {shown}", parameters)


def forbidden(detail: str) -> ApiRefusal:
    """403 with Telegram's prefix."""
    return ApiRefusal(403, f"Forbidden: {detail}")


def too_many(retry_after: int) -> ApiRefusal:
    """429 with its waiting time."""
    return ApiRefusal(
        429, f"Too Many Requests: retry after {retry_after}", {"retry_after": retry_after}
    )
