"""Store conformance: any history of commits equals the same history on plain dictionaries."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable, Coroutine
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from runtime.domain.values import Scope
from runtime.errors import AlreadyExists
from runtime.ports import Ask, Commit, Create, Delete, Key, Put, Reads, Value, Write
from runtime.stores.transactions import Stale
from tests.conformance.records import ABROAD, ACME, OTHER, TASKS, Closed, Open, Task
from tests.conformance.stores import Attempts, Backend, QuickClock

T = TypeVar("T")
NOW = QuickClock().now()
SCOPES = st.sampled_from([ACME, OTHER, ABROAD])
NAMES = st.sampled_from([f"t{n}" for n in range(5)])
TIMES = st.integers(0, 4).map(lambda ticks: NOW + timedelta(microseconds=ticks))
STATES = st.one_of(TIMES.map(lambda at: Open(ready_at=at)), TIMES.map(lambda at: Closed(at=at)))
Body = Callable[[Reads], Coroutine[Any, Any, Commit[Any]]]


@st.composite
def writes(draw: st.DrawFn) -> Write:
    key = TASKS.key(draw(SCOPES), draw(NAMES))
    kind = draw(st.sampled_from([Create, Put, Delete]))
    if kind is Delete:
        return Delete(key)
    task = Task(
        id=key.id,
        kind=draw(st.sampled_from(["post", "mail"])),
        rank=draw(st.integers(-2, 2)),
        urgent=draw(st.booleans()),
        owner=draw(st.sampled_from([None, "w", "v"])),
        state=draw(STATES),
    )
    return Create(key, task) if kind is Create else Put(key, task)


@st.composite
def asks(draw: st.DrawFn) -> Ask[Task]:
    name = draw(st.sampled_from(["ready", "ranked", "of_owner", "all"]))
    equals: dict[str, tuple[Value, ...]] = {
        "ready": (draw(st.sampled_from(["open", "closed"])),),
        "ranked": (draw(st.sampled_from(["post", "mail"])), draw(st.booleans())),
        "of_owner": (draw(st.sampled_from([None, "w"])),),
        "all": (),
    }
    bounds: dict[str, st.SearchStrategy[Value]] = {"ready": TIMES, "of_owner": NAMES}
    bound = bounds.get(name, st.integers(-2, 2))
    return Ask(
        TASKS,
        name,
        draw(SCOPES if name == "ranked" else st.one_of(st.none(), SCOPES)),
        equals[name],
        since=draw(st.one_of(st.none(), bound)),
        before=draw(st.one_of(st.none(), bound)),
        limit=draw(st.integers(1, 4)),
    )


def ordered_value(task: Task, query: str) -> Any:  # noqa: ANN401 - a text, a number or a time
    match query:
        case "ready":
            return task.state.ready_at if isinstance(task.state, Open) else None
        case "of_owner":
            return task.id
    return task.rank


def fits(task: Task, ask: Ask[Task]) -> bool:
    """What the contract says of one row and one ask, in words a reader can check."""
    filters: dict[str, tuple[Value, ...]] = {
        "ready": (task.state.name,),
        "ranked": (task.kind, task.urgent),
        "of_owner": (task.owner,),
        "all": (),
    }
    value = ordered_value(task, ask.query)
    return (
        filters[ask.query] == ask.equals
        and value is not None
        and (ask.since is None or value >= ask.since)
        and (ask.before is None or value < ask.before)
    )


class StoreAgainstModel(RuleBasedStateMachine):
    """Two handles on the same data, driven as one history."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.folder = tempfile.TemporaryDirectory()
        self.model: dict[tuple[str, str], tuple[Scope, Task]] = {}

    @initialize()
    def open(self) -> None:
        self.backend = Backend(Path(self.folder.name))
        self.handles: list[Attempts] = [self.backend.open(), self.backend.open()]

    def run(self, steps: Coroutine[Any, Any, T]) -> T:
        return self.loop.run_until_complete(steps)

    def transact(self, handle: int, body: Body) -> Any:  # noqa: ANN401 - the body's outcome
        return self.run(self.handles[handle].transact(body))

    def apply(self, several: list[Write]) -> bool:
        """Apply to the model, whole or not at all; whether it applied."""
        after = dict(self.model)
        for write in several:
            at = (write.key.scope.path, write.key.id)
            match write:
                case Delete():
                    after.pop(at, None)
                case Create() if at in after:
                    return False
                case Create() | Put():
                    after[at] = (write.key.scope, write.record)
        self.model = after
        return True

    @rule(handle=st.integers(0, 1), several=st.lists(writes(), max_size=4))
    def commit(self, handle: int, several: list[Write]) -> None:
        async def body(reads: Reads) -> Commit[bool]:
            for write in several:
                await reads.get(write.key)
            return Commit(True, several)

        applied = True
        try:
            self.transact(handle, body)
        except AlreadyExists:
            applied = False
        assert applied == self.apply(several)

    @rule(
        handle=st.integers(0, 1),
        ask=asks(),
        between=writes(),
        mine=writes(),
    )
    def commit_after_a_find_that_another_may_change(
        self, handle: int, ask: Ask[Task], between: Write, mine: Write
    ) -> None:
        """One attempt whose page is outdated is stale exactly if its page changed."""
        before = self.page(ask)

        async def other(reads: Reads) -> Commit[None]:
            return Commit(None, (between,))

        async def body(reads: Reads) -> Commit[None]:
            await reads.find(ask)
            try:
                await self.handles[1 - handle].transact(other)
            except AlreadyExists:
                assert not self.apply([between])
            else:
                assert self.apply([between])
            return Commit(None, (mine,))

        stale = exists = False
        try:
            self.run(self.handles[handle].attempt(body))
        except Stale:
            stale = True
        except AlreadyExists:
            exists = True
        if self.page(ask) != before:
            assert stale
        if not stale:
            assert self.apply([mine]) != exists

    def page(self, ask: Ask[Task]) -> tuple[list[tuple[str, Task]], bool]:
        """The model's page: (scope path, task) in order, and whether there is more."""
        rows = [
            (scope.path, task)
            for scope, task in self.model.values()
            if (ask.scope is None or scope == ask.scope) and fits(task, ask)
        ]
        rows.sort(key=lambda row: (ordered_value(row[1], ask.query), row[1].id, row[0]))
        return rows[: ask.limit], len(rows) > ask.limit

    @rule(handle=st.integers(0, 1), ask=asks(), inside=st.booleans())
    def find(self, handle: int, ask: Ask[Task], *, inside: bool) -> None:
        async def body(reads: Reads) -> Commit[Any]:
            return Commit(await reads.find(ask))

        page = self.transact(handle, body) if inside else self.run(self.handles[handle].find(ask))
        rows = [(row.key.scope.path, row.record) for row in page.rows]
        assert (rows, page.cursor is not None) == self.page(ask)

    @rule(handle=st.integers(0, 1), scope=SCOPES, name=NAMES)
    def read_in_a_body(self, handle: int, scope: Scope, name: str) -> None:
        key: Key[Task] = TASKS.key(scope, name)

        async def body(reads: Reads) -> Commit[Task | None]:
            return Commit(await reads.get(key))

        known = self.model.get((scope.path, name))
        assert self.transact(handle, body) == (None if known is None else known[1])

    @precondition(lambda self: hasattr(self, "handles"))
    @invariant()
    def every_record_is_the_models(self) -> None:
        for (path, name), (scope, task) in self.model.items():
            assert self.run(self.handles[0].get(TASKS.key(scope, name))) == task, path

    def teardown(self) -> None:
        self.run(self.backend.close())
        self.loop.close()
        self.folder.cleanup()


TestStoreAgainstModel = StoreAgainstModel.TestCase
TestStoreAgainstModel.settings = settings(max_examples=25, stateful_step_count=25, deadline=None)
