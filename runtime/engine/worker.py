"""The worker loop: claims operations, lets handlers carry them, renews leases, drains on stop.

Keeps INV-3 and INV-4 by claiming in a transaction (epoch + 1) and INV-19 by ending each attempt in
a stored state: a handler's fault returns the operation to pending with a delay, and when its retry
budget is spent a person is asked. Hints say where to look; the query `ready` finds the rest.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

import structlog

from runtime.domain import operation as operations
from runtime.domain.operation import LEASE, Claimed, Operation, Pending, Refused
from runtime.domain.values import Directory, Scope, sha256
from runtime.engine.approvals import At
from runtime.engine.effects import lost_of
from runtime.engine.kit import Kit
from runtime.engine.marks import dirty_operation
from runtime.engine.services import Stop
from runtime.engine.work import Handler, Step, Work, event_writes
from runtime.errors import FenceLost, HarmoniaError
from runtime.ports import Ask, Commit, Found, Hint, Put, Reads, Write
from runtime.stores.collections import OPERATIONS

PAGE: Final = 100
LANE_PAGE: Final = 20
PAGES_MAX: Final = 10
"""So many pages are looked through for work that does not stand behind other work of its lane."""
POLL_SECONDS: Final = 0.5

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Limits:
    """How much one worker takes at a time."""

    concurrency: int = 16
    lease: timedelta = LEASE
    poll_seconds: float = POLL_SECONDS


class Worker:
    """Carries claimable operations of the kinds it has handlers for."""

    def __init__(
        self, kit: Kit, handlers: Mapping[str, Handler], limits: Limits | None = None
    ) -> None:
        """Make a random owner token; only its digest is stored."""
        self._kit = kit
        self._handlers = handlers
        self._limits = limits or Limits()
        self._owner = sha256(kit.ids.token().encode())
        self._running: dict[tuple[Scope, str], asyncio.Task[None]] = {}
        self._works: dict[tuple[Scope, str], Work] = {}
        self._stop: Stop | None = None
        self._freed = asyncio.Event()
        self._looked_at = float("-inf")

    async def run(self, stop: Stop) -> None:
        """Work until asked to stop, then let what runs come to its end."""
        self._stop = stop
        renewing = asyncio.create_task(self._renew_leases())
        waiting: list[Hint] = []
        while not stop.asked:
            try:
                waiting = await self._round(waiting)
            except HarmoniaError as error:
                log.warning("worker_round_failed", error=type(error).__name__)
                await stop.pause(self._kit, self._limits.poll_seconds)
        await self.drain()
        renewing.cancel()
        await asyncio.gather(renewing, return_exceptions=True)

    async def drain(self) -> None:
        """Wait until every running handler has ended."""
        while self._running:
            await asyncio.wait(list(self._running.values()))

    async def idle(self) -> bool:
        """One look around, for tests and the simulation: start what is ready; anything started?"""
        found = await self._ready()
        for hint in found:
            self._start(hint)
        return bool(found)

    async def _round(self, waiting: list[Hint]) -> list[Hint]:
        while waiting and len(self._running) < self._limits.concurrency:
            self._start(waiting.pop(0))
        if len(self._running) >= self._limits.concurrency:
            self._freed.clear()
            await self._freed.wait()
            return waiting
        clock = self._kit.clock
        since = clock.monotonic() - self._looked_at
        if since >= self._limits.poll_seconds:
            self._looked_at = clock.monotonic()
            found = await self._ready()
            if found:
                return [*waiting, *found]
            since = 0.0
        hints = await self._kit.wakes.next(self._limits.poll_seconds - since)
        return [*waiting, *hints]

    async def _ready(self) -> list[Hint]:
        """Claimable operations over all tenants, taken in turns so that none starves another.

        Of a lane only the first is worth a claim: a long queue of one chat fills no page.
        """
        firsts: dict[object, Found[Operation]] = {}
        busy = {(work.scope, work.operation.in_lane) for work in self._works.values()}
        after: str | None = None
        before = self._kit.clock.now() + timedelta(microseconds=1)
        for _ in range(PAGES_MAX):
            ask = Ask(
                OPERATIONS, "ready", None, ("pending",), before=before, after=after, limit=PAGE
            )
            page = await self._kit.store.find(ask)
            for path, cause in page.unreadable:
                log.error("operation_unreadable", key=path, cause=cause)
            for found in page.rows:
                self._note(found, firsts, busy)
            after = page.cursor
            if after is None or len(firsts) >= PAGE:
                break
        return in_turns([Hint(each.key.scope, each.record.id) for each in firsts.values()])

    def _note(
        self,
        found: Found[Operation],
        firsts: dict[object, Found[Operation]],
        busy: set[tuple[Scope, str | None]],
    ) -> None:
        """Keep a found operation if it may be claimed now, as far as this process knows."""
        operation, scope = found.record, found.key.scope
        if operation.kind not in self._handlers or (scope, operation.id) in self._running:
            return
        lane = (scope, operation.in_lane)
        if operation.in_lane is None:
            firsts[scope, None, operation.id] = found
        elif lane not in busy:
            known = firsts.get(lane)
            if known is None or operation.lane_order < known.record.lane_order:
                firsts[lane] = found

    def _start(self, hint: Hint) -> None:
        place = (hint.scope, hint.operation)
        if place in self._running:
            return
        task = asyncio.create_task(self._attempt(hint), name=hint.operation)
        self._running[place] = task
        task.add_done_callback(lambda _: self._ended(place))

    def _ended(self, place: tuple[Scope, str]) -> None:
        self._running.pop(place, None)
        self._freed.set()

    async def _attempt(self, hint: Hint) -> None:
        """Carry one operation, and those that its ending commits created and claimed at once."""
        try:
            taken = await self._take(hint)
        except HarmoniaError as error:
            log.warning("claim_failed", operation=hint.operation, error=type(error).__name__)
            return
        while taken is not None:
            work = Work(self._kit, hint.scope, taken, self._onward)
            self._works[hint.scope, taken.id] = work
            await self._carry(work)
            self._works.pop((hint.scope, taken.id), None)
            if work.operation.in_lane is not None:
                await self._announce_next(work, work.operation.in_lane)
            taken = work.following

    def _onward(self, created: Operation) -> Operation | None:
        """Claim an operation in the commit that creates it, and save a commit of its own.

        Only with a slot to spare, so that nobody who waits is passed over; never in a lane, and
        never once this worker is to stop.
        """
        room = len(self._running) < self._limits.concurrency
        stopping = self._stop is not None and self._stop.asked
        if stopping or not room or created.in_lane is not None:
            return None
        if created.kind not in self._handlers:
            return None
        now = self._kit.clock.now()
        claimed = operations.claim(created, self._owner, now, self._limits.lease)
        return None if isinstance(claimed, Refused) else claimed

    async def _announce_next(self, work: Work, lane: str) -> None:
        """Whatever stood behind this in its lane need not wait until it is looked for."""
        try:
            page = await self._kit.store.find(
                Ask(OPERATIONS, "lane", work.scope, equals=(lane,), limit=1)
            )
        except HarmoniaError as error:
            log.warning("lane_unread", operation=work.operation.id, error=type(error).__name__)
            return
        for found in page.rows:
            state = found.record.state
            if isinstance(state, Pending) and state.ready_at <= self._kit.clock.now():
                await self._kit.wakes.announce([Hint(work.scope, found.record.id)])

    async def claim(self, hint: Hint) -> Work | None:
        """Claim one operation, if it is claimable and first in its lane; the caller carries it."""
        taken = await self._take(hint)
        return None if taken is None else Work(self._kit, hint.scope, taken)

    async def _take(self, hint: Hint) -> Operation | None:
        key = OPERATIONS.key(hint.scope, hint.operation)
        tag = self._kit.ids.new("claim")
        lane_is_free = False

        async def body(reads: Reads) -> Commit[Operation | str | None]:
            stored = await reads.get(key)
            if stored is None or stored.kind not in self._handlers:
                return Commit(None)
            if stored.last_commit == tag:
                return Commit(stored)
            if stored.in_lane is not None and not lane_is_free:
                return Commit(stored.in_lane)
            now = self._kit.clock.now()
            if reason := operations.exhausted(stored, now):
                return Commit(None, await abandon(reads, hint.scope, stored, reason, now))
            claimed = operations.claim(stored, self._owner, now, self._limits.lease)
            if isinstance(claimed, Refused):
                return Commit(None)
            claimed = claimed.model_copy(update={"last_commit": tag})
            return Commit(claimed, (Put(key, claimed),))

        taken = await self._kit.store.transact(body)
        if isinstance(taken, str):
            lane_is_free = await self._first_in_lane(hint, taken)
            taken = await self._kit.store.transact(body) if lane_is_free else None
        return taken if isinstance(taken, Operation) else None

    async def _first_in_lane(self, hint: Hint, lane: str) -> bool:
        """Whether it is the first of its lane and no other of the lane is being worked on.

        An earlier one may be stored late, after a later one was claimed: then it waits for that.
        Read outside the claim, so order is kept as far as it was known; what may be written is
        decided by the fence alone.
        """
        page = await self._kit.store.find(
            Ask(OPERATIONS, "lane", hint.scope, equals=(lane,), limit=LANE_PAGE)
        )
        if any(isinstance(row.record.state, Claimed) for row in page.rows):
            return False
        return not page.rows or page.rows[0].record.id == hint.operation

    async def _carry(self, work: Work) -> None:
        try:
            await self._handlers[work.operation.kind](work)
            if not work.settled:
                await self._give_back(work, "the handler ended without a result")
        except FenceLost:
            log.info("fence_lost", operation=work.operation.id, epoch=work.operation.epoch)
        except HarmoniaError as error:
            log.warning(
                "attempt_failed",
                operation=work.operation.id,
                kind=work.operation.kind,
                error=type(error).__name__,
                **_shown(error),
            )
            await self._give_back_safely(work, error.sentence)
        except Exception as error:  # noqa: BLE001 - a defect in one handler must not end the loop
            log.error(  # noqa: TRY400 - a traceback may quote a draft (INV-20)
                "handler_broke",
                operation=work.operation.id,
                kind=work.operation.kind,
                error=type(error).__name__,
            )
            await self._give_back_safely(work, f"an unexpected {type(error).__name__}")

    async def _renew_leases(self) -> None:
        """Extend the leases of all running claims, well before a third of their term is left."""
        while True:
            await self._kit.clock.sleep(self._limits.lease.total_seconds() / 3)
            for work in list(self._works.values()):
                if work.settled:
                    continue
                try:
                    await work.commit(self._renewal)
                except FenceLost:
                    log.info("fence_lost", operation=work.operation.id)
                except Exception as error:  # noqa: BLE001 - the leases of all others must be renewed
                    log.warning("renewal_failed", error=type(error).__name__)

    async def _renewal(self, reads: Reads, current: Operation) -> Step[None]:
        del reads
        renewed = operations.renew(current, self._kit.clock.now(), self._limits.lease)
        return Step(None, operation=renewed)

    async def _give_back_safely(self, work: Work, reason: str) -> None:
        try:
            await self._give_back(work, reason)
        except HarmoniaError as error:
            # The lease runs out and the scanner decides: nothing is lost, only later.
            log.warning("give_back_failed", error=type(error).__name__)

    async def _give_back(self, work: Work, reason: str) -> None:
        """Pending again after a delay, or in front of a person when the retry budget is spent."""

        async def body(reads: Reads, current: Operation) -> Step[None]:
            now = self._kit.clock.now()
            serial = f"{current.id}:{current.epoch}:given-back"
            if current.attempt >= current.attempts_max:
                lost = await lost_of(At(reads, work.scope, now, serial), current)
                if lost is not None:
                    return Step(None, lost.writes, lost.operation)
                if isinstance(work.scope, Directory):
                    # Nobody lists what the directory parks: an unbound chat tries again by itself.
                    return Step(None, operation=operations.fail(current, reason[:1_000], now))
                parked = operations.require_operator(current, reason[:1_000], now)
                mark = dirty_operation(work.scope, current, now, serial)
                return Step(None, (mark,), parked)
            ready = now + operations.retry_delay(current.attempt)
            return Step(None, operation=operations.release(current, ready))

        try:
            await work.commit(body)
        except FenceLost:
            log.info("fence_lost", operation=work.operation.id, epoch=work.operation.epoch)


def _shown(error: HarmoniaError) -> dict[str, str]:
    """A fault's fields for the log: by their rule they hold no prompt, draft or credential."""
    return {f"field_{name}": str(value)[:200] for name, value in error.fields.items()}


async def abandon(
    reads: Reads, scope: Scope, stored: Operation, reason: str, now: datetime
) -> tuple[Write, ...]:
    """A pending operation that can never be claimed again fails visibly (INV-19)."""
    failed = operations.fail(stored, reason, now)
    serial = f"{stored.id}:{stored.epoch}:abandoned"
    return (
        Put(OPERATIONS.key(scope, stored.id), failed),
        dirty_operation(scope, stored, now, serial),
        *await event_writes(reads, scope, failed, now),
    )


def in_turns(hints: Sequence[Hint]) -> list[Hint]:
    """The hints, one tenant after the other, each tenant's own order kept."""
    queues: dict[Scope, list[Hint]] = {}
    for hint in hints:
        queues.setdefault(hint.scope, []).append(hint)
    turns: list[Hint] = []
    depth = max((len(queue) for queue in queues.values()), default=0)
    for index in range(depth):
        turns.extend(queue[index] for queue in queues.values() if index < len(queue))
    return turns
