"""`kill -9` at any moment, `harmonia up` again: the work goes on where the stored state says.

The bot runs as `make up` starts it without a token: bot, sandbox and chat page are one process, and
all of it dies each time. Keeps: one pack, one decision each, no finished model call made twice, and
no message twice except copies that say so.
"""

from __future__ import annotations

import random  # noqa: TID251 - the seeded choice of when to kill
from collections import Counter
from pathlib import Path

import pytest

from bot.telegram.sending import COPY_NOTE
from tests.acceptance.demo import held, lock_of
from tests.acceptance.measures import repeats, senders_of
from tests.acceptance.people import PACK, STRATEGY, Json
from tests.acceptance.processes import Process
from tests.acceptance.truth import open_pack
from tests.acceptance.world import World, opened
from tests.sources_made import long_changelog

pytestmark = [pytest.mark.processes, pytest.mark.timeout(300)]

SEED = 20270104
VERIFIED_SECONDS = 60.0


async def again(world: World, process: Process) -> Process:
    """Kill the whole bot and start it again on what is stored."""
    await process.kill()
    return await world.up(f"up {len(world.processes) + 1}")


async def approve(world: World, what: str) -> None:
    """Press Approve under the newest card about `what`; the answer is not waited for."""
    card = await world.ana.card(what)
    await world.client.press("ana", "bot", int(card["message_id"]), "Approve")


async def test_killed_at_every_moment_the_job_ends_verified_with_one_pack(tmp_path: Path) -> None:
    moments = random.Random(SEED)
    async with opened(tmp_path) as world:
        process = await world.up()
        await world.pair(process)

        await world.ana.sends("CHANGELOG.md", long_changelog())
        process = await again(world, process)  # the source has been sent, and nothing more

        analysed = moments.randint(1, 5)
        await world.truth.until(
            lambda: len(world.truth.records("model_calls")) >= analysed, "a model call"
        )
        process = await again(world, process)  # in the middle of the analysis
        finished = {row["id"]: row for row in world.truth.records("model_calls")}

        await approve(world, STRATEGY)
        process = await again(world, process)  # the strategy's approval is pressed

        await approve(world, PACK)
        process = await again(world, process)  # the draft's approval is pressed

        await world.ana.verified(seconds=VERIFIED_SECONDS)
        expect_one_of_everything(world, finished)
        await expect_no_message_twice(world)


async def test_killed_while_it_exports_the_pack_is_there_once(tmp_path: Path) -> None:
    async with opened(tmp_path) as world:
        process = await world.up()
        await world.pair(process)
        await world.ana.sends("CHANGELOG.md", long_changelog())
        await world.ana.approves(STRATEGY)
        await world.ana.card(PACK)
        command = f"{world.truth.job()['approval']}:command"
        with held(lock_of(world.data, command)):
            await approve(world, PACK)
            await world.truth.until(
                lambda: world.truth.state("commands", command) == "dispatched", "a dispatch"
            )
            await process.kill()
        assert world.truth.packs() == []
        process = await world.up("up 2")
        await world.truth.until(world.truth.packs, "the pack on the disk")
        await process.kill()  # the pack is there; whether that was stored is chance
        await world.up("up 3")
        await world.ana.verified(seconds=VERIFIED_SECONDS)
        stored = world.truth.record("commands", command)
        assert stored is not None
        assert stored["attempt"] == 2, "proof of absence opened the second attempt"
        expect_one_of_everything(world, {})
        await expect_no_message_twice(world)


def expect_one_of_everything(world: World, finished: dict[str, Json]) -> None:
    """One pack, whole, with one receipt; one approval each; finished model calls not repeated."""
    truth = world.truth
    (path,) = truth.packs()
    (receipt,) = truth.records("receipts")
    pack = open_pack(path)
    assert pack.problems == ()
    assert pack.sha256 == receipt["content_digest"]
    assert [row["state"]["name"] for row in truth.records("commands")] == ["applied"]
    approvals = truth.records("approvals")
    assert [(row["kind"], len(row["votes"])) for row in approvals] == [
        ("strategy", 1),
        ("effect", 1),
    ]
    begun, calls = truth.records("projections"), truth.records("model_calls")
    assert finished.items() <= {row["id"]: row for row in calls}.items(), "the journal changed"
    assert repeats(begun, calls) == [], "a finished model call was made again"
    for attempt, senders in senders_of(world.logged("effect_dispatched")).items():
        assert len(senders) == 1, f"attempt {attempt} was sent by {senders}"
    waiting = [
        row["id"]
        for row in truth.records("operations")
        if row["job"] and row["state"]["name"] != "succeeded"
    ]
    assert not waiting


async def expect_no_message_twice(world: World) -> None:
    """Each card is one message; a second one of it says that it is a copy."""
    texts: Counter[str] = Counter()
    for message in await world.ana.history():
        text = str(message.get("text") or message.get("caption") or "")
        if message["from"].get("is_bot") and COPY_NOTE not in text:
            texts[text] += 1
    twice = [text[:80] for text, count in texts.items() if count > 1]
    assert not twice, f"said twice and not marked: {twice}"
    heads = Counter(
        text.split("\n")[0] + text.split("\n")[1]
        for text in texts
        if text.startswith(("Approved ·", "Job 1 ·"))
    )
    assert all(count == 1 for count in heads.values()), heads
