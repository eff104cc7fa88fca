"""Measuring bytes as they go by: digests, character and line counts, and a preview.

Keeps INV-10's digests. Bytes come in pieces of any size; what is measured does not depend on how
they were cut. A preview never splits a character and never invents: what is not text has no
preview but its size.
"""

from __future__ import annotations

import codecs
import hashlib
from typing import Final

from runtime.domain.artifact import CHUNK_BYTES, PREVIEW_CHARS, Measures
from runtime.domain.values import sha256

CONTINUATION: Final = bytes(range(0x80, 0xC0))
"""UTF-8 bytes that do not begin a character."""


class Measuring:
    """Feed it pieces in order, then ask for the measures once."""

    def __init__(self, content_type: str, *, text: bool) -> None:
        self.bytes = 0
        self._content_type = content_type
        self._text = text
        self._whole = hashlib.sha256()
        self._open = bytearray()
        self._chunks: list[str] = []
        self._chars = 0
        self._lines = 0
        self._ended = True
        self._chunk_chars: list[int] = []
        self._chunk_lines: list[int] = []
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._head = ""
        self._rest = ""
        """The newest characters after the head, at most the preview's length."""

    def feed(self, piece: bytes) -> None:
        """The next bytes."""
        self.bytes += len(piece)
        self._whole.update(piece)
        self._open += piece
        while len(self._open) >= CHUNK_BYTES:
            self._close(bytes(self._open[:CHUNK_BYTES]), final=False)
            del self._open[:CHUNK_BYTES]

    def done(self) -> Measures:
        """What was found in all of it."""
        self._close(bytes(self._open), final=True)
        digest = self._whole.hexdigest()
        chunks = tuple(self._chunks)
        if not self._text:
            note = f"[{self.bytes} bytes of {self._content_type}, not shown]"
            return Measures(bytes=self.bytes, sha256=digest, chunks=chunks, head=note)
        return Measures(
            bytes=self.bytes,
            sha256=digest,
            chunks=chunks,
            chars=self._chars,
            lines=self._lines + (not self._ended),
            chunk_chars=tuple(self._chunk_chars),
            chunk_lines=tuple(self._chunk_lines),
            head=self._head,
            tail=self._rest,
        )

    def _close(self, chunk: bytes, *, final: bool) -> None:
        if chunk:
            self._chunks.append(sha256(chunk))
        if not self._text:
            return
        if chunk:
            self._chunk_chars.append(self._chars)
            self._chunk_lines.append(self._lines)
            self._chars += len(chunk.translate(None, CONTINUATION))
            self._lines += chunk.count(b"\n")
            self._ended = chunk.endswith(b"\n")
        try:
            decoded = self._decoder.decode(chunk, final)
        except UnicodeDecodeError:
            self._text = False
            return
        missing = PREVIEW_CHARS - len(self._head)
        self._head += decoded[:missing]
        self._rest = (self._rest + decoded[missing:])[-PREVIEW_CHARS:]
