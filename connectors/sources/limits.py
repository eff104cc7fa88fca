"""How much of a source is read, and why exactly so much.

Every number that bounds a conversion stands here with its reason; the readers import it, and a
test probes each one at its border.
"""

from __future__ import annotations

MIB = 1024 * 1024

SOURCE_BYTES_MAX = 20 * MIB
"""What a bot may download from Telegram (`getFile`); links get the same, so both behave alike."""

TEXT_CHARS_MAX = 8 * MIB
"""More than a thousand-page book: beyond it nobody reads the result and every digest gets slow."""

PDF_PAGES_MAX = 2_000
"""At the measured few milliseconds per page this stays inside the conversion's deadline."""

DOCX_ENTRIES_MAX = 4_096
"""A Word file has some dozens of parts; one with thousands is made to cost time."""

DOCX_UNPACKED_BYTES_MAX = 64 * MIB
"""The XML reader needs about ten bytes of memory per byte of XML, so 64 MiB meet `MEMORY_BYTES`."""

DOCX_RATIO_MAX = 200
"""Deflate packs XML at most some 30 times in real files; zip bombs begin at 1000."""

DOCX_RATIO_FREE_BYTES = MIB
"""Below this size a part is harmless whatever its ratio."""

HTML_TAGS_MAX = 300_000
"""A long article has some thousands of tags; a million took 14 s and a gigabyte, measured."""

MARKS_MAX = 2_000
"""Positions with a label (page, time) that travel with a text."""

MEMORY_BYTES = 1_024 * MIB
"""Address space of one converting process; two at once fit on the smallest machine we name."""

CONVERSION_SECONDS = 30.0
"""Longer than any supported source needs by a factor of ten; the caller may pass another."""

LINK_CHARS_MAX = 2_048
"""Longer links exist, but not ones that people send."""
