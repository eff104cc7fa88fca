"""Real processes that die or freeze inside the connector, at a chosen call to the system.

A child is a fork of the test: it counts the calls that the interpreter announces to its audit
hooks (open, mkdir, link, rename, remove), and at the chosen one it is killed or stopped by a real
signal, before that call is made.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from connectors.content_pack.connector import ContentPack
from runtime.domain.effect import Answer, Command
from tests.world import ManualClock

CALLS = frozenset({"open", "os.mkdir", "os.link", "os.rename", "os.remove", "fcntl.flock"})
ANSWER_BYTES_MAX = 65_536


@dataclass
class Child:
    """A forked process; `answer` waits for its end and gives what it wrote, "" if it died."""

    pid: int
    pipe: int

    def stopped(self) -> None:
        """Wait until it has stopped itself."""
        _, status = os.waitpid(self.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status), status

    def go_on(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def answer(self) -> str:
        """What the child wrote before it ended."""
        parts = []
        while part := os.read(self.pipe, ANSWER_BYTES_MAX):
            parts.append(part)
        os.close(self.pipe)
        os.waitpid(self.pid, 0)
        return b"".join(parts).decode()


def fork(work: Callable[[int], str]) -> Child:
    """Run `work` in a child. It is given the pipe, and what it returns is written there."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid:
        os.close(writing)
        return Child(pid, reading)
    code = 1
    try:
        os.close(reading)
        os.write(writing, work(writing).encode())
        code = 0
    finally:
        os._exit(code)


def signal_at(number: int, sent: signal.Signals) -> None:
    """Send this process a signal before its `number`th call to the system, counted from now."""
    seen = 0

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        nonlocal seen
        del arguments
        if event in CALLS:
            seen += 1
            if seen == number:
                os.kill(os.getpid(), sent)

    sys.addaudithook(hook)


def sender(packs: Path, command: Command, at: tuple[int, signal.Signals] | None = None) -> Child:
    """A process that executes a command, and dies or freezes at a call if `at` says so."""

    def work(pipe: int) -> str:
        del pipe
        connector = ContentPack(packs, ManualClock())
        if at is not None:
            signal_at(*at)
        answer: Answer = connector._execute(command)
        return answer.model_dump_json()

    return fork(work)


def at_call(event: str, action: Callable[[], None]) -> None:
    """Let something happen in this process before its next call of a kind, once."""
    done = False

    def hook(name: str, arguments: tuple[object, ...]) -> None:
        nonlocal done
        del arguments
        if name == event and not done:
            done = True
            action()

    sys.addaudithook(hook)
