"""A second look at a pack, by another path than the one that wrote it.

The archive is parsed by the standard library, each checksum and digest is computed again, and the
contents are compared with the approved payload as plain JSON, beside what the pack should be byte
for byte. What differs is named, so that a person knows where to look.
"""

from __future__ import annotations

import io
import json
import struct
import zipfile
from collections.abc import Iterator
from typing import Any, Final

from connectors.content_pack.pack import DRAFT_DATA, DRAFT_TEXT, MANIFEST, SOURCES, pack_bytes
from runtime.domain.values import sha256

DIFFERENCES_MAX: Final = 6


def differences(data: bytes, expected: dict[str, bytes], payload: str) -> list[str]:
    """What differs between the bytes of a pack and what was approved; empty if nothing does."""
    found: list[str] = []
    for difference in _differences(data, expected, payload):
        found.append(difference)
        if len(found) == DIFFERENCES_MAX:
            break
    return found


def _differences(data: bytes, expected: dict[str, bytes], payload: str) -> Iterator[str]:
    whole = pack_bytes(expected)
    if len(data) != len(whole):
        yield f"it has {len(data):,} bytes instead of {len(whole):,}"
    approved = json.loads(payload)
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            yield from _in_archive(archive, expected, approved)
    except (zipfile.BadZipFile, NotImplementedError, ValueError, OSError, struct.error):
        yield "it is not a whole archive"
        return
    if data != whole:
        yield f"its bytes differ from byte {_first(data, whole):,} on"


def _in_archive(
    archive: zipfile.ZipFile, expected: dict[str, bytes], approved: dict[str, Any]
) -> Iterator[str]:
    names = archive.namelist()
    yield from (f"{name[:100]!r} does not belong to it" for name in names if name not in expected)
    yield from (f"{name} is in it twice" for name in expected if names.count(name) > 1)
    read: dict[str, bytes] = {}
    for name, content in expected.items():
        if name not in names:
            yield f"{name} is missing"
            continue
        if archive.getinfo(name).compress_type != zipfile.ZIP_STORED:
            # Never unpacked: a pack holds none, and a small one could unpack to anything.
            yield f"{name} is compressed"
            continue
        if archive.getinfo(name).file_size != len(content):
            size = archive.getinfo(name).file_size
            yield f"{name} has {size:,} bytes instead of {len(content):,}"
            continue
        try:
            read[name] = archive.read(name)
        except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError):
            yield f"{name} is damaged: its checksum or form is wrong"
            continue
        if read[name] != content:
            yield f"{name} differs from what was approved, from byte {_first(read[name], content)}"
    if read.keys() == expected.keys() and all(read[name] == expected[name] for name in read):
        yield from _against_approved(read, approved)


def _against_approved(read: dict[str, bytes], approved: dict[str, Any]) -> Iterator[str]:
    """The contents against the approved payload itself, without the code that packed them."""
    draft = json.loads(read[DRAFT_DATA])
    if draft != {"title": approved["title"], "sections": approved["sections"]}:
        yield f"{DRAFT_DATA} is not the approved draft"
    text, position = read[DRAFT_TEXT].decode(), 0
    for section in approved["sections"]:
        position = text.find(section["text"], position)
        if position < 0:
            yield f"{DRAFT_TEXT} lacks an approved text"
            break
        position += len(section["text"])
    sources = json.loads(read[SOURCES])
    for shown, quote in zip(sources["quotes"], approved["quotes"], strict=True):
        if shown != {**quote, "sha256": sha256(quote["text"].encode())}:
            yield f"{SOURCES}: quote {quote['id']} is not the approved one"
    listed = {entry["name"]: entry["sha256"] for entry in json.loads(read[MANIFEST])["entries"]}
    if listed != {name: sha256(data) for name, data in read.items() if name != MANIFEST}:
        yield f"{MANIFEST} lists other digests than its entries have"


def _first(data: bytes, expected: bytes) -> int:
    """Where two byte strings begin to differ."""
    for index, (one, other) in enumerate(zip(data, expected, strict=False)):
        if one != other:
            return index
    return min(len(data), len(expected))
