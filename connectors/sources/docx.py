"""A Word document: checked as a zip archive first, then read through the HTML reader.

A .docx is a zip file, so a small one can unpack to anything. The archive's directory is checked
(number of parts, total size, ratio), and then every part is really unpacked in small steps against
the same limits, because a directory can lie. Document type declarations are refused: Word writes
none, and XML bombs need them. Pictures and files outside the document are never opened.
"""

from __future__ import annotations

import io
import zipfile
import zlib

from connectors.errors import (
    ConversionFailed,
    EncryptedSource,
    NoTextInSource,
    SourceExploded,
)
from connectors.sources.detect import SPOKEN
from connectors.sources.html import read_html
from connectors.sources.limits import (
    DOCX_ENTRIES_MAX,
    DOCX_RATIO_FREE_BYTES,
    DOCX_RATIO_MAX,
    DOCX_UNPACKED_BYTES_MAX,
)
from connectors.sources.text import Extract

_STEP_BYTES = 64 * 1024
_ENCRYPTED_FLAG = 0x1
_DECLARATIONS = (b"<!DOCTYPE", b"<!ENTITY")


def read_docx(raw: bytes, name: str) -> Extract:
    """The document's text; raises SourceExploded, EncryptedSource, NoTextInSource."""
    import mammoth
    import mammoth.images

    try:
        with zipfile.ZipFile(io.BytesIO(raw)) as archive:
            check_directory(archive, name)
            check_contents(archive, name)
    except (zipfile.BadZipFile, zlib.error, EOFError):
        raise ConversionFailed(name=name, format=SPOKEN["docx"], cause="damaged archive") from None
    converted = mammoth.convert_to_html(
        io.BytesIO(raw),
        convert_image=lambda _image: [],
        external_file_access=False,
        include_embedded_style_map=False,
    )
    extract = read_html(converted.value, name)
    if not any(section.text.strip() for section in extract.sections):
        raise NoTextInSource(name=name, format=SPOKEN["docx"], pages=0)
    # A document's <main> or hidden elements do not exist: Word text cannot carry markup.
    return extract.model_copy(update={"title": None})


def check_directory(archive: zipfile.ZipFile, name: str) -> None:
    """Refuse by what the archive says of itself, before unpacking a byte."""
    entries = archive.infolist()
    if len(entries) > DOCX_ENTRIES_MAX:
        raise SourceExploded(name=name, what="the number of parts", limit=DOCX_ENTRIES_MAX)
    total = sum(entry.file_size for entry in entries)
    if total > DOCX_UNPACKED_BYTES_MAX:
        raise SourceExploded(name=name, what="unpacked bytes", limit=DOCX_UNPACKED_BYTES_MAX)
    for entry in entries:
        if entry.flag_bits & _ENCRYPTED_FLAG:
            raise EncryptedSource(name=name, format=SPOKEN["docx"])
        swollen = entry.file_size > DOCX_RATIO_FREE_BYTES
        if swollen and entry.file_size > entry.compress_size * DOCX_RATIO_MAX:
            raise SourceExploded(name=name, what="the packing ratio", limit=DOCX_RATIO_MAX)


def check_contents(archive: zipfile.ZipFile, name: str) -> None:
    """Unpack every part in small steps; what is counted here is what the reader will get."""
    total = 0
    for entry in archive.infolist():
        tail = b""
        with archive.open(entry) as part:
            while step := part.read(_STEP_BYTES):
                total += len(step)
                if total > DOCX_UNPACKED_BYTES_MAX:
                    raise SourceExploded(
                        name=name, what="unpacked bytes", limit=DOCX_UNPACKED_BYTES_MAX
                    )
                window = tail + step
                if _is_xml(entry.filename) and any(mark in window for mark in _DECLARATIONS):
                    raise ConversionFailed(
                        name=name, format=SPOKEN["docx"], cause="document type declaration"
                    )
                tail = step[-16:]


def _is_xml(filename: str) -> bool:
    return filename.endswith((".xml", ".rels"))
