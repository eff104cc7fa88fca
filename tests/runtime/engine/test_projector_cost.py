"""What projecting one changed job costs does not depend on how many jobs there are."""

from __future__ import annotations

from pathlib import Path

from runtime.engine.kit import Kit
from runtime.engine.projector import Projector
from runtime.ports import Ask, Commit, Put, Reads, Write
from runtime.stores.collections import APPROVALS, ITEMS, JOBS, SHELLS
from tests.effects_made import export
from tests.runtime.engine.projecting import begin, change, project, shell_of
from tests.world import ACME, Counting, make_kit


async def crowd(kit: Kit, count: int) -> None:
    """Many jobs with their shells and items, as after their last projection."""
    made = export()
    await begin(kit, made)
    await project(kit)
    shell, asked = await shell_of(kit), made.approval
    items = await kit.store.find(Ask(ITEMS, "open", ACME, equals=(False,)))
    for start in range(1, count, 100):

        async def body(reads: Reads, start: int = start) -> Commit[None]:
            writes: list[Write] = []
            for number in range(start, min(start + 100, count)):
                id_ = f"crowd-{number}"
                job = made.job.model_copy(update={"id": id_, "approval": f"{id_}:approval"})
                approval = asked.model_copy(update={"id": f"{id_}:approval", "job": id_})
                writes += [
                    Put(JOBS.key(ACME, id_), job),
                    Put(APPROVALS.key(ACME, approval.id), approval),
                    Put(SHELLS.key(ACME, id_), shell.model_copy(update={"id": id_})),
                ]
                for row in items.rows:
                    item = row.record.model_copy(update={"id": f"approval:{id_}", "job": id_})
                    writes.append(Put(ITEMS.key(ACME, item.id), item))
            return Commit(None, tuple(writes))

        await kit.commit(body)


async def test_a_changed_job_costs_the_same_among_few_and_many(tmp_path: Path) -> None:
    costs = []
    for count in (10, 2_000):
        kit = await make_kit(tmp_path / str(count), wrap=Counting)
        await crowd(kit, count)
        counts = kit.store
        assert isinstance(counts, Counting)
        changed = export()
        await change(kit, changed.job.model_copy(update={"title": "New"}), changed)
        counts.gets = counts.rows = counts.commits = 0
        assert await Projector(kit).once()
        costs.append((counts.commits, counts.gets + counts.rows))
        counts.gets = counts.rows = 0
        await Projector(kit).once()
        assert counts.gets + counts.rows == 0
    assert costs[0] == costs[1]
    assert costs[0][0] == 1
    assert costs[0][1] <= 20
