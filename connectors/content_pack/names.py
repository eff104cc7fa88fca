"""File names of packs: from a title and a command, safe on every file system.

A name is a readable part and a part from the command's ID, so it is never empty, never reserved,
never a path, and two commands never share one even where letter case does not count. The folders of
two tenants differ for the same reason.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

from runtime.domain.values import sha256

READABLE_BYTES_MAX: Final = 80
KEY_CHARS: Final = 20
ENDING: Final = ".zip"
UNTITLED: Final = "pack"

# Windows reserves these as names, with or without an ending, in any letter case.
RESERVED: Final = re.compile(r"(?i)^(con|prn|aux|nul|com[0-9]|lpt[0-9])$")
_KEPT: Final = frozenset({"Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Nd"})


def pack_key(command: str) -> str:
    """What stands for a command in file names."""
    return sha256(command.encode())[:KEY_CHARS]


def file_name(title: str, command: str) -> str:
    """The one name that a command's pack can have."""
    return f"{readable(title)}-{pack_key(command)}{ENDING}"


def readable(title: str) -> str:
    """Letters, marks and digits of a title, with single hyphens between; never empty."""
    composed = unicodedata.normalize("NFKC", title)
    kept = "".join(char if unicodedata.category(char) in _KEPT else "-" for char in composed)
    words = re.sub(r"-+", "-", kept).strip("-")
    bounded = words.encode()[:READABLE_BYTES_MAX].decode(errors="ignore").rstrip("-")
    # Cutting can leave marks without their letter, and composing again can join some.
    return unicodedata.normalize("NFC", bounded) or UNTITLED


def folder_name(name: str) -> str:
    """A workspace's or brand's folder. Names hold only [A-Za-z0-9_-], so "~" keeps them apart.

    Capitals are marked, so that tenants that differ in letter case alone have different folders on
    file systems that ignore it.
    """
    marked = re.sub(r"[A-Z]", lambda found: "~" + found[0].lower(), name)
    return f"{marked}~~" if RESERVED.match(marked) else marked
