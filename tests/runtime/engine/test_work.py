"""Work: a fenced commit happens whole, once, and only by the newest claim (INV-3)."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from runtime.domain import operation as operations
from runtime.domain.event import Envelope
from runtime.domain.operation import LEASE, Operation
from runtime.domain.values import DIRECTORY, Scope, Trust
from runtime.engine import inbox
from runtime.engine.inbox import Task
from runtime.engine.kit import Kit
from runtime.engine.scanner import Scanner
from runtime.engine.work import Step, Work
from runtime.engine.worker import Worker
from runtime.errors import FenceLost, ScopeViolation
from runtime.ports import Commit, Create, Delete, Hint, Key, Put, Reads
from runtime.stores.collections import COUNTERS, EVENTS, OPERATIONS, Counter
from runtime.stores.scoped import Scoped
from tests.world import ACME, OTHER, ReplyLosing, make_kit

N = COUNTERS.key(ACME, "n")


async def nothing(work: Work) -> None:
    raise AssertionError


async def claimed(kit: Kit, scope: Scope = ACME) -> Work:
    envelope = Envelope(
        source="test",
        source_id="1",
        type="t",
        trust=Trust.OPERATOR,
        payload="{}",
        correlation="c",
    )
    await inbox.accept(kit, scope, envelope, Task("test", ("done",)))
    work = await Worker(kit, {"test": nothing}).claim(Hint(scope, inbox.operation_id(envelope)))
    assert work is not None
    return work


async def count(reads: Reads, current: Operation) -> Step[int]:
    known = await reads.get(N)
    raised = Counter(id="n", value=(known.value if known else 0) + 1)
    return Step(raised.value, (Put(N, raised),))


async def test_a_body_that_fails_leaves_nothing(tmp_path: Path) -> None:
    kit = await make_kit(tmp_path)
    work = await claimed(kit)
    before = await kit.store.get(OPERATIONS.key(ACME, work.operation.id))

    async def body(reads: Reads, current: Operation) -> Step[None]:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await work.commit(body)
    assert await kit.store.get(OPERATIONS.key(ACME, work.operation.id)) == before
    assert not work.settled


@pytest.mark.parametrize(
    ("state", "ended"),
    [
        ("succeed", "completed"),
        ("fail", "dead_lettered"),
        ("require_operator", "dead_lettered"),
        ("cancel", "rejected"),
        ("release", "accepted"),
        ("wait", "accepted"),
    ],
)
async def test_an_event_ends_with_its_operation_in_the_same_commit(
    tmp_path: Path, state: str, ended: str
) -> None:
    """INV-1: neither is ever over without the other."""
    kit = await make_kit(tmp_path)
    work = await claimed(kit)

    async def body(reads: Reads, current: Operation) -> Step[None]:
        now = work.now()
        after = {
            "succeed": operations.succeed(current, now),
            "fail": operations.fail(current, "r", now),
            "cancel": operations.cancel(current, "r", now),
            "require_operator": operations.require_operator(current, "r", now),
            "release": operations.release(current, now),
            "wait": operations.wait(current, "x", now + LEASE),
        }[state]
        return Step(None, operation=after)

    await work.commit(body)
    event = await kit.store.get(EVENTS.key(ACME, work.operation.event or ""))
    assert event is not None
    assert event.state.name == ended
    assert work.settled


@pytest.mark.parametrize("who", ["scanner", "worker"])
async def test_an_event_also_ends_where_no_handler_ends_its_operation(
    tmp_path: Path, who: str
) -> None:
    """INV-1: parked by a scan after its last attempt, or never started before its deadline."""
    kit = await make_kit(tmp_path)
    work = await claimed(kit)
    key = OPERATIONS.key(ACME, work.operation.id)
    last = work.operation.model_copy(update={"attempt": work.operation.attempts_max})
    late = operations.release(last, work.now())

    async def body(reads: Reads) -> Commit[None]:
        return Commit(None, (Put(key, last if who == "scanner" else late),))

    await kit.store.transact(body)
    kit.clock.advance(LEASE)  # type: ignore[attr-defined]  # the manual clock
    if who == "scanner":
        assert (await Scanner(kit).once()).parked == 1
    else:
        hint = Hint(ACME, work.operation.id)
        assert await Worker(kit, {"test": nothing}).claim(hint) is None
    stored = await kit.store.get(key)
    event = await kit.store.get(EVENTS.key(ACME, work.operation.event or ""))
    assert stored is not None
    assert event is not None
    assert stored.state.name == ("operator_required" if who == "scanner" else "failed")
    assert event.state.name == "dead_lettered"


async def test_an_operation_without_its_event_still_ends(tmp_path: Path) -> None:
    kit = await make_kit(tmp_path)
    work = await claimed(kit)

    async def body(reads: Reads, current: Operation) -> Step[None]:
        return Step(None, (Delete(EVENTS.key(ACME, current.event or "")),))

    await work.commit(body)

    async def succeed(reads: Reads, current: Operation) -> Step[None]:
        return Step(None, operation=operations.succeed(current, work.now()))

    await work.commit(succeed)
    stored = await kit.store.get(OPERATIONS.key(ACME, work.operation.id))
    assert stored is not None
    assert stored.state.name == "succeeded"


async def test_a_claim_that_settled_writes_no_more(tmp_path: Path) -> None:
    kit = await make_kit(tmp_path)
    work = await claimed(kit)

    async def release(reads: Reads, current: Operation) -> Step[None]:
        return Step(None, operation=operations.release(current, work.now()))

    await work.commit(release)
    for _ in range(2):
        with pytest.raises(FenceLost):
            await work.commit(count)
    assert await kit.store.get(N) is None


async def test_a_lost_reply_of_the_last_commit_is_recognised(tmp_path: Path) -> None:
    """The commit stood and left the claim: running it again is no lost fence."""
    kit = await make_kit(tmp_path, wrap=ReplyLosing)
    work = await claimed(kit)

    async def end(reads: Reads, current: Operation) -> Step[int]:
        step = await count(reads, current)
        return Step(step.outcome, step.writes, operations.succeed(current, work.now()))

    assert await work.commit(end) == 1
    found = await kit.store.get(N)
    assert found is not None
    assert found.value == 1
    assert work.settled


async def test_work_reaches_its_own_tenant_only(tmp_path: Path) -> None:
    """INV-18: a handler cannot write what is another tenant's, or the directory's."""
    kit = await make_kit(tmp_path)
    work = await claimed(kit)
    for scope in (OTHER, DIRECTORY):
        key = COUNTERS.key(scope, "n")

        async def write(reads: Reads, current: Operation, key: Key[Counter] = key) -> Step[None]:
            return Step(None, (Put(key, Counter(id="n", value=1)),))

        async def read(reads: Reads, current: Operation, key: Key[Counter] = key) -> Step[None]:
            await reads.get(key)
            return Step(None)

        for body in (write, read):
            with pytest.raises(ScopeViolation):
                await work.commit(body)
        with pytest.raises(ScopeViolation):
            await work.store.get(key)
        assert await kit.store.get(key) is None


async def test_a_commit_of_two_scopes_has_a_handle_for_both(tmp_path: Path) -> None:
    kit = await make_kit(tmp_path)
    work = await claimed(kit, DIRECTORY)

    async def write(reads: Reads, current: Operation) -> Step[None]:
        return Step(None, (Create(N, Counter(id="n", value=1)),))

    with pytest.raises(ScopeViolation):
        await work.commit(write)
    await work.commit(write, Scoped(kit.store, (DIRECTORY, ACME)))
    assert await kit.store.get(N) is not None


async def test_a_fence_is_checked_whatever_the_clock_says(tmp_path: Path) -> None:
    """Clocks decide liveness only: a claim that ran out writes as long as nobody took over."""
    kit = await make_kit(tmp_path)
    work = await claimed(kit)
    kit.clock.advance(10 * LEASE + timedelta(days=1))  # type: ignore[attr-defined]  # the manual clock
    assert await work.commit(count) == 1
