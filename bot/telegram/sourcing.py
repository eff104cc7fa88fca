"""Sources in messages: a document, a link, a text; and the texts that may be cut pieces of one.

Pure. A text that Telegram's clients may have cut is not taken: half a source would be worse than
the question for a file.
"""

from __future__ import annotations

import re
from typing import Final

from bot.telegram.html import units
from bot.telegram.intents import FileRef, New, NewSource, Refuse
from bot.telegram.updates import Json, mapping, number, text

CUT_UNITS_MIN: Final = 3_900
"""Telegram's clients cut a longer text into several messages of about 4,096 units."""
HINT_CUT: Final = (
    "This text may be one of several pieces: Telegram cuts long texts. Send it as a file (.txt or "
    ".md), then I get the whole of it."
)

HINT_REST: Final = "This reads like the rest of the text before it, so it was not used alone."

_LINK: Final = re.compile(r"^(https?://\S{1,1990})(?:\s+(.+))?$", re.DOTALL | re.IGNORECASE)


def is_link(said: str) -> bool:
    """Whether a text is one link and nothing else."""
    match = _LINK.match(said)
    return match is not None and not match[2]


def source_of(said: str) -> New | Refuse:
    """A text as a source: a link with a brief behind it, or the text itself."""
    if match := _LINK.match(said):
        return New(NewSource(link=match[1], brief=(match[2] or "").strip()))
    if units(said) >= CUT_UNITS_MIN:
        return Refuse(HINT_CUT, "content")
    return New(NewSource(text=said))


def file_of(message: Json) -> FileRef | None:
    """The document of a message."""
    document = mapping(message.get("document"))
    id_ = text(document.get("file_id"))
    if not id_ or "animation" in message:
        return None
    return FileRef(
        id=id_[:300],
        name=text(document.get("file_name"))[:300],
        declared_type=text(document.get("mime_type"))[:200],
        bytes=number(document.get("file_size")),
    )
