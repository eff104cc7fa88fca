"""The process in which hostile bytes meet their parsers: one source in, one answer out.

Started by `connectors.sources.sandboxed` as `python -m connectors.sources.worker`. It first takes
away from itself what a conversion never needs: memory and processor time beyond the limits, other
processes, files it could write, and the network. Then it reads one frame from its input, converts,
and writes one frame to what was its output; anything a library prints goes elsewhere.

A frame is a JSON object and bytes: four bytes with the length of the JSON, the JSON, whose
`body_bytes` says how many bytes follow, and these.
"""

from __future__ import annotations

import json
import os
import resource
import struct
import sys
from collections.abc import Mapping
from typing import Any, BinaryIO

HEAD_BYTES_MAX = 4 * 1024 * 1024
EXIT_MEMORY = 77
"""How a process ends that has no memory left to say so."""
_LENGTH = struct.Struct(">I")

_DENIED = (
    "socket.",
    "subprocess.",
    "os.system",
    "os.exec",
    "os.posix_spawn",
    "os.spawn",
    "os.fork",
    "os.remove",
    "os.rename",
    "os.mkdir",
    "os.rmdir",
    "os.link",
    "os.symlink",
    "os.truncate",
    "shutil.",
    "urllib.",
    "ftplib.",
    "http.",
    "smtplib.",
)
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


class FrameBroken(Exception):
    """Fields: what. A frame that is not one."""

    def __init__(self, what: str) -> None:
        self.what = what
        super().__init__(what)


class Denied(Exception):
    """Fields: event. Something a conversion never needs."""

    def __init__(self, event: str) -> None:
        self.event = event
        super().__init__(event)


def frame(head: Mapping[str, Any], body: bytes) -> bytes:
    """The bytes of one frame."""
    coded = json.dumps({**head, "body_bytes": len(body)}).encode("ascii")
    return _LENGTH.pack(len(coded)) + coded + body


def parse_frame(raw: bytes) -> tuple[dict[str, Any], bytes]:
    """The head and body of exactly one frame; raises FrameBroken."""
    if len(raw) < _LENGTH.size:
        raise FrameBroken(what="length")
    (size,) = _LENGTH.unpack_from(raw)
    if size > HEAD_BYTES_MAX or len(raw) < _LENGTH.size + size:
        raise FrameBroken(what="head size")
    try:
        head = json.loads(raw[_LENGTH.size : _LENGTH.size + size])
    except ValueError:
        raise FrameBroken(what="head") from None
    body = raw[_LENGTH.size + size :]
    if not isinstance(head, dict) or head.get("body_bytes") != len(body):
        raise FrameBroken(what="body size")
    return head, body


def confine(*, memory_bytes: int, cpu_seconds: int) -> None:
    """Limits of this process from here on; they cannot be raised again."""
    for kind, limit in (
        (resource.RLIMIT_AS, memory_bytes),
        (resource.RLIMIT_CPU, cpu_seconds),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NOFILE, 64),
        (resource.RLIMIT_NPROC, 0),
    ):
        if kind == resource.RLIMIT_AS and sys.platform == "darwin":
            continue  # macOS refuses this limit; time and output stay bounded there
        _, hard = resource.getrlimit(kind)
        allowed = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
        resource.setrlimit(kind, (allowed, allowed))
    sys.addaudithook(_audit)


def _audit(event: str, args: tuple[object, ...]) -> None:
    """Python's own events; a second fence beside the limits, which the kernel keeps."""
    if event.startswith(_DENIED):
        raise Denied(event)
    if event == "open":
        flags = args[2]
        if isinstance(flags, int) and flags & _WRITING:
            raise Denied(event)


def _text_or_none(value: object) -> str | None:
    return value if isinstance(value, str) else None


def answer(head: Mapping[str, Any], body: bytes) -> bytes:
    """Convert, and say what came of it, as a frame."""
    from connectors.sources.convert import convert
    from runtime.errors import BadInput

    name, content_type = _text_or_none(head.get("name")), _text_or_none(head.get("content_type"))
    try:
        found = convert(body, name=name, content_type=content_type)
    except BadInput as refused:
        return frame({"refused": type(refused).__name__, "fields": refused.fields}, b"")
    kept = found.model_dump(exclude={"text"})
    return frame({"source": kept}, found.text.encode("utf-8"))


def serve(stdin: BinaryIO, stdout: BinaryIO) -> int:
    """One frame in, one frame out."""
    head, body = parse_frame(stdin.read())
    confine(memory_bytes=int(head["memory_bytes"]), cpu_seconds=int(head["cpu_seconds"]))
    try:
        told = answer(head, body)
    except MemoryError:
        # The half-built tree still fills the memory: even a short answer would not fit.
        os._exit(EXIT_MEMORY)
    stdout.write(told)
    stdout.flush()
    return 0


def main() -> int:
    """Keep the answer's channel private: what libraries print must not mix with it."""
    with os.fdopen(os.dup(1), "wb") as private:
        os.dup2(2, 1)
        return serve(sys.stdin.buffer, private)


if __name__ == "__main__":
    sys.exit(main())
