"""The text layer of a PDF, page by page.

Lines are wrapped where the page ends, not where a sentence does: a full line is joined with the
next by a blank, so that sentences can be quoted whole; no other character is added or taken.
Pages without text and pages that cannot be read are named in notes. A document that opens only
with a password, or has no text on any page, is refused.
"""

from __future__ import annotations

import io
import re

from connectors.errors import (
    ConversionFailed,
    EncryptedSource,
    NoTextInSource,
    SourceExploded,
    SourceTooLarge,
)
from connectors.sources.detect import SPOKEN
from connectors.sources.limits import PDF_PAGES_MAX, TEXT_CHARS_MAX
from connectors.sources.text import Extract, Section, normalised

FULL_LINE_SHARE = 0.75
"""A line at least this long, compared with the longest of its page, was wrapped."""
_ITEM = re.compile(r"^(?:[-*•‣◦–—]\s|\d{1,3}[.)]\s|\(?[a-z][.)]\s|#)")  # noqa: RUF001 - real dashes


def read_pdf(raw: bytes, name: str) -> Extract:
    """Sections by page; raises EncryptedSource, NoTextInSource, SourceTooLarge, SourceExploded."""
    from pypdf import PdfReader
    from pypdf.errors import FileNotDecryptedError, LimitReachedError

    spoken = SPOKEN["pdf"]
    notes: list[str] = []
    try:
        reader = PdfReader(io.BytesIO(raw), strict=False)
        if reader.is_encrypted:
            if not reader.decrypt(""):
                raise EncryptedSource(name=name, format=spoken)
            notes.append("The document is locked against changes; it opens without a password.")
        pages = len(reader.pages)
        if pages > PDF_PAGES_MAX:
            raise SourceTooLarge(name=name, found=pages, limit=PDF_PAGES_MAX, unit="pages")
        sections, blank, broken = _pages(reader, name)
        title = reader.metadata.title if reader.metadata is not None else None
    except FileNotDecryptedError:
        raise EncryptedSource(name=name, format=spoken) from None
    except LimitReachedError:
        raise SourceExploded(name=name, what="a stream", limit="the reader's limit") from None
    if not sections:
        if broken:
            raise ConversionFailed(name=name, format=spoken, cause="no page is readable")
        raise NoTextInSource(name=name, format=spoken, pages=pages)
    notes.extend(_page_notes(blank, broken))
    return Extract(
        sections=tuple(sections), title=_text_or_none(title), notes=tuple(notes), pages=pages
    )


def _pages(reader: object, name: str) -> tuple[list[Section], list[int], list[int]]:
    from pypdf import PdfReader
    from pypdf.errors import FileNotDecryptedError, LimitReachedError

    assert isinstance(reader, PdfReader)  # noqa: S101 - keeps pypdf's import lazy
    sections: list[Section] = []
    blank: list[int] = []
    broken: list[int] = []
    length = 0
    for number, page in enumerate(reader.pages, start=1):
        try:
            text = unwrapped(normalised(page.extract_text())[0])
        except (FileNotDecryptedError, LimitReachedError, MemoryError):
            raise
        except Exception:  # noqa: BLE001 - one damaged page is a note, not the end of the document
            broken.append(number)
            continue
        if not text.strip():
            blank.append(number)
            continue
        length += len(text)
        if length > TEXT_CHARS_MAX:
            raise SourceTooLarge(name=name, found=length, limit=TEXT_CHARS_MAX, unit="characters")
        sections.append(Section(text=text, label=f"page {number}"))
    return sections, blank, broken


def unwrapped(text: str) -> str:
    """Join lines that were broken by the width of the page."""
    lines = [line.strip(" ") for line in text.split("\n")]
    full = max((len(line) for line in lines), default=0) * FULL_LINE_SHARE
    out: list[str] = []
    wrapped = False
    for line in lines:
        if wrapped and line and not _ITEM.match(line):
            out[-1] += ("" if out[-1].endswith("-") else " ") + line
        else:
            out.append(line)
        wrapped = len(line) >= full and bool(line) and not line.endswith((".", ":", "!", "?"))
    return "\n".join(out)


def _page_notes(blank: list[int], broken: list[int]) -> list[str]:
    notes: list[str] = []
    if blank:
        notes.append(f"Pages without text, perhaps pictures: {_listed(blank)}.")
    if broken:
        notes.append(f"Pages that could not be read: {_listed(broken)}.")
    return notes


LISTED_MAX = 20


def _listed(numbers: list[int]) -> str:
    shown = ", ".join(map(str, numbers[:LISTED_MAX]))
    more = len(numbers) - LISTED_MAX
    return shown if more <= 0 else f"{shown} and {more} more"


def _text_or_none(value: object) -> str | None:
    return value if isinstance(value, str) else None
