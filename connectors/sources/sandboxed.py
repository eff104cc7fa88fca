"""Converting in a process of its own, so that no source can stop the bot.

The process gets the bytes, an empty environment (no credential is in it) and limits; it answers
with a text or a refusal. Whatever else happens, a crash, a hang, memory or processor time spent,
an answer that is none, comes back as a SourceError, and the process is gone when the call ends,
also when the call is cancelled. Plain text and Markdown need no parser and no process.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
import signal
import sys
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

import connectors
from connectors.errors import (
    ConversionFailed,
    SourceError,
    SourceExploded,
    SourceTooLarge,
    source_errors,
)
from connectors.sources.convert import convert, is_simple
from connectors.sources.limits import (
    CONVERSION_SECONDS,
    MEMORY_BYTES,
    SOURCE_BYTES_MAX,
    TEXT_CHARS_MAX,
)
from connectors.sources.names import shown_name
from connectors.sources.text import SourceText
from connectors.sources.worker import EXIT_MEMORY, HEAD_BYTES_MAX, FrameBroken, frame, parse_frame

ANSWER_BYTES_MAX = TEXT_CHARS_MAX * 4 + HEAD_BYTES_MAX
"""Four bytes per character at most; a process that sends more is not ours any more."""
WORKER = ("-P", "-B", "-m", "connectors.sources.worker")
SIMPLE_BYTES_MAX = 256 * 1024
"""Plain text up to here is normalised in place: some 40 ms, less than a process takes to start."""


class Confinement(BaseModel):
    """What one conversion may use."""

    model_config = ConfigDict(frozen=True)

    seconds: float = CONVERSION_SECONDS
    memory_bytes: int = MEMORY_BYTES
    command: tuple[str, ...] = WORKER


class SandboxedConverter:
    """Converts sources, at most `concurrent_max` at a time."""

    def __init__(self, confinement: Confinement | None = None, *, concurrent_max: int = 2) -> None:
        self._confinement = confinement or Confinement()
        self._slots = asyncio.Semaphore(concurrent_max)

    async def convert(
        self, raw: bytes, *, name: str | None = None, content_type: str | None = None
    ) -> SourceText:
        """The text of a source; raises a SourceError and nothing else."""
        shown = shown_name(name)
        if len(raw) > SOURCE_BYTES_MAX:
            raise SourceTooLarge(name=shown, found=len(raw), limit=SOURCE_BYTES_MAX, unit="bytes")
        if len(raw) <= SIMPLE_BYTES_MAX and is_simple(raw, name=name, content_type=content_type):
            return convert(raw, name=name, content_type=content_type)
        head = {
            "name": name,
            "content_type": content_type,
            "memory_bytes": self._confinement.memory_bytes,
            # The kernel counts whole seconds; the wall deadline is the finer one.
            "cpu_seconds": math.ceil(self._confinement.seconds) + 1,
        }
        async with self._slots:
            said, code = await self._ask(frame(head, raw), shown)
        return _understood(said, code, shown)

    async def _ask(self, question: bytes, shown: str) -> tuple[bytes, int]:
        """The process's whole answer and exit code; it has ended when this returns or raises."""
        limits = self._confinement
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *limits.command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,  # a parser's complaints quote the source (INV-20)
            env=_environment(),
            start_new_session=True,
        )
        try:
            async with asyncio.timeout(limits.seconds):
                said = await _exchange(process, question)
                return said, await process.wait()
        except TimeoutError:
            raise SourceExploded(name=shown, what="seconds", limit=limits.seconds) from None
        finally:
            await _ended(process)


def _environment() -> dict[str, str]:
    root = str(Path(connectors.__file__).resolve().parent.parent)
    return {"PYTHONPATH": root, "PYTHONHASHSEED": "0", "LC_ALL": "C.UTF-8"}


async def _exchange(process: asyncio.subprocess.Process, question: bytes) -> bytes:
    assert process.stdin is not None  # noqa: S101 - asked for above
    assert process.stdout is not None  # noqa: S101 - asked for above
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        # A process that dies while it is being asked says so by its exit code.
        process.stdin.write(question)
        await process.stdin.drain()
    process.stdin.close()
    pieces: list[bytes] = []
    size = 0
    while piece := await process.stdout.read(256 * 1024):
        pieces.append(piece)
        size += len(piece)
        if size > ANSWER_BYTES_MAX:
            break
    if size > ANSWER_BYTES_MAX:
        _kill(process)
    return b"".join(pieces)


def _kill(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


async def _ended(process: asyncio.subprocess.Process) -> None:
    """Leave no process behind, not even when this call is being cancelled."""
    _kill(process)
    await asyncio.shield(process.wait())


def _understood(said: bytes, code: int, shown: str) -> SourceText:
    """The text, or the refusal that the answer or the way the process ended stands for."""
    if code == -signal.SIGXCPU:
        raise SourceExploded(name=shown, what="processor time", limit="the allowed amount")
    if code == EXIT_MEMORY:
        raise SourceExploded(name=shown, what="memory", limit="the allowed amount")
    if code != 0:
        raise _failed(shown, f"the reader stopped with {_ending(code)}")
    try:
        head, body = parse_frame(said)
        if "refused" in head:
            raise _refusal(head, shown)
        return SourceText.model_validate({**head["source"], "text": body.decode("utf-8")})
    except (FrameBroken, ValidationError, UnicodeDecodeError, KeyError, TypeError):
        raise _failed(shown, "the reader gave no clear answer") from None


def _refusal(head: dict[str, Any], shown: str) -> SourceError:
    known = source_errors().get(str(head["refused"]))
    fields = head.get("fields")
    if known is None or not isinstance(fields, dict):
        return _failed(shown, "the reader gave no clear answer")
    return known(**fields)


def _failed(shown: str, cause: str) -> ConversionFailed:
    return ConversionFailed(name=shown, format="what it seems to be", cause=cause)


def _ending(code: int) -> str:
    if code >= 0:
        return f"code {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"
