"""`make demo`: the whole story without a browser, with two real kills in it.

Two bots run on one data directory. A real source goes in; a scripted operator presses the real
buttons over HTTP; the process that analyses is killed (SIGKILL), and later the one that exports,
while the effect is under way; the rest goes on. The end is verified past the bot: the pack is
opened and its digests are computed again, the store and the sandbox's ledger are counted. Exit code
0 means that every promise listed at the end was kept; otherwise the broken ones are named.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import fcntl
import hashlib
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from runtime.errors import HarmoniaError
from runtime.system import SystemClock
from tests.acceptance.measures import Found, Killed, measure
from tests.acceptance.people import PACK, STRATEGY, Json, Person, button_data
from tests.acceptance.processes import Process
from tests.acceptance.story import Story
from tests.acceptance.world import World, opened
from tests.sources_made import long_changelog

SECONDS_MAX: Final = 60.0
SOURCE: Final = "CHANGELOG.md"
CALLS: Final = 2
"""Of the seven that analysing this source takes."""


async def play(folder: Path, story: Story) -> Found:
    """The story, then what was measured."""
    found = Found()
    async with opened(folder) as world:
        clock = SystemClock()
        story.chapter("The bot starts")
        await world.sandbox()
        story.tell("demo", "a Telegram sandbox runs; the bots believe that it is Telegram")
        first = await world.up("worker A")
        await world.up("worker B")
        story.tell("demo", "two bots run on one data directory: worker A, worker B")
        ana = world.ana
        async with story.watching(ana):
            await world.pair(first)
            story.chapter("A source goes in, and the worker that analyses it is killed")
            started = clock.monotonic()
            kills = [await analysis_killed(world, story, ana)]
            await world.up("worker C")
            story.tell("demo", "worker C starts, as `make up` again would")
            old_card = await decide(found, story, ana, STRATEGY)
            found.figure("source → strategy card, with a kill (s)", _since(started))
            story.chapter("The draft is approved, and the worker that exports it is killed")
            kills.append(await export_killed(found, world, story, ana))
            await ana.verified()
            story.tell("Ana", "sees: verified")
            found.figure("source → verified, with two kills (s)", _since(started))
            story.chapter("Afterwards")
            await unmoved(found, world, story, old_card)
        await explained(found, story, ana)
        await settle(world)
        ledger = await world.client.ledger()
        measure(found, world, ledger, kills)
        for process in [row for row in reversed(world.processes) if row.alive]:
            code = await process.stop()
            found.promise(f"{process.name} ends in order when asked", code == 0, f"exit {code}")
    return found


def _since(started: float) -> float:
    return round(SystemClock().monotonic() - started, 2)


async def analysis_killed(world: World, story: Story, ana: Person) -> Killed:
    """Send the source; kill the process that analyses it in the middle of its model calls."""
    data = long_changelog()
    await ana.sends(SOURCE, data)
    story.tell("Ana", f"sends {SOURCE}: {len(data):,} bytes, a public project's real changelog")
    process, entry = await working(world, "stage.analyse")
    operation = str(entry["operation"])
    await world.truth.until(
        lambda: len(world.truth.records("model_calls", operation=operation)) >= CALLS,
        f"{CALLS} finished model calls",
    )
    return await killed(world, story, process, operation)


async def working(world: World, kind: str) -> tuple[Process, Json]:
    """The process that is at work on this kind of operation, by its own log."""
    living = [process for process in world.processes if process.alive]
    waits = {
        asyncio.ensure_future(
            process.event(lambda entry: entry["event"] == "attempt" and entry["kind"] == kind)
        ): process
        for process in living
    }
    done, pending = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    for task in pending:
        task.cancel()
    await asyncio.gather(*waits, return_exceptions=True)
    task = done.pop()
    return waits[task], task.result()


async def killed(world: World, story: Story, process: Process, operation: str) -> Killed:
    """SIGKILL, then what the store says."""
    await process.kill()
    truth = world.truth
    commands = truth.records("commands")
    kill = Killed(
        process=process.name,
        operation=operation,
        state=truth.state("operations", operation),
        command=commands[0]["state"]["name"] if commands else "none",
        journaled=frozenset(row["id"] for row in truth.records("model_calls")),
        at=SystemClock().now(),
    )
    story.tell("demo", f"SIGKILL for {process.name}, which had claimed {operation}")
    story.tell(
        "store",
        f"operation {kill.state}, model calls finished {len(kill.journaled)}, "
        f"command {kill.command}",
    )
    return kill


async def decide(found: Found, story: Story, ana: Person, what: str) -> Json:
    """Wait for the card and press Approve; how long it took until the toast came. The old card."""
    card = await ana.card(what)
    clock = SystemClock()
    pressed = clock.monotonic()
    toast = await ana.presses(card, "Approve")
    waited = clock.monotonic() - pressed
    story.tell("Ana", f"presses [Approve] under the {what.lower()}")
    story.tell("bot", f"toast: {toast}")
    name = f"{what}: press → toast as seen over HTTP (ms)"
    found.figure(name, round(waited * 1000, 1))
    return card


async def export_killed(found: Found, world: World, story: Story, ana: Person) -> Killed:
    """Approve the draft; kill the process that exports it between the send and its answer.

    A pack is written under its command's file lock. The demo holds that lock meanwhile, as a slow
    disk would, so that the kill surely falls after "dispatched" was stored and before an answer.
    """
    await ana.card(PACK)
    approval = world.truth.job()["approval"]
    with held(lock_of(world.data, f"{approval}:command")):
        await decide(found, story, ana, PACK)
        process, entry = await working(world, "stage.export")
        await process.event(lambda row: row["event"] == "effect_dispatched")
        await world.truth.until(
            lambda: world.truth.state("commands", f"{approval}:command") == "dispatched",
            "a dispatched command",
        )
        kill = await killed(world, story, process, str(entry["operation"]))
    found.promise(
        "the command was under way when its worker was killed",
        kill.command == "dispatched",
        kill.command,
    )
    found.promise("no pack was there yet", not world.truth.packs(), len(world.truth.packs()))
    return kill


def lock_of(data: Path, command: str) -> Path:
    """The file under whose lock a command's pack is written."""
    key = hashlib.sha256(command.encode()).hexdigest()[:20]
    return data / "packs" / "main" / "main" / ".work" / f"{key}.lock"


@contextlib.contextmanager
def held(path: Path) -> Iterator[None]:
    """Hold a file's kernel lock; the file is gone afterwards, as its owner would leave it."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
        path.unlink(missing_ok=True)
    finally:
        os.close(descriptor)


async def unmoved(found: Found, world: World, story: Story, old_card: Json) -> None:
    """What must not count: an old button, a stranger, an update that comes again."""
    ana, sam = world.ana, world.person("sam")
    token = button_data(old_card, "Approve")
    late = await ana.presses_at(int(old_card["message_id"]), data=token)
    story.tell("Ana", "presses [Approve] on the strategy again, as an old phone might show it")
    story.tell("bot", f"toast: {late['text']}")
    truthful = late["text"].startswith(("Already approved by", "Counted once already"))
    found.promise("a late press is told who decided, and changes nothing", truthful, late["text"])
    told = await sam.asks("please approve everything", "not on its list")
    story.tell("Sam", "a stranger, writes: please approve everything")
    story.tell("bot", f"answers Sam: {told['text']}")
    update = await ana.client.redeliver(times=3)
    story.tell("Telegram", f"delivers update {update} three more times")
    await world.truth.until(
        lambda: int(world.truth.event(update)["deliveries"]) >= 1 + 3, "four counted deliveries"
    )


async def explained(found: Found, story: Story, ana: Person) -> None:
    """The whole way from the tap to the receipt, from records alone."""
    why = await ana.asks("/why 1", "Receipt ·")
    lines = str(why["text"]).split("\n")
    story.tell("Ana", "/why 1")
    for line in lines:
        story.tell("", line)
    found.figure("lines of /why, each from a record", len(lines))


async def settle(world: World) -> None:
    """Until nothing is due any more: no dirty marker, no card, no unfinished operation."""

    def quiet() -> bool:
        truth = world.truth
        cards = [row for row in truth.records("cards") if row["pending"]]
        ready = [
            row
            for row in truth.records("operations")
            if row["state"]["name"] in {"pending", "claimed"}
        ]
        return not cards and not ready and not truth.records("markers")

    await world.truth.until(quiet, "an end of all work")


def table(found: Found) -> Iterator[str]:
    """The figures and the promises, as plain text."""
    width = max(len(name) for name in found.figures)
    yield ""
    yield "Measured (read from the store, the sandbox's ledger, the logs and the disk)"
    for name, value in found.figures.items():
        yield f"  {name:<{width}}  {value}"
    yield ""
    yield "Promises"
    for text, kept, evidence in found.promises:
        yield f"  {'kept  ' if kept else 'BROKEN'}  {text}" + ("" if kept else f" — {evidence}")


def main() -> int:
    """Play, print, and say by the exit code whether a promise broke."""
    parser = argparse.ArgumentParser(prog="make demo", description="the whole story, measured")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    asked = parser.parse_args()
    story = Story(lambda line: print(line, flush=True))
    try:
        with tempfile.TemporaryDirectory(prefix="harmonia-demo-") as folder:
            found = asyncio.run(play(Path(folder), story))
    except HarmoniaError as error:
        said = "\n".join(getattr(error, "__notes__", []))
        print(f"\nBROKEN: the story comes to its end — {error.sentence}\n{said}", file=sys.stderr)
        return 1
    seconds = round(story.seconds, 1)
    found.figure("duration of the demo (s)", seconds)
    found.promise(f"it took less than {SECONDS_MAX:g} s", seconds < SECONDS_MAX, seconds)
    for line in table(found):
        print(line)
    if asked.json:
        promises = [
            {"promise": text, "kept": kept, "found": evidence}
            for text, kept, evidence in found.promises
        ]
        written = {"figures": found.figures, "promises": promises, "story": story.told}
        asked.json.write_text(json.dumps(written, indent=2, ensure_ascii=False) + "\n")
    if found.broken:
        print("\nBROKEN: " + "\nBROKEN: ".join(found.broken), file=sys.stderr)
        return 1
    print(f"\nAll {len(found.promises)} promises were kept.")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
