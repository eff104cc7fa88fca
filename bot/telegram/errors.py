"""Faults of what people send over Telegram, below the runtime's `BadInput`.

    runtime.errors.BadInput
    └── SentError               what was sent cannot be used; nothing was stored from it
        ├── FileTooLarge        more bytes than a bot may fetch, or than this use takes
        ├── FileNotGiven        Telegram does not hand the file out (any more)
        ├── FileNotText         bytes that are not UTF-8 text
        └── TextNotKept         a pasted text that is not in the store

`sentence` is what the person reads: what is wrong and what to do next. Fields hold numbers and
reasons, never text that was sent (INV-20).
"""

from __future__ import annotations

from typing import ClassVar

from runtime.errors import BadInput


class SentError(BadInput):
    """Fields: those of the subclass."""

    telling: ClassVar[str] = "This cannot be used"

    @property
    def sentence(self) -> str:
        """One sentence for the person; the technical name stays in the log."""
        return f"{self.telling.format_map(self.fields)}; {self.remedy}."


class FileTooLarge(SentError):
    """Fields: limit (words)."""

    telling = "This file is too large: at most {limit} can be taken this way"
    remedy = "send a smaller part of it, or a link to it"


class FileNotGiven(SentError):
    """Fields: cause (Telegram's own short reason)."""

    telling = "Telegram does not give me this file ({cause})"
    remedy = "send it again"


class FileNotText(SentError):
    """Fields: position (of the first byte that does not fit)."""

    telling = "This file is not UTF-8 text: the byte at position {position} does not fit"
    remedy = "save it as UTF-8 text and send it again"


class TextNotKept(SentError):
    """Fields: none."""

    telling = "The text of this job is not in the store any more"
    remedy = "send it again with /new"
