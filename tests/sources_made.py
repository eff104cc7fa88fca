"""Real sources, made from texts that ship with Python and with a dependency.

Nothing here is invented prose: the changelog is pydantic's own, as its package metadata carries
it; the speech and the pages are Python's language reference (`pydoc_data.topics`). Each function
gives the same bytes on every call and machine with the same lock file.
"""

from __future__ import annotations

import io
import re
import zipfile
from datetime import UTC, datetime
from functools import cache
from importlib import metadata

CHANGELOG_BYTES_MIN = 100_000
SPEECH_SECONDS_MIN = 3_600
PAGES_MIN = 20
PASSWORD = "swordfish"
_MADE = datetime(2026, 1, 1, tzinfo=UTC)
_ZIP_TIME = (2026, 1, 1, 0, 0, 0)
_WORDS_PER_MINUTE = 150
_CUE_WORDS = 12
_TOPICS = (
    *("assignment", "class", "function", "naming", "execmodel", "try", "with", "import"),
    *("objects", "types", "specialnames", "attribute-access", "callable-types"),
    *("context-managers", "exceptions", "integers", "numbers", "sequence-types", "strings"),
    *("formatstrings", "typesmapping", "typesseq", "debugger"),
)


def prose() -> list[str]:
    """Paragraphs of Python's language reference, each as one line of plain sentences."""
    from pydoc_data.topics import topics

    paragraphs: list[str] = []
    for topic in _TOPICS:
        text = topics.get(topic, "")
        for block in re.split(r"\n\s*\n", text):
            line = " ".join(re.sub(r"[*\"`]|\[\d+\]", "", block).split())
            # Grammar productions, code and underlined headings are no prose.
            if len(line) >= 80 and line.endswith(".") and "::=" not in line and ">>>" not in line:
                paragraphs.append(line)
    assert len(paragraphs) > 200, "this Python ships other texts than expected"
    return paragraphs


@cache
def long_changelog() -> bytes:
    """Pydantic's real changelog in Markdown, at least 100 KB."""
    whole = metadata.distribution("pydantic").read_text("METADATA")
    assert whole is not None
    start = whole.index("## Changelog")
    raw = whole[start:].replace("## Changelog", "# Changelog", 1).encode("utf-8")
    assert len(raw) >= CHANGELOG_BYTES_MIN
    return raw


def _clock(ms: int, point: str = ".") -> str:
    seconds, rest = divmod(ms, 1000)
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}{point}{rest:03}"


def _cues() -> list[tuple[int, int, str | None, str]]:
    """More than an hour of two people who read to each other, in captions of twelve words."""
    cues: list[tuple[int, int, str | None, str]] = []
    now = 1_000
    for turn, paragraph in enumerate(prose()):
        words = paragraph.split()
        for at in range(0, len(words), _CUE_WORDS):
            piece = words[at : at + _CUE_WORDS]
            end = now + len(piece) * 60_000 // _WORDS_PER_MINUTE
            speaker = ("Ana Lima", "Bo Chen")[turn % 2] if at == 0 else None
            cues.append((now, end, speaker, " ".join(piece)))
            now = end
        now += 500
        if now > (SPEECH_SECONDS_MIN + 300) * 1000:
            break
    assert now >= SPEECH_SECONDS_MIN * 1000
    return cues


@cache
def hour_of_speech_vtt() -> bytes:
    """A WebVTT transcript of more than an hour, with voices, a style and a comment."""
    lines = ["WEBVTT - a reading", "", "STYLE", "::cue { color: white }", "", "NOTE made", ""]
    for index, (start, end, speaker, text) in enumerate(_cues(), start=1):
        escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        voice = f"<v {speaker}>" if speaker else ""
        lines += [str(index), f"{_clock(start)} --> {_clock(end)} align:start", voice + escaped, ""]
    return "\n".join(lines).encode("utf-8")


@cache
def hour_of_speech_srt() -> bytes:
    """The same speech as SRT, with Windows line ends."""
    lines: list[str] = []
    for index, (start, end, speaker, text) in enumerate(_cues(), start=1):
        said = f"{speaker}: {text}" if speaker else text
        lines += [str(index), f"{_clock(start, ',')} --> {_clock(end, ',')}", said, ""]
    return "\r\n".join(lines).encode("utf-8")


def _pdf(paragraphs: list[str], password: str | None = None) -> bytes:
    from fpdf import FPDF

    pdf = FPDF(format="A4")
    pdf.set_creation_date(_MADE)
    pdf.set_title("Python, read aloud")
    pdf.set_font("Helvetica", size=12)
    pdf.add_page()
    for paragraph in paragraphs:
        printable = paragraph.encode("latin-1", "replace").decode("latin-1")
        pdf.multi_cell(0, 7, printable, align="L", new_x="LMARGIN", new_y="NEXT")
        pdf.ln(4)
    if password is not None:
        pdf.set_encryption(owner_password=password, user_password=password)
    return bytes(pdf.output())


@cache
def twenty_page_pdf() -> bytes:
    """A typeset PDF of at least twenty pages."""
    return _pdf(prose()[:240])


@cache
def encrypted_pdf() -> bytes:
    """A PDF that opens only with `PASSWORD`."""
    return _pdf(prose()[:3], PASSWORD)


@cache
def scanned_pdf() -> bytes:
    """A PDF of two pages with lines drawn on them and no text."""
    from fpdf import FPDF

    pdf = FPDF(format="A4")
    pdf.set_creation_date(_MADE)
    for _ in range(2):
        pdf.add_page()
        pdf.line(10, 10, 100, 100)
    return bytes(pdf.output())


@cache
def small_docx() -> bytes:
    """A Word document with a title, headings, a list, a table and prose."""
    from docx import Document

    document = Document()
    document.core_properties.created = _MADE
    document.core_properties.modified = _MADE
    document.add_heading("Spring launch", level=1)
    for paragraph in prose()[:4]:
        document.add_paragraph(paragraph)
    document.add_heading("What counts", level=2)
    for item in ("Names are bound once.", "Scopes are static.", "Blocks have an end."):
        document.add_paragraph(item, style="List Bullet")
    table = document.add_table(rows=2, cols=2)
    for row, cells in enumerate((("Date", "Channel"), ("Friday", "Newsletter"))):
        for column, cell in enumerate(cells):
            table.cell(row, column).text = cell
    out = io.BytesIO()
    document.save(out)
    return _rezipped(out.getvalue())


def _rezipped(raw: bytes) -> bytes:
    """The same archive with a fixed time on each part: python-docx writes the current one."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(raw)) as old, zipfile.ZipFile(out, "w") as new:
        for name in old.namelist():
            _add(new, name, old.read(name))
    return out.getvalue()


def _add(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    entry = zipfile.ZipInfo(name, _ZIP_TIME)
    entry.compress_type = zipfile.ZIP_DEFLATED
    archive.writestr(entry, content)


def docx_of(body: bytes, extra: dict[str, bytes] | None = None) -> bytes:
    """The smallest Word archive around a `word/document.xml`."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        _add(archive, "[Content_Types].xml", b"<Types/>")
        _add(archive, "word/document.xml", body)
        for name, content in (extra or {}).items():
            _add(archive, name, content)
    return out.getvalue()


@cache
def zip_bomb_docx() -> bytes:
    """A Word file of less than hundred kilobytes that unpacks to 80 MiB."""
    return docx_of(b"<w:document/>", {"word/media/big.xml": b"\x00" * (80 * 1024 * 1024)})
