"""What a source is: its content decides, its name and declared type may only agree.

`detect` reads the bytes first. A name or content type that contradicts them is refused rather
than overruled, because one of the two was made to mislead or was a mistake; only within the family
of plain texts does a name choose (a `.md` and a `.txt` look alike).
"""

from __future__ import annotations

import io
import re
import zipfile
from typing import NamedTuple

from connectors.errors import EncryptedSource, UnsupportedSource
from connectors.sources.names import suffix_of
from connectors.sources.text import Format

SUPPORTED = "plain text, Markdown, HTML, WebVTT, SRT, PDF and Word (.docx)"

SPOKEN: dict[Format, str] = {
    "text": "plain text",
    "markdown": "Markdown",
    "html": "an HTML page",
    "vtt": "a WebVTT transcript",
    "srt": "an SRT transcript",
    "pdf": "a PDF document",
    "docx": "a Word document",
}

_MAGICS: tuple[tuple[int, bytes, str], ...] = (
    (0, b"\x89PNG\r\n\x1a\n", "a PNG picture"),
    (0, b"\xff\xd8\xff", "a JPEG picture"),
    (0, b"GIF87a", "a GIF picture"),
    (0, b"GIF89a", "a GIF picture"),
    (0, b"II*\x00", "a TIFF picture"),
    (0, b"MM\x00*", "a TIFF picture"),
    (0, b"8BPS", "a Photoshop picture"),
    (8, b"WEBP", "a WebP picture"),
    (8, b"WAVE", "a WAV recording"),
    (8, b"AVI ", "an AVI video"),
    (4, b"ftyp", "an MP4 or HEIC file"),
    (0, b"\x1aE\xdf\xa3", "a Matroska or WebM video"),
    (0, b"ID3", "an MP3 recording"),
    (0, b"OggS", "an Ogg recording"),
    (0, b"fLaC", "a FLAC recording"),
    (0, b"MZ", "a Windows program"),
    (0, b"\x7fELF", "a Linux program"),
    (0, b"\xcf\xfa\xed\xfe", "a macOS program"),
    (0, b"\xca\xfe\xba\xbe", "a Java class or macOS program"),
    (0, b"\x00asm", "a WebAssembly program"),
    (0, b"\x1f\x8b", "a gzip archive"),
    (0, b"BZh", "a bzip2 archive"),
    (0, b"\xfd7zXZ\x00", "an xz archive"),
    (0, b"(\xb5/\xfd", "a Zstandard archive"),
    (0, b"7z\xbc\xaf'\x1c", "a 7-Zip archive"),
    (0, b"Rar!\x1a\x07", "a RAR archive"),
    (257, b"ustar", "a tar archive"),
    (0, b"SQLite format 3\x00", "an SQLite database"),
    (0, b"{\\rtf", "an RTF document"),
    (0, b"%!PS", "a PostScript document"),
    (0, b"wOFF", "a font"),
    (0, b"wOF2", "a font"),
)
_TEXTUAL_MAGICS = frozenset({b"MZ", b"BZh", b"ID3", b"8BPS", b"II*\x00", b"MM\x00*"})
"""Short magics that a sentence could begin with count only if binary bytes follow."""

_MP3_FRAME = re.compile(rb"\A\xff[\xe2\xe3\xf2\xf3\xfa\xfb]")
_CONTROL_OR_HIGH = re.compile(rb"[\x00-\x08\x0e-\x1a\x7f-\xff]")
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_ENCRYPTED_OOXML = "EncryptedPackage".encode("utf-16-le")
_ZIPS = (b"PK\x03\x04", b"PK\x05\x06")
PDF_HEADER_WITHIN = 1024
"""Readers accept junk before `%PDF-`, as old specifications allowed."""

_SUFFIXES: dict[str, Format] = {
    "txt": "text",
    "text": "text",
    "log": "text",
    "csv": "text",
    "md": "markdown",
    "markdown": "markdown",
    "mdown": "markdown",
    "html": "html",
    "htm": "html",
    "xhtml": "html",
    "vtt": "vtt",
    "srt": "srt",
    "pdf": "pdf",
    "docx": "docx",
}
_BINARY_SUFFIXES = frozenset(
    [
        "png",
        "jpg",
        "jpeg",
        "gif",
        "bmp",
        "tif",
        "tiff",
        "webp",
        "heic",
        "ico",
        "psd",
        "svgz",
        "mp3",
        "m4a",
        "wav",
        "ogg",
        "oga",
        "opus",
        "flac",
        "mp4",
        "mov",
        "avi",
        "mkv",
        "webm",
        "exe",
        "dll",
        "msi",
        "apk",
        "jar",
        "so",
        "bin",
        "iso",
        "dmg",
        "zip",
        "rar",
        "7z",
        "gz",
        "bz2",
        "xz",
        "tar",
        "tgz",
        "zst",
        "doc",
        "xls",
        "xlsx",
        "ppt",
        "pptx",
        "odt",
        "ods",
        "odp",
        "rtf",
        "epub",
        "sqlite",
        "db",
        "class",
        "wasm",
        "ttf",
        "otf",
        "woff",
        "woff2",
    ]
)
_TYPES: dict[str, Format] = {
    "text/markdown": "markdown",
    "text/x-markdown": "markdown",
    "text/html": "html",
    "application/xhtml+xml": "html",
    "text/vtt": "vtt",
    "application/x-subrip": "srt",
    "text/srt": "srt",
    "application/pdf": "pdf",
    "application/x-pdf": "pdf",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "docx",
}
_BINARY_TYPES = (
    "image/",
    "audio/",
    "video/",
    "font/",
    "application/zip",
    "application/gzip",
    "application/vnd.",
    "application/msword",
)
_TEXTS: frozenset[Format] = frozenset({"text", "markdown", "html", "vtt", "srt"})
_CUED: frozenset[Format] = frozenset({"vtt", "srt"})

_HTML = re.compile(
    r"\A\s*(?:<\?xml[^>]{0,200}\?>\s*)?"
    r"(?:<!--(?:(?!-->).){0,4000}-->\s*)*<(?:!doctype\s+html|html|head|body)\b",
    re.IGNORECASE | re.DOTALL,
)
_VTT = re.compile(r"\AWEBVTT(?:[ \t\n\r]|\Z)")
_SRT = re.compile(
    r"\A\s*\d{1,9}[ \t]*\r?\n\d{1,4}:\d\d:\d\d[,.]\d{1,3}"
    r"[ \t]*-->[ \t]*\d{1,4}:\d\d:\d\d[,.]\d{1,3}"
)


class Declared(NamedTuple):
    """What the name or the content type says: a format, or the name of something unread."""

    form: Format | None
    words: str


def media_type(content_type: str | None) -> str:
    """The bare type of a Content-Type value."""
    return (content_type or "").partition(";")[0].strip().lower()


def declared(name: str | None, content_type: str | None) -> Declared:
    """A content type that names a supported format speaks first, then the name's ending.

    Any other type counts only without a known ending: chat clients take types from their system's
    tables, where a Markdown file may be a game cartridge.
    """
    bare = media_type(content_type)
    if bare in _TYPES:
        return Declared(_TYPES[bare], SPOKEN[_TYPES[bare]])
    suffix = suffix_of(name)
    if suffix in _SUFFIXES:
        return Declared(_SUFFIXES[suffix], SPOKEN[_SUFFIXES[suffix]])
    if suffix in _BINARY_SUFFIXES:
        return Declared(None, f".{suffix}")
    if bare.startswith(_BINARY_TYPES):
        return Declared(None, bare[:80])
    return Declared(None, "")


def refuse(name: str, looks_like: str, said: Declared) -> UnsupportedSource:
    """The refusal; it names both sides where name and content contradict each other."""
    contradicts = said.form is not None or looks_like in SPOKEN.values()
    return UnsupportedSource(
        name=name,
        looks_like=looks_like,
        declared=said.words if contradicts else "",
        supported=SUPPORTED,
    )


def binary_form(raw: bytes, name: str, said: Declared) -> Format | None:
    """PDF or Word, None for what can only be text; raises for everything else by its magic."""
    if b"%PDF-" in raw[:PDF_HEADER_WITHIN] and not _is_html_bytes(raw):
        return "pdf"
    if raw.startswith(_ZIPS):
        kind = _zip_kind(raw)
        if kind is None:
            return "docx"
        raise refuse(name, kind, said)
    if raw.startswith(_OLE):
        if _ENCRYPTED_OOXML in raw:
            raise EncryptedSource(name=name, format="an Office document")
        raise refuse(name, "an old Office document (.doc, .xls, .ppt)", said)
    for offset, magic, looks_like in _MAGICS:
        if raw[offset : offset + len(magic)] == magic and (
            magic not in _TEXTUAL_MAGICS or _has_binary(raw[:512])
        ):
            raise refuse(name, looks_like, said)
    if _MP3_FRAME.match(raw) and not raw.startswith(b"\xff\xfe"):
        raise refuse(name, "an MP3 recording", said)
    return None


def _is_html_bytes(raw: bytes) -> bool:
    return _HTML.match(raw[:PDF_HEADER_WITHIN].decode("latin-1")) is not None


def _has_binary(head: bytes) -> bool:
    return _CONTROL_OR_HIGH.search(head) is not None


def _zip_kind(raw: bytes) -> str | None:
    """None for a Word document, else what the archive looks like. Reads only its directory."""
    try:
        with zipfile.ZipFile(io.BytesIO(raw)) as archive:
            names = set(archive.namelist())
    except (zipfile.BadZipFile, ValueError, OSError, RuntimeError, NotImplementedError):
        return "a damaged zip archive"
    if "word/document.xml" in names or ("[Content_Types].xml" in names and _has_word(names)):
        return None
    for part, kind in (
        ("xl/workbook.xml", "an Excel workbook"),
        ("ppt/presentation.xml", "a PowerPoint presentation"),
        ("META-INF/container.xml", "an EPUB book"),
        ("content.xml", "an OpenDocument file"),
        ("META-INF/MANIFEST.MF", "a Java archive"),
    ):
        if part in names:
            return kind
    return "a zip archive"


def _has_word(names: set[str]) -> bool:
    return any(name.startswith("word/") for name in names)


def text_form(text: str, name: str, said: Declared) -> Format:
    """Which kind of text this is; raises UnsupportedSource where its name contradicts it."""
    found: Format = "text"
    if _VTT.match(text):
        found = "vtt"
    elif _SRT.match(text[:4096]):
        found = "srt"
    elif _HTML.match(text[: 64 * 1024]):
        found = "html"
    if said.form is None:
        if said.words:
            raise refuse(name, SPOKEN[found], said)
        return found
    if said.form not in _TEXTS or (said.form in _CUED and found not in _CUED):
        raise refuse(name, SPOKEN[found], said)
    if found == "text" and said.form not in _CUED:
        return said.form
    return found


def agreed(found: Format, name: str, said: Declared) -> Format:
    """A binary format that nothing contradicts."""
    if said.form == found or (said.form is None and not said.words):
        return found
    raise refuse(name, SPOKEN[found], said)
