"""Carries operations by hand: claims like a worker, runs the real handlers, moves the clock.

Commits can be counted, made to fail around, or preceded by a theft of the operation, by wrapping
the store; the process dies by `Crash`. Nothing of it is in production.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Literal, TypeVar

from runtime.domain.effect import Applied, Command
from runtime.domain.job import Done, Job
from runtime.domain.operation import LEASE, Claimed, Operation, release
from runtime.domain.receipt import LateAnswer, Receipt, Verification
from runtime.domain.values import Record
from runtime.engine.dispatcher import Dispatcher
from runtime.engine.effects import EXPORT, RECONCILE, VERIFY
from runtime.engine.kit import Kit
from runtime.engine.reconciler import Reconciler
from runtime.engine.scanner import Scanner
from runtime.engine.verifier import Verifier
from runtime.engine.work import Handler, Work
from runtime.engine.worker import Worker
from runtime.ports import Ask, Body, Commit, Hint, Key, Page, Put, Reads, Store, Write
from runtime.stores.collections import (
    COMMANDS,
    JOBS,
    LATE_ANSWERS,
    OPERATIONS,
    RECEIPTS,
    VERIFICATIONS,
)
from tests.effects_made import Act, Crash, Export, Only, Provider, export
from tests.world import ACME, ManualClock, make_kit

R = TypeVar("R", bound=Record)
T = TypeVar("T")
ROUNDS_MAX = 60
Before = Callable[[], Awaitable[None]]


class Watched:
    """A store that counts transactions and lets something happen at one of them."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.count = 0
        self.crash_at: tuple[int, Literal["before", "after"]] | None = None
        self.before: tuple[int, Before] | None = None

    async def transact(self, body: Body[T]) -> T:
        self.count += 1
        mine = self.count
        if self.before is not None and self.before[0] == mine:
            await self.before[1]()
        if self.crash_at == (mine, "before"):
            raise Crash
        outcome = await self.store.transact(body)
        if self.crash_at == (mine, "after"):
            raise Crash
        return outcome

    async def get(self, key: Key[R]) -> R | None:
        return await self.store.get(key)

    async def find(self, ask: Ask[R]) -> Page[R]:
        return await self.store.find(ask)

    async def close(self) -> None:
        await self.store.close()


@dataclass
class Carrier:
    """One process: a kit, the handlers of effects, and the means to run them to the end."""

    kit: Kit
    clock: ManualClock
    watched: Watched
    provider: Provider

    @property
    def handlers(self) -> dict[str, Handler]:
        only = Only(self.provider)
        return {
            EXPORT: Dispatcher(only),
            RECONCILE: Reconciler(only),
            VERIFY: Verifier(only),
        }

    async def begin(self, export: Export) -> None:
        async def body(reads: Reads) -> Commit[None]:
            known = await reads.get(JOBS.key(ACME, export.job.id))
            return Commit(None, () if known is not None else tuple(export.writes))

        await self.watched.store.transact(body)

    async def put(self, *writes: Write) -> None:
        """Change the world behind everybody's back."""

        async def body(reads: Reads) -> Commit[None]:
            return Commit(None, writes)

        await self.watched.store.transact(body)

    async def claim(self, operation: str) -> Work:
        work = await Worker(self.kit, self.handlers).claim(Hint(ACME, operation))
        assert work is not None, f"{operation} is not claimable"
        return work

    async def carry(self, operation: str) -> None:
        """One claim and its handler, faults and all."""
        work = await self.claim(operation)
        await self.handlers[work.operation.kind](work)

    async def ready(self) -> list[Operation]:
        page = await self.kit.store.find(
            Ask(
                OPERATIONS,
                "ready",
                None,
                equals=("pending",),
                before=self.clock.now() + timedelta(microseconds=1),
            )
        )
        return [found.record for found in page.rows]

    async def to_the_end(self) -> None:
        """Run what is ready, move the clock, scan: until nothing moves any more."""
        quiet = 0
        for _ in range(ROUNDS_MAX):
            found = await self.ready()
            for operation in found:
                await self.carry(operation.id)
            if not found:
                quiet += 1
                if quiet > 3:
                    return
                self.clock.advance(LEASE if quiet < 3 else timedelta(hours=1))
                await Scanner(self.kit).once()
            else:
                quiet = 0
        message = "it did not come to an end"
        raise AssertionError(message)

    async def steal(self, operation: str) -> None:
        """Another worker takes the operation over, as a scan and a claim would."""
        key = OPERATIONS.key(ACME, operation)

        async def body(reads: Reads) -> Commit[None]:
            stored = await reads.get(key)
            assert stored is not None
            if not isinstance(stored.state, Claimed):
                return Commit(None)
            return Commit(None, (Put(key, release(stored, self.clock.now())),))

        await self.watched.store.transact(body)
        thief = Kit(self.clock, self.kit.ids, self.watched.store, self.kit.wakes)
        assert await Worker(thief, self.handlers).claim(Hint(ACME, operation)) is not None

    # --- what is stored ---------------------------------------------------------------------------

    async def job(self, name: str = "job-1") -> Job:
        found = await self.kit.store.get(JOBS.key(ACME, name))
        assert found is not None
        return found

    async def operation(self, id_: str) -> Operation:
        found = await self.kit.store.get(OPERATIONS.key(ACME, id_))
        assert found is not None
        return found

    async def operations(self, job: str = "job-1") -> list[Operation]:
        page = await self.kit.store.find(Ask(OPERATIONS, "of_job", ACME, equals=(job,)))
        return [found.record for found in page.rows]

    async def command(self, job: str = "job-1") -> Command | None:
        page = await self.kit.store.find(Ask(COMMANDS, "of_job", ACME, equals=(job,)))
        assert len(page.rows) <= 1
        return page.rows[0].record if page.rows else None

    async def receipts(self, job: str = "job-1") -> list[Receipt]:
        page = await self.kit.store.find(Ask(RECEIPTS, "of_job", ACME, equals=(job,)))
        return [found.record for found in page.rows]

    async def looks(self, job: str = "job-1") -> list[Verification]:
        page = await self.kit.store.find(Ask(VERIFICATIONS, "of_job", ACME, equals=(job,)))
        return [found.record for found in page.rows]

    async def late(self, command: str) -> list[LateAnswer]:
        ask = Ask(LATE_ANSWERS, "of_command", ACME, equals=(command,))
        return [found.record for found in (await self.kit.store.find(ask)).rows]

    async def everything(self) -> list[str]:
        """All that is stored about the work, but for leases and tags of the operations."""
        stored: list[Record] = [await self.job(), *await self.receipts(), *await self.looks()]
        stored.extend([command] if (command := await self.command()) else [])
        return sorted(record.model_dump_json() for record in stored)


async def carrier(
    folder: Path,
    provider: Provider,
    *,
    clock: ManualClock | None = None,
    seed: int = 0,
    wrap: Callable[[Store], Store] = lambda store: store,
) -> Carrier:
    """A process over the data in `folder`. Processes over the same data need their own seeds."""
    clock = clock or ManualClock()
    kit = await make_kit(folder, clock=clock, seed=seed, wrap=lambda store: Watched(wrap(store)))
    assert isinstance(kit.store, Watched)
    return Carrier(kit, clock, kit.store, provider)


async def begin(folder: Path, *script: Act) -> Carrier:
    at = await carrier(folder, Provider(list(script)))
    await at.begin(export())
    return at


async def settled(at: Carrier) -> None:
    """The whole story is told once: one effect, one receipt, verified, done, nothing left over."""
    assert len(at.provider.ledger) == 1
    assert len(set(at.provider.calls)) == len(at.provider.calls)
    receipts = await at.receipts()
    assert [receipt.outcome for receipt in receipts] == ["applied"]
    command = await at.command()
    assert command is not None
    assert command.state == Applied(at=receipts[0].at, receipt=receipts[0].id)
    job = await at.job()
    assert isinstance(job.state, Done)
    assert (job.stage, job.receipt) == ("done", receipts[0].id)
    assert [step.stage for step in job.steps] == ["decide_draft", "export", "verify"]
    looks = await at.looks()
    assert looks[-1].verified
    assert job.verification == looks[-1].id
    assert {operation.state.name for operation in await at.operations()} == {"succeeded"}
