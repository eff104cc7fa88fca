"""Files: how they are named, measured and kept.

Keeps: names on disk are made here; a sender's file name is only shown, reduced to its last part and
without control characters; a photo is one whose size can be read from its own bytes.
"""

from __future__ import annotations

import mimetypes
import re
import struct
from pathlib import PurePosixPath, PureWindowsPath

from bot.sandbox.errors import bad_request
from bot.sandbox.model import StoredFile
from bot.sandbox.params import Upload
from bot.sandbox.world import World

PHOTO_BYTES_MAX = 10 * 1024 * 1024
PHOTO_SIDES_MAX = 10_000
PHOTO_RATIO_MAX = 20
_SUFFIX = re.compile(r"\.[A-Za-z0-9]{1,10}")


def shown_name(name: str) -> str:
    """The last part of a sent file name."""
    last = PurePosixPath(PureWindowsPath(name).name).name
    cleaned = "".join(character for character in last if character.isprintable()).strip()
    return cleaned[:200] or "file"


def store_upload(world: World, upload: Upload, folder: str) -> StoredFile:
    """Keep the bytes, then the row."""
    number = world.count("files")
    name = shown_name(upload.name)
    suffix = PurePosixPath(name).suffix
    made = f"file_{number}{suffix if _SUFFIX.fullmatch(suffix) else ''}"
    mime = upload.mime_type
    if mime == "application/octet-stream":
        mime = mimetypes.guess_type(name)[0] or mime
    width, height = image_size(upload.content) if folder == "photos" else (0, 0)
    world.vault.put(made, upload.content)
    token = world.ids.token()
    return world.put(
        StoredFile(
            file_id=f"BQACAgIAAxk{token}{number}",
            unique_id=f"AgAD{number:08x}",
            path=f"{folder}/{made}",
            name=name,
            mime_type=mime,
            size=len(upload.content),
            width=width,
            height=height,
        )
    )


def usable_photo(media: Upload | StoredFile) -> None:
    """Refuse what Telegram would not take as a photo."""
    if isinstance(media, StoredFile):
        if not media.width:
            raise bad_request(detail="can't use file of type Document as Photo")
        return
    if len(media.content) > PHOTO_BYTES_MAX:
        raise bad_request(detail="file is too big for a photo; the maximum size is 10485760 bytes")
    width, height = image_size(media.content)
    if not width or not height:
        raise bad_request(detail="IMAGE_PROCESS_FAILED")
    if width + height > PHOTO_SIDES_MAX or max(width, height) > PHOTO_RATIO_MAX * min(
        width, height
    ):
        raise bad_request(detail="PHOTO_INVALID_DIMENSIONS")


def image_size(content: bytes) -> tuple[int, int]:
    """Width and height of a PNG, GIF, JPEG or WebP; zeros for anything else."""
    try:
        if content.startswith(b"\x89PNG\r\n\x1a\n"):
            width, height = struct.unpack(">II", content[16:24])
            return int(width), int(height)
        if content[:6] in {b"GIF87a", b"GIF89a"}:
            width, height = struct.unpack("<HH", content[6:10])
            return int(width), int(height)
        if content.startswith(b"\xff\xd8"):
            return _jpeg_size(content)
        if content[:4] == b"RIFF" and content[8:16] == b"WEBPVP8X":
            width = int.from_bytes(content[24:27], "little") + 1
            return width, int.from_bytes(content[27:30], "little") + 1
    except struct.error:
        return 0, 0
    return 0, 0


def _jpeg_size(content: bytes) -> tuple[int, int]:
    """The size in the first start-of-frame segment."""
    at = 2
    while at + 9 < len(content) and content[at] == 0xFF:  # noqa: PLR2004 - a marker's first byte
        marker = content[at + 1]
        length = int(struct.unpack(">H", content[at + 2 : at + 4])[0])
        if 0xC0 <= marker <= 0xCF and marker not in {0xC4, 0xC8, 0xCC}:  # noqa: PLR2004 - start of frame
            height, width = struct.unpack(">HH", content[at + 5 : at + 9])
            return int(width), int(height)
        at += 2 + length
    return 0, 0
