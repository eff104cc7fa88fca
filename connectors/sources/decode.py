"""Bytes to characters, without guessing.

A byte order mark decides; then an encoding that the transport or the HTML page states; then UTF-8.
What does not fit is refused with the position of the first wrong byte. Eight-bit encodings accept
nearly anything, so a guess would turn a damaged file into plausible wrong words; only a *stated*
one is used, and a note says so.
"""

from __future__ import annotations

import codecs
import re
from typing import NamedTuple

from connectors.errors import SourceUndecodable, UnsupportedSource
from connectors.sources.detect import Declared, media_type, refuse

_BOMS: tuple[tuple[bytes, str, str], ...] = (
    # UTF-32 first: its little-endian mark begins with that of UTF-16.
    (codecs.BOM_UTF32_LE, "utf-32-le", "UTF-32"),
    (codecs.BOM_UTF32_BE, "utf-32-be", "UTF-32"),
    (codecs.BOM_UTF8, "utf-8", "UTF-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le", "UTF-16"),
    (codecs.BOM_UTF16_BE, "utf-16-be", "UTF-16"),
)
_STATED: dict[str, str] = {
    # Browsers read Latin-1 and ASCII as Windows-1252; pages are written for them.
    **dict.fromkeys(("iso-8859-1", "latin1", "us-ascii", "ascii", "windows-1252"), "cp1252"),
    **{f"windows-125{n}": f"cp125{n}" for n in (0, 1, 3, 4, 5, 6, 7, 8)},
    **{f"iso-8859-{n}": f"iso8859-{n}" for n in (2, 3, 4, 5, 6, 7, 8, 9, 10, 13, 14, 15, 16)},
    **{c: c for c in ("koi8-r", "koi8-u", "shift_jis", "euc-jp", "euc-kr", "gb18030", "big5")},
    "gbk": "gb18030",
    "gb2312": "gb18030",
    "utf-8": "utf-8",
    "utf8": "utf-8",
}
_META = re.compile(
    rb"<meta[^>]{0,200}charset\s*=\s*[\"']?\s*([A-Za-z0-9_.:-]{1,40})", re.IGNORECASE
)
META_WITHIN = 4096
_CHARSET = re.compile(r"charset\s*=\s*[\"']?([A-Za-z0-9_.:-]{1,40})", re.IGNORECASE)


class Decoded(NamedTuple):
    """The characters and a note if the encoding was not simply UTF-8."""

    text: str
    note: str | None


def decode(raw: bytes, name: str, said: Declared, content_type: str | None) -> Decoded:
    """Raises SourceUndecodable, or UnsupportedSource where the bytes are no text at all."""
    for mark, codec, spoken in _BOMS:
        if raw.startswith(mark):
            text = _strict(raw[len(mark) :], codec, name, skipped=len(mark), spoken=spoken)
            return Decoded(text, None if codec == "utf-8" else f"Read as {spoken}.")
    if b"\x00" in raw:
        # No text has NUL bytes; UTF-16 without its mark would, and is not guessed.
        raise _binary(raw, name, said)
    stated = _stated(raw, content_type)
    if stated is None or stated == "utf-8":
        return Decoded(_strict(raw, "utf-8", name, skipped=0, spoken="UTF-8"), None)
    text = _strict(raw, stated, name, skipped=0, spoken=stated)
    return Decoded(text, f"Read as {stated}, the encoding that the source states.")


def _binary(raw: bytes, name: str, said: Declared) -> UnsupportedSource:
    even, odd = raw[0:4096:2].count(0), raw[1:4096:2].count(0)
    utf16 = max(even, odd) * 5 > min(len(raw), 4096) and min(even, odd) == 0
    return refuse(name, "UTF-16 without its byte order mark" if utf16 else "binary data", said)


def _stated(raw: bytes, content_type: str | None) -> str | None:
    found = _CHARSET.search(content_type or "")
    if found is not None:
        return _STATED.get(found.group(1).lower())
    if media_type(content_type) in {"", "text/html", "application/xhtml+xml"}:
        meta = _META.search(raw[:META_WITHIN])
        if meta is not None:
            return _STATED.get(meta.group(1).decode("ascii").lower())
    return None


def _strict(raw: bytes, codec: str, name: str, *, skipped: int, spoken: str) -> str:
    try:
        return raw.decode(codec, "strict")
    except UnicodeDecodeError as wrong:
        raise SourceUndecodable(name=name, encoding=spoken, offset=wrong.start + skipped) from None
