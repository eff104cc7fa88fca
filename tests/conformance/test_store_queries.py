"""Store conformance: declared queries, their order, their pages and their bounds."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

import pytest

from runtime.domain.values import Tenant
from runtime.errors import BadInput, UndeclaredQuery
from runtime.ports import Ask, Collection, Commit, Put, Reads
from tests.conformance.records import (
    ABROAD,
    ACME,
    MOMENTS,
    OTHER,
    TASKS,
    Closed,
    Moment,
    Open,
    Task,
)
from tests.conformance.stores import Attempts, Backend, QuickClock

NOW = QuickClock().now()
TICK = timedelta(microseconds=1)


def task(id_: str, rank: int = 0, *, kind: str = "post", **more: object) -> Task:
    fields = {"id": id_, "kind": kind, "rank": rank, "state": Open(ready_at=NOW)} | more
    return Task.model_validate(fields)


async def add(store: Attempts, *tasks: Task, scope: Tenant = ACME) -> None:
    async def body(reads: Reads) -> Commit[None]:
        return Commit(None, [Put(TASKS.key(scope, one.id), one) for one in tasks])

    await store.transact(body)


async def ids(store: Attempts, ask: Ask[Task]) -> list[str]:
    return [row.key.id for row in (await store.find(ask)).rows]


async def walk(store: Attempts, ask: Ask[Task]) -> list[list[str]]:
    """All pages."""
    pages: list[list[str]] = []
    after = None
    for _ in range(50):
        page = await store.find(
            Ask(
                ask.collection,
                ask.query,
                ask.scope,
                ask.equals,
                ask.since,
                ask.before,
                after,
                ask.limit,
            )
        )
        pages.append([row.key.id for row in page.rows])
        after = page.cursor
        if after is None:
            return pages
    pytest.fail("the pages do not end")


async def test_rows_come_in_order_then_by_id(store: Attempts) -> None:
    await add(store, task("b", 2), task("a", 2), task("c", 1), task("d", 10))
    assert await ids(store, Ask(TASKS, "all", ACME)) == ["c", "a", "b", "d"]


async def test_every_filter_is_an_equality(store: Attempts) -> None:
    await add(
        store,
        task("a"),
        task("b", kind="mail"),
        task("c", urgent=True),
        task("d", owner="w", kind="mail"),
    )
    assert await ids(store, Ask(TASKS, "ranked", ACME, ("post", False))) == ["a"]
    assert await ids(store, Ask(TASKS, "ranked", ACME, ("post", True))) == ["c"]
    assert await ids(store, Ask(TASKS, "of_owner", ACME, ("w",))) == ["d"]
    assert await ids(store, Ask(TASKS, "of_owner", ACME, (None,))) == ["a", "b", "c"]
    assert await ids(store, Ask(TASKS, "ranked", ACME, ("' OR 1=1 --", False))) == []


async def test_a_row_whose_ordered_field_is_absent_is_in_no_page(store: Attempts) -> None:
    await add(store, task("a"), task("b", state=Closed(at=NOW)))
    assert await ids(store, Ask(TASKS, "ready", ACME, ("open",))) == ["a"]
    assert await ids(store, Ask(TASKS, "ready", ACME, ("closed",))) == []
    await add(store, task("a", state=Closed(at=NOW)))
    assert await ids(store, Ask(TASKS, "ready", ACME, ("open",))) == []


@pytest.mark.parametrize(
    ("rows", "pages"), [(2, [2]), (3, [3]), (4, [3, 1]), (6, [3, 3]), (0, [0])]
)
async def test_a_page_ends_at_its_limit_and_says_whether_there_is_more(
    store: Attempts, rows: int, pages: list[int]
) -> None:
    await add(store, *[task(f"t{n}", n) for n in range(rows)])
    walked = await walk(store, Ask(TASKS, "all", ACME, limit=3))
    assert [len(page) for page in walked] == pages
    assert [name for page in walked for name in page] == [f"t{n}" for n in range(rows)]


async def test_ties_at_the_end_of_a_page_are_neither_lost_nor_repeated(store: Attempts) -> None:
    names = [f"t{n:02}" for n in range(11)]
    await add(store, *[task(name, 5) for name in reversed(names)])
    for limit in (1, 2, 3, 10, 11):
        walked = await walk(store, Ask(TASKS, "all", ACME, limit=limit))
        assert [name for page in walked for name in page] == names


async def test_ties_across_tenants_are_neither_lost_nor_repeated(store: Attempts) -> None:
    for scope in (ACME, OTHER, ABROAD):
        await add(store, task("a", 5), task("b", 5), scope=scope)
    for limit in (1, 2, 4, 6):
        seen: list[tuple[str, str]] = []
        ask = Ask(TASKS, "all", None, limit=limit)
        while True:
            page = await store.find(ask)
            seen += [(row.key.id, row.key.scope.path) for row in page.rows]
            if page.cursor is None:
                break
            ask = Ask(TASKS, "all", None, after=page.cursor, limit=limit)
        assert len(seen) == len(set(seen)) == 6
        assert [name for name, _ in seen] == ["a"] * 3 + ["b"] * 3


async def test_since_is_included_and_before_is_not(store: Attempts) -> None:
    times = [NOW - TICK, NOW, NOW + TICK]
    await add(store, *[task(f"t{n}", state=Open(ready_at=at)) for n, at in enumerate(times)])

    async def between(since: datetime | None, before: datetime | None) -> list[str]:
        return await ids(store, Ask(TASKS, "ready", ACME, ("open",), since, before))

    assert await between(NOW, None) == ["t1", "t2"]
    assert await between(None, NOW) == ["t0"]
    assert await between(NOW, NOW + TICK) == ["t1"]
    assert await between(NOW, NOW) == []
    pages = await walk(store, Ask(TASKS, "ready", ACME, ("open",), NOW, NOW + 2 * TICK, limit=1))
    assert pages == [["t1"], ["t2"]]


async def test_times_are_ordered_as_times(store: Attempts) -> None:
    moments = [
        NOW.replace(year=year, microsecond=part) for year in (999, 2027) for part in (0, 9, 10)
    ]

    async def body(reads: Reads) -> Commit[None]:
        puts = [Put(MOMENTS.key(ACME, f"m{9 - n}"), Moment(at=at)) for n, at in enumerate(moments)]
        return Commit(None, puts)

    await store.transact(body)
    page = await store.find(Ask(MOMENTS, "by_time", ACME))
    assert [row.record.at for row in page.rows] == moments


async def test_a_page_continues_behind_a_row_that_has_gone(store: Attempts) -> None:
    await add(store, *[task(f"t{n}", n) for n in range(4)])
    first = await store.find(Ask(TASKS, "all", ACME, limit=2))
    await add(store, task("t1", 9), task("t0", 3))
    assert await ids(store, Ask(TASKS, "all", ACME, after=first.cursor)) == ["t2", "t0", "t3", "t1"]


async def test_broken_rows_are_reported_and_skipped_and_the_pages_go_on(backend: Backend) -> None:
    store = backend.open()
    await add(store, *[task(f"t{n}", n) for n in range(5)])
    backend.spoil(TASKS.key(ACME, "t1"), b"{")
    backend.spoil(TASKS.key(ACME, "t3"), b'{"id": "t3"}')
    first = await store.find(Ask(TASKS, "all", ACME, limit=2))
    assert [row.key.id for row in first.rows] == ["t0"]
    assert [path for path, _ in first.unreadable] == [TASKS.key(ACME, "t1").path]
    assert "json_invalid" in first.unreadable[0][1]
    rest = await store.find(Ask(TASKS, "all", ACME, after=first.cursor))
    assert [row.key.id for row in rest.rows] == ["t2", "t4"]
    assert [path for path, _ in rest.unreadable] == [TASKS.key(ACME, "t3").path]


@pytest.mark.parametrize(
    "ask",
    [
        Ask(TASKS, "of_nobody", ACME),
        Ask(TASKS, "all", ACME, ("extra",)),
        Ask(TASKS, "ranked", ACME, ("post",)),
        Ask(TASKS, "ranked", None, ("post", False)),
        Ask(Collection("strange", Task), "all", ACME),
    ],
)
async def test_a_query_that_was_not_declared_is_refused(store: Attempts, ask: Ask[Task]) -> None:
    with pytest.raises(UndeclaredQuery) as caught:
        await store.find(ask)
    assert caught.value.fields["query"] in {ask.query, "-"}


@pytest.mark.parametrize(("limit", "accepted"), [(0, False), (1, True), (500, True), (501, False)])
async def test_a_limit_is_between_1_and_500(store: Attempts, limit: int, *, accepted: bool) -> None:
    if accepted:
        await store.find(Ask(TASKS, "all", ACME, limit=limit))
        return
    with pytest.raises(BadInput, match="limit"):
        await store.find(Ask(TASKS, "all", ACME, limit=limit))


async def test_a_cursor_of_another_ask_or_an_edited_one_is_refused(store: Attempts) -> None:
    for scope in (ACME, OTHER):
        await add(store, task("a", 1), task("b", 2), scope=scope)
    page = await store.find(Ask(TASKS, "all", ACME, limit=1))
    cursor = page.cursor
    assert cursor is not None
    edited = [cursor[:-4] + "AAA=", cursor[4:], cursor + "AAAA", "", "ü", "{}", "A" * 40]
    asks: Sequence[Ask[Task]] = [
        *[Ask(TASKS, "all", ACME, after=text) for text in edited],
        Ask(TASKS, "all", OTHER, after=cursor),
        Ask(TASKS, "all", None, after=cursor),
        Ask(TASKS, "ranked", ACME, ("post", False), after=cursor),
        Ask(TASKS, "all", ACME, since=2, after=cursor),
    ]
    for ask in asks:
        with pytest.raises(BadInput, match="after"):
            await store.find(ask)


async def test_a_query_sees_one_tenant_and_across_sees_all(store: Attempts) -> None:
    for scope in (ACME, OTHER, ABROAD):
        await add(store, task(f"{scope.workspace}-{scope.brand}", 1), scope=scope)
    assert await ids(store, Ask(TASKS, "all", OTHER)) == ["acme-other"]
    page = await store.find(Ask(TASKS, "all", None))
    assert [(row.key.id, row.key.scope) for row in page.rows] == [
        ("acme-main", ACME),
        ("acme-other", OTHER),
        ("zeta-main", ABROAD),
    ]
    assert await ids(store, Ask(TASKS, "all", Tenant(workspace="acme", brand="mai"))) == []
