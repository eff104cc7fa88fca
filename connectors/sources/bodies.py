"""Reading an answer's body within a limit that holds before and after unpacking.

Unpacking happens here and not in the HTTP client, because the client unpacks a whole piece at
once: 64 KiB of gzip can be 64 MiB of text. Here no step yields more than the limit leaves.
"""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator

from connectors.errors import LinkUnreachable, SourceExploded, SourceTooLarge

ACCEPTED_ENCODINGS = "gzip"
_EITHER_WRAPPER = 32 + zlib.MAX_WBITS
"""zlib's own way to say: gzip or zlib header, found out by looking."""
_STEP_BYTES = 256 * 1024
_PLAIN = frozenset({"", "identity"})
_PACKED = frozenset({"gzip", "x-gzip", "deflate"})


async def read_body(
    raw: AsyncIterator[bytes], encoding: str, *, name: str, shown: str, limit: int
) -> bytes:
    """The unpacked body; raises SourceTooLarge, SourceExploded or LinkUnreachable."""
    coded = encoding.strip().lower()
    if coded not in _PLAIN | _PACKED:
        raise LinkUnreachable(link=shown, reason="the answer is packed in a way I do not read")
    unpacker = _Unpacker(limit) if coded in _PACKED else None
    plain = bytearray()
    received = 0
    async for piece in raw:
        received += len(piece)
        if received > limit:
            raise SourceTooLarge(name=name, found=received, limit=limit, unit="bytes")
        if unpacker is None:
            plain += piece
            continue
        try:
            unpacker.feed(piece)
        except zlib.error:
            raise LinkUnreachable(link=shown, reason="the packed answer is damaged") from None
        if len(unpacker.out) > limit:
            raise SourceExploded(name=name, what="unpacked bytes", limit=limit)
    if unpacker is None:
        return bytes(plain)
    if not unpacker.whole:
        raise LinkUnreachable(link=shown, reason="the packed answer ended early")
    return bytes(unpacker.out)


class _Unpacker:
    """Unpacks piece by piece; stops as soon as `out` is above the limit, one step at most."""

    def __init__(self, limit: int) -> None:
        self.out = bytearray()
        self._limit = limit
        self._member = zlib.decompressobj(_EITHER_WRAPPER)
        self._fed = False

    @property
    def whole(self) -> bool:
        """Whether the last member ended, so that nothing is missing."""
        return self._member.eof or not self._fed

    def feed(self, piece: bytes) -> None:
        """Unpack one piece; a gzip answer may be several members in a row."""
        waiting = piece
        while waiting and len(self.out) <= self._limit:
            self._fed = True
            if self._member.eof:
                self._member = zlib.decompressobj(_EITHER_WRAPPER)
            self.out += self._member.decompress(waiting, _STEP_BYTES)
            waiting = self._member.unconsumed_tail or self._member.unused_data
