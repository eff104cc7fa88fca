"""Views: what a card shows and offers, before its buttons have tokens.

Keeps rule 7: buttons stand on the last piece only, and only behind content that is reachable: what
does not fit one message goes before it, as pieces or as a file.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from bot.telegram.html import CAPTION_UNITS_MAX, TEXT_UNITS_MAX, plain, split_html, units
from runtime.domain.grant import GrantAction
from runtime.domain.people import Role
from runtime.domain.values import identity
from runtime.ports import Content

PIECES_MAX: Final = 4
"""More than this many messages before a card would bury it: then the content goes as a file."""
PREVIEW_UNITS: Final = 700
PIECE_HEAD_UNITS: Final = 160


@dataclass(frozen=True, slots=True)
class Offer:
    """A button: what it would do, to what, for whom. `digest` is the content shown with it."""

    label: str
    action: GrantAction
    subject: str
    role: Role
    digest: str | None = None


@dataclass(frozen=True, slots=True)
class View:
    """One card: pieces that go before it, its own content, its offers, and until when they hold."""

    content: Content
    lead: tuple[Content, ...] = ()
    offers: tuple[tuple[Offer, ...], ...] = ()
    expires_at: datetime | None = None
    file: str | None = None
    """An artifact to attach to the content."""

    @property
    def lead_digest(self) -> str:
        """What the pieces before the card are, as one digest."""
        parts: list[str] = []
        for piece in self.lead:
            name, _, data = piece.document or ("", "", b"")
            parts += [piece.text, name, data.decode("latin-1")]
        return identity("lead", *parts)


@dataclass(frozen=True, slots=True)
class Whole:
    """A content to be shown in full: its HTML, and its name where it goes as a file."""

    html: str
    title: str
    file_name: str


def fitted(head: str, whole: Whole, foot: str) -> View:
    """The whole content in one message with its head and foot, or before it."""
    together = f"{head}\n\n{whole.html}\n\n{foot}"
    if visible_units(together) <= TEXT_UNITS_MAX:
        return View(Content(together))
    pieces = split_html(whole.html, TEXT_UNITS_MAX - PIECE_HEAD_UNITS)
    if len(pieces) <= PIECES_MAX:
        lead = tuple(
            Content(f"<i>{whole.title} · part {number} of {len(pieces)}</i>\n\n{piece}")
            for number, piece in enumerate(pieces, 1)
        )
        where = f"The whole text stands above, in {len(pieces)} parts."
    else:
        lead = (as_file(whole.title, whole.file_name, plain(whole.html)),)
        where = f"The whole text is in the file above, {whole.file_name}."
    return View(Content(f"{head}\n\n{preview(whole.html)}\n<i>{where}</i>\n\n{foot}"), lead)


def shortened(head: str, html: str, foot: str) -> View:
    """A content that needs no decision any more: in full where it fits, else its beginning."""
    together = f"{head}\n\n{html}\n\n{foot}"
    if visible_units(together) <= TEXT_UNITS_MAX:
        return View(Content(together))
    return View(Content(f"{head}\n\n{preview(html)}\n\n{foot}"))


def in_pieces(html: str) -> View:
    """A fixed text: all of it, in order, in as many messages as it needs."""
    pieces = split_html(html) or ["…"]
    return View(Content(pieces[-1]), tuple(Content(piece) for piece in pieces[:-1]))


def as_file(caption: str, file_name: str, body: str) -> Content:
    """A text as a document."""
    assert visible_units(caption) <= CAPTION_UNITS_MAX  # noqa: S101 - captions are ours and short
    return Content(caption, document=(file_name, "text/markdown", body.encode("utf-8", "replace")))


def preview(html: str) -> str:
    """The beginning of a content."""
    if visible_units(html) <= PREVIEW_UNITS:
        return html
    pieces = split_html(html, PREVIEW_UNITS)
    return f"{pieces[0].rstrip()} …" if pieces else "…"


def visible_units(html: str) -> int:
    """The length that Telegram counts."""
    return units(plain(html))


def with_note(content: Content, note: str) -> Content:
    """The content with a line below it, if that fits."""
    limit = TEXT_UNITS_MAX if content.document is None else CAPTION_UNITS_MAX
    text = f"{content.text}\n\n<i>{note}</i>"
    return replace(content, text=text) if visible_units(text) <= limit else content
