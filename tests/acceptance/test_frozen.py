"""A worker that stands still while it exports, and goes on when another has done its work.

Its lease runs out, another process takes over and finishes; then the first one thaws in the middle
of its send. Keeps: the proof of absence stays true (the thawed send finds its attempt closed), its
answer is kept as evidence and changes nothing, and there is one pack.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.acceptance.demo import held, lock_of, working
from tests.acceptance.people import PACK, STRATEGY
from tests.acceptance.truth import open_pack
from tests.acceptance.world import opened
from tests.sources_made import prose

pytestmark = [pytest.mark.processes, pytest.mark.timeout(300)]


async def test_a_worker_that_thaws_in_its_send_adds_no_second_pack(tmp_path: Path) -> None:
    async with opened(tmp_path) as world:
        await world.sandbox()
        await world.pair(await world.up("first"))
        await world.up("second")
        await world.ana.sends("source.txt", "\n\n".join(prose()[:12]).encode())
        await world.ana.approves(STRATEGY)
        await world.ana.card(PACK)
        command = f"{world.truth.job()['approval']}:command"
        with held(lock_of(world.data, command)):
            await world.ana.approves(PACK)
            frozen, _ = await working(world, "stage.export")
            await world.truth.until(
                lambda: world.truth.state("commands", command) == "dispatched", "a dispatch"
            )
            frozen.freeze()
        await world.truth.until(
            lambda: world.truth.records("verifications", verified=True), "a verified pack"
        )
        (path,) = world.truth.packs()
        before = path.read_bytes()
        (receipt,) = world.truth.records("receipts")
        stored = world.truth.record("commands", command)
        assert stored is not None
        assert stored["attempt"] == 2
        frozen.thaw()
        late = await world.truth.until(
            lambda: world.truth.records("late_answers", command=command), "the late answer"
        )
        assert [(row["attempt"], row["answer"]["name"]) for row in late] == [(1, "not_entered")]
        assert world.truth.packs() == [path]
        assert path.read_bytes() == before
        assert open_pack(path).sha256 == receipt["content_digest"]
        assert world.truth.records("receipts") == [receipt]
        assert world.truth.record("commands", command) == stored
        assert await frozen.stop() == 0, "it goes on working, and ends in order"
