"""The compiler and the store: one moment, a bounded read, the same bytes anywhere, a stored proof.

INV-8 and INV-9 where they depend on how the truth is read and not only on what is made of it.
"""

from __future__ import annotations

import asyncio
import re
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, TypeVar

import pytest

from runtime.domain.projection import Agent, ProjectionRecord
from runtime.domain.values import Record
from runtime.engine.snapshot import AUTHORITY_MAX
from runtime.errors import (
    BadInput,
    FenceLost,
    InvariantBroken,
    ProjectionOverflow,
    RecordUnreadable,
)
from runtime.ports import Ask, Collection, Key, Page, Store
from runtime.stores.collections import (
    APPROVALS,
    ARTIFACTS,
    COMMANDS,
    EVENTS,
    JOBS,
    OPERATIONS,
    POLICIES,
    PROJECTIONS,
    RECEIPTS,
    REVISIONS,
    VERIFICATIONS,
)
from tests.runtime.engine import compiling
from tests.runtime.engine.compiling import AGENTS, Stage, step_of
from tests.world import ACME, Counting, make_kit

ROOT = Path(__file__).resolve().parents[3]
R = TypeVar("R", bound=Record)
T = TypeVar("T")


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Stage]:
    made = Stage(await make_kit(tmp_path), tmp_path)
    await made.build()
    yield made
    await made.kit.store.close()


@pytest.mark.parametrize(("more", "accepted"), [(-1, True), (0, True), (1, False)])
async def test_authority_is_never_a_part_of_a_list(
    stage: Stage, more: int, *, accepted: bool
) -> None:
    known = await stage.get(APPROVALS, "ap-1")
    count = AUTHORITY_MAX + more - 1
    await stage.put(
        APPROVALS, *(known.model_copy(update={"id": f"ap-x{number}"}) for number in range(count))
    )
    if accepted:
        made = await stage.compile("writer", budget_chars=200_000)
        assert made.text.count("- strategy approval is rejected:") == count + 1
        return
    with pytest.raises(ProjectionOverflow):
        await stage.compile("writer", budget_chars=200_000)


def damage(file: Path, table: str, id_: str) -> None:
    """Make one stored row unreadable."""
    connection = sqlite3.connect(file)
    broken = f"UPDATE {table} SET body = '{{', version = version + 1"  # noqa: S608 - our own names
    connection.execute(f"{broken} WHERE id = ?", (id_,))
    connection.commit()
    connection.close()


async def test_an_unreadable_record_of_authority_is_an_error(stage: Stage, tmp_path: Path) -> None:
    damage(tmp_path / "truth.sqlite", "r_approvals", "ap-1")
    with pytest.raises(RecordUnreadable):
        await stage.compile("writer")


async def test_an_unreadable_observation_is_named(stage: Stage, tmp_path: Path) -> None:
    damage(tmp_path / "truth.sqlite", "r_receipts", "cmd-1:receipt")
    made = await stage.compile("writer")
    assert '- unreadable: "1 of receipts"; repair the records [jobs/job-1]' in made.text


async def test_an_operation_of_no_job_is_a_defect(stage: Stage) -> None:
    await stage.change(OPERATIONS, "job-1:writer", job="job-9")
    with pytest.raises(InvariantBroken):
        await stage.compile("writer")


async def test_reading_needs_a_source_text(stage: Stage) -> None:
    job = await stage.get(JOBS, "job-1")
    await stage.change(JOBS, "job-1", source=job.source.model_copy(update={"text": None}))
    readers: tuple[Agent, ...] = ("reader", "analyst")
    for agent in readers:
        with pytest.raises(BadInput):
            await stage.compile(agent, "read:0")


class InsideOnly(Counting):
    """Counts, and once shut refuses every read outside a transaction."""

    shut = False

    async def get(self, key: Key[R]) -> R | None:
        assert not self.shut, f"{key.path} was read outside the transaction"
        return await super().get(key)

    async def find(self, ask: Ask[R]) -> Page[R]:
        assert not self.shut, f"{ask.collection.name} was asked outside the transaction"
        return await super().find(ask)


async def test_everything_is_read_in_one_transaction(tmp_path: Path) -> None:
    watching: list[InsideOnly] = []

    def wrap(store: Store) -> Store:
        watching.append(InsideOnly(store))
        return watching[0]

    stage = Stage(await make_kit(tmp_path, wrap=wrap), tmp_path)
    await stage.build()
    (watched,) = watching
    without_text: tuple[Agent, ...] = ("strategist", "writer", "reviewer", "chat")
    for agent in without_text:
        watched.shut, watched.commits = False, 0
        operation = await stage.get(OPERATIONS, f"job-1:{agent}")
        watched.shut = True
        await stage.compiler.compile(
            stage.store, ACME, operation, agent, step="s", model="offline-1"
        )
        assert watched.commits == 1
    await stage.kit.store.close()


def multiply(file: Path, table: str, id_: str, count: int) -> None:
    """Copy one stored row many times, with another ID each: a history, quickly."""
    connection = sqlite3.connect(file)
    names = [f"[{row[1]}]" for row in connection.execute(f"PRAGMA table_info({table})")]
    changed = {
        "[id]": "id || '-' || n",
        "[body]": "CAST(replace(body, '\"' || id || '\"', '\"' || id || '-' || n || '\"') AS BLOB)",
    }
    values = ", ".join(changed.get(name, name) for name in names)
    counter = "WITH RECURSIVE counter(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM counter LIMIT ?)"
    into = f"INSERT INTO {table} ({', '.join(names)})"
    copies = f"SELECT {values} FROM {table}, counter WHERE id = ?"  # noqa: S608 - our own schema's names
    connection.execute(f"{counter} {into} {copies}", (count, id_))
    connection.commit()
    connection.close()


async def with_history(folder: Path, past: int) -> tuple[Stage, Counting]:
    """The job of every other test here, after so many past events and operations of its own."""
    first = Stage(await make_kit(folder), folder)
    await first.build()
    await first.put(OPERATIONS, compiling.operation("writer").model_copy(update={"id": "old"}))
    await first.put(EVENTS, compiling.event().model_copy(update={"id": "past"}))
    await first.kit.store.close()
    multiply(folder / "truth.sqlite", "r_operations", "old", past // 2)
    multiply(folder / "truth.sqlite", "r_events", "past", past // 2)
    counting: list[Counting] = []

    def wrap(store: Store) -> Store:
        counting.append(Counting(store))
        return counting[0]

    stage = Stage(await make_kit(folder, wrap=wrap), folder)
    assert (await stage.get(OPERATIONS, f"old-{past // 2}")).job == "job-1"
    assert (await stage.get(EVENTS, f"past-{past // 2}")).id.startswith("past")
    return stage, counting[0]


async def test_a_hundred_thousand_past_events_cost_nothing(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    short, counted = await with_history(tmp_path, 10)
    long, counted_too = await with_history(tmp_path_factory.mktemp("long"), 100_000)
    for agent in AGENTS:
        for counts in (counted, counted_too):
            counts.gets = counts.rows = 0
        one = await short.compile(agent, step_of(agent))
        two = await long.compile(agent, step_of(agent))
        assert counted.gets > 3
        assert (counted_too.gets, counted_too.rows) == (counted.gets, counted.rows)
        assert two == one
    await short.kit.store.close()
    await long.kit.store.close()


IN_ANOTHER_PROCESS = """
import asyncio, sys, time
from pathlib import Path
time.time = lambda: 4_000_000_000.0  # another day
from tests.runtime.engine.compiling import AGENTS, Stage, step_of
from tests.world import make_kit

async def main():
    folder = Path(sys.argv[1])
    stage = Stage(await make_kit(folder, seed=9), folder)
    made = await stage.compile(sys.argv[2], sys.argv[3])
    sys.stdout.write(made.model_dump_json())
    await stage.kit.store.close()

asyncio.run(main())
"""


@pytest.mark.parametrize("agent", ["reader", "analyst", "reviewer"])
async def test_another_process_compiles_the_same_bytes(
    stage: Stage, tmp_path: Path, agent: Agent
) -> None:
    here = await stage.compile(agent, step_of(agent))
    ran = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-c", IN_ANOTHER_PROCESS, str(tmp_path), agent, step_of(agent)],
        cwd=ROOT,
        env={"PYTHONHASHSEED": "4", "TZ": "Asia/Tokyo", "PATH": ""},
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout == here.model_dump_json()


async def test_a_stored_projection_proves_itself(stage: Stage) -> None:
    work = await stage.work("writer")
    made = await stage.compile("writer")
    await stage.compiler.persist(work, made)
    await stage.compiler.persist(work, made)
    stored: ProjectionRecord = await stage.get(PROJECTIONS, made.id)
    assert stored == made.record
    assert stored.rendered_chars == len(made.text)
    again = await stage.compile("writer")
    assert again.record == stored
    assert "Ж-engine" not in stored.manifest


async def test_another_projection_under_a_stored_id_is_a_defect(stage: Stage) -> None:
    work = await stage.work("writer")
    made = await stage.compile("writer")
    await stage.put(PROJECTIONS, made.record.model_copy(update={"rendered_chars": 1}))
    with pytest.raises(InvariantBroken):
        await stage.compiler.persist(work, made)


async def test_a_stale_worker_stores_no_projection(stage: Stage) -> None:
    work = await stage.work("writer")
    made = await stage.compile("writer")
    await stage.change(OPERATIONS, "job-1:writer", epoch=2)
    with pytest.raises(FenceLost):
        await stage.compiler.persist(work, made)
    assert await stage.store.get(PROJECTIONS.key(ACME, made.id)) is None


async def test_every_citation_names_a_record_that_exists(stage: Stage) -> None:
    by_name: dict[str, Collection[Any]] = {
        each.name: each
        for each in (
            APPROVALS,
            ARTIFACTS,
            COMMANDS,
            EVENTS,
            JOBS,
            OPERATIONS,
            POLICIES,
            RECEIPTS,
            REVISIONS,
            VERIFICATIONS,
        )
    }
    made = await stage.compile("reviewer")
    own = "\n".join(line for line in made.text.splitlines() if line.startswith("- "))
    cited = re.findall(r"\[([a-z_]+)/([^\]/]+)\]", own)
    assert {name for name, _ in cited} >= {"operations", "jobs", "policies", "approvals"}
    for name, id_ in cited:
        assert await stage.store.get(by_name[name].key(ACME, id_)) is not None
