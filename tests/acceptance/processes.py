"""Real processes of the project: started with nothing of the developer's shell, heard line by line.

Keeps: no `.env` and no setting from outside reaches a process (its folder is empty, its environment
is made here); whoever waits, waits for a line or for the process's end, and an end before the line
is an error that shows what the process said last; nothing outlives `end`.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

from runtime.errors import HarmoniaError

ROOT: Final = Path(__file__).resolve().parent.parent.parent
KEPT: Final = ("PATH", "LANG", "LC_ALL", "TMPDIR", "SYSTEMROOT")
LINE_BYTES_MAX: Final = 1024 * 1024
SHOWN_LINES: Final = 25
START_SECONDS: Final = 40.0
END_SECONDS: Final = 15.0

Json = dict[str, Any]
T = TypeVar("T")


class ProcessEnded(HarmoniaError):
    """A process ended, or stayed silent, before it said what was waited for."""


def environment(**settings: str) -> dict[str, str]:
    """What a process may know of this machine, and the settings of the test."""
    kept = {name: os.environ[name] for name in KEPT if name in os.environ}
    return {**kept, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1", **settings}


class Process:
    """One running process; `said` are its lines, `logged` its structured log."""

    def __init__(self, name: str, process: asyncio.subprocess.Process) -> None:
        self.name = name
        self.said: list[str] = []
        self.logged: list[Json] = []
        self.other: list[str] = []
        """Lines of standard error that are not of the structured log."""
        self._process = process
        self._news = asyncio.Event()
        self._hearing = [
            asyncio.ensure_future(self._hear(process.stdout, self._say)),
            asyncio.ensure_future(self._hear(process.stderr, self._log)),
        ]

    @classmethod
    async def start(cls, name: str, module: list[str], folder: Path, **settings: str) -> Process:
        """Start `python -m ...` in `folder`."""
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            *module,
            cwd=folder,
            env=environment(**settings),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            limit=LINE_BYTES_MAX,
            start_new_session=True,
        )
        return cls(name, process)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._process.returncode is None

    async def line(self, part: str, seconds: float = START_SECONDS) -> str:
        """The first line of standard output that contains `part`."""
        return await self._until(
            lambda: next((line for line in self.said if part in line), None), part, seconds
        )

    async def event(self, test: Callable[[Json], object], seconds: float = START_SECONDS) -> Json:
        """The first entry of the log that passes."""
        return await self._until(
            lambda: next((entry for entry in self.logged if test(entry)), None),
            "an entry of the log",
            seconds,
        )

    async def _until(self, look: Callable[[], T | None], awaited: str, seconds: float) -> T:
        try:
            async with asyncio.timeout(seconds):
                while (found := look()) is None:
                    if all(task.done() for task in self._hearing):
                        raise ProcessEnded(process=self.name, awaited=awaited, said=self.report())
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError:
            raise ProcessEnded(
                process=self.name, awaited=awaited, seconds=seconds, said=self.report()
            ) from None
        return found

    async def kill(self) -> None:
        """SIGKILL this process, and only it, and wait until it is gone."""
        if self.alive:
            self._process.kill()
        await self._process.wait()
        self._news.set()

    def freeze(self) -> None:
        """Let it stand still (SIGSTOP), as a laptop's lid or a full host would."""
        os.kill(self.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it go on."""
        os.kill(self.pid, signal.SIGCONT)

    async def stop(self, seconds: float = END_SECONDS) -> int:
        """SIGTERM, and the exit code; a process that does not end is killed and has none."""
        if self.alive:
            self._process.terminate()
        try:
            return await asyncio.wait_for(self._process.wait(), seconds)
        except TimeoutError:
            raise ProcessEnded(
                process=self.name, awaited="its end", seconds=seconds, said=self.report()
            ) from None

    async def end(self) -> None:
        """Whatever it does: it and its children are gone afterwards."""
        with contextlib.suppress(ProcessLookupError):  # the whole group may have ended already
            os.killpg(self.pid, signal.SIGKILL)
        await self._process.wait()
        for task in self._hearing:
            task.cancel()
        await asyncio.gather(*self._hearing, return_exceptions=True)

    def report(self) -> str:
        """What it said last, for a failure's report."""
        lines = [*self.said, *self.other, *(json.dumps(entry) for entry in self.logged)]
        code = "runs" if self.alive else f"ended with {self._process.returncode}"
        return "\n".join([f"{self.name} ({code}):", *lines[-SHOWN_LINES:]])

    async def _hear(self, stream: asyncio.StreamReader | None, keep: Callable[[str], None]) -> None:
        try:
            while stream is not None and (raw := await stream.readline()):
                keep(raw.decode("utf-8", "replace").rstrip("\n"))
                self._news.set()
        finally:
            self._news.set()

    def _say(self, line: str) -> None:
        self.said.append(line)

    def _log(self, line: str) -> None:
        try:
            entry = json.loads(line)
        except ValueError:
            entry = None
        if isinstance(entry, dict) and "event" in entry:
            self.logged.append(entry)
        else:
            self.other.append(line)
