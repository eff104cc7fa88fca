"""From a payload to the bytes of its pack: the same bytes on every machine, for ever.

The archive is written here, byte by byte, and nothing is compressed: deflate's output differs
between versions of zlib, and `zipfile` is free to change its header fields between versions of
Python, while a stored archive with fixed fields has one form. Packs are small text, so that costs
little. Entries are in the order of their names; times are the earliest that the format can say;
attributes are a plain file's.
"""

from __future__ import annotations

import struct
import zlib
from typing import Final

from connectors.content_pack.payload import PackPayload
from runtime.domain.canonical import canonical_bytes
from runtime.domain.effect import Command
from runtime.domain.values import sha256

DRAFT_TEXT: Final = "draft.md"
DRAFT_DATA: Final = "draft.json"
SOURCES: Final = "sources.json"
MANIFEST: Final = "manifest.json"

VERSION: Final = 20
STORED: Final = 0
DOS_TIME: Final = 0
DOS_DATE: Final = 1 << 5 | 1  # 1980-01-01
MADE_ON_UNIX: Final = 3 << 8 | VERSION
PLAIN_FILE: Final = 0o100644 << 16


def entries(command: Command, payload: PackPayload) -> dict[str, bytes]:
    """The files of a pack by name, in the order in which they are packed."""
    files = {
        DRAFT_DATA: _json(
            {
                "title": payload.title,
                "sections": [section.model_dump(mode="json") for section in payload.sections],
            }
        ),
        DRAFT_TEXT: draft_text(payload).encode(),
        SOURCES: _json(_sources(payload)),
    }
    files[MANIFEST] = _json(_manifest(command, payload, files))
    return dict(sorted(files.items()))


def pack_bytes(files: dict[str, bytes]) -> bytes:
    """One stored archive."""
    body = bytearray()
    directory = bytearray()
    for name, data in files.items():
        encoded = name.encode("ascii")
        common = struct.pack(
            "<5H3L2H",
            *(VERSION, 0, STORED, DOS_TIME, DOS_DATE),
            *(zlib.crc32(data), len(data), len(data)),
            *(len(encoded), 0),
        )
        directory += struct.pack("<4sH", b"PK\x01\x02", MADE_ON_UNIX) + common
        directory += struct.pack("<3H2L", 0, 0, 0, PLAIN_FILE, len(body)) + encoded
        body += b"PK\x03\x04" + common + encoded + data
    count = len(files)
    end = struct.pack("<4H2LH", 0, 0, count, count, len(directory), len(body), 0)
    return bytes(body + directory + b"PK\x05\x06" + end)


def draft_text(payload: PackPayload) -> str:
    """The draft as Markdown. Texts stand in it exactly as they were approved."""
    parts = [f"# {_line(payload.title)}"]
    for section in payload.sections:
        parts.extend([f"## {_line(section.heading)}"] if section.heading.strip() else [])
        parts.append(section.text)
    return "\n\n".join(parts) + "\n"


def _line(text: str) -> str:
    """A heading is one line, or it would be another structure than the approved one."""
    return " ".join(text.split())


def _sources(payload: PackPayload) -> object:
    return {
        "source": payload.source.model_dump(mode="json"),
        "quotes": [
            {**quote.model_dump(mode="json"), "sha256": sha256(quote.text.encode())}
            for quote in payload.quotes
        ],
        "quotes_omitted": payload.quotes_omitted,
    }


def _manifest(command: Command, payload: PackPayload, files: dict[str, bytes]) -> object:
    return {
        "format": payload.format,
        "workspace": payload.workspace,
        "brand": payload.brand,
        "job": payload.job,
        "job_number": payload.job_number,
        "title": payload.title,
        "effect": command.terms.effect,
        "command": command.id,
        "terms_sha256": command.terms_digest,
        "payload_sha256": sha256(command.terms.payload.encode()),
        "revisions": [revision.model_dump(mode="json") for revision in payload.revisions],
        "source": payload.source.model_dump(mode="json"),
        "entries": [
            {"name": name, "bytes": len(data), "sha256": sha256(data)}
            for name, data in sorted(files.items())
        ],
    }


def _json(value: object) -> bytes:
    return canonical_bytes(value) + b"\n"
