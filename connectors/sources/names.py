"""File names from outside, cleaned for showing.

A name decides nothing but which reader is *expected*; where it is shown it can neither break a
line nor reverse the text around it nor grow without bound.
"""

from __future__ import annotations

import unicodedata

from connectors.errors import UNNAMED

NAME_CHARS_MAX = 80
SUFFIX_CHARS_MAX = 12


def shown_name(name: str | None) -> str:
    """The last part of a path, without control and format characters, at most 80 characters."""
    last = (name or "").replace("\\", "/").rsplit("/", 1)[-1]
    kept = "".join(c for c in last if unicodedata.category(c)[0] != "C" and c not in "\u2028\u2029")
    kept = kept.strip()
    if not kept:
        return UNNAMED
    if len(kept) <= NAME_CHARS_MAX:
        return kept
    return kept[: NAME_CHARS_MAX - 1 - SUFFIX_CHARS_MAX] + "…" + kept[-SUFFIX_CHARS_MAX:]


def suffix_of(name: str | None) -> str:
    """The lower-case ending of a name without its dot, or nothing."""
    shown = shown_name(name)
    stem, dot, suffix = shown.rpartition(".")
    return suffix.lower() if dot and stem and len(suffix) <= SUFFIX_CHARS_MAX else ""
