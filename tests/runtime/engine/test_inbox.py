"""The inbox: one event and one operation per source ID, whoever delivers it and how often."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from runtime.domain.event import Envelope
from runtime.domain.values import DIRECTORY, Scope, Trust
from runtime.engine import inbox
from runtime.engine.inbox import Task
from runtime.engine.kit import Kit
from runtime.errors import StoreUnavailable
from runtime.ports import Body, Hint
from runtime.stores.collections import EVENTS, OPERATIONS
from tests.world import ACME, OTHER, ReplyLosing, T, make_kit

TASK = Task("telegram.intake", ("answered",), lane="chat-1", lane_order=7)


def envelope(payload: str = '{"text":"hi"}', source_id: str = "bot:1") -> Envelope:
    return Envelope(
        source="telegram",
        source_id=source_id,
        type="message",
        trust=Trust.OPERATOR,
        payload=payload,
        correlation="c",
    )


async def test_an_event_and_its_operation_are_created_together(tmp_path: Path) -> None:
    """INV-1."""
    kit = await make_kit(tmp_path)
    receipted = await inbox.accept(kit, ACME, envelope(), TASK)
    event = await kit.store.get(EVENTS.key(ACME, receipted.event.id))
    operation = await kit.store.get(OPERATIONS.key(ACME, receipted.event.operation or ""))
    assert receipted.verdict == "fresh"
    assert event is not None
    assert operation is not None
    assert (operation.event, operation.in_lane, operation.lane_order) == (event.id, "chat-1", 7)
    assert await kit.wakes.next(0) == (Hint(ACME, operation.id),)


async def test_five_deliveries_to_two_processes_make_one_operation(tmp_path: Path) -> None:
    """INV-2: five counted deliveries, one event, one operation."""
    kits = [await make_kit(tmp_path, seed=seed) for seed in (1, 2)]
    found = await asyncio.gather(
        *(inbox.accept(kits[index % 2], ACME, envelope(), TASK) for index in range(5))
    )
    verdicts = sorted(receipted.verdict for receipted in found)
    assert verdicts == ["fresh", *["redelivery"] * 4]
    event = await kits[0].store.get(EVENTS.key(ACME, envelope().event_id))
    assert event is not None
    assert event.deliveries == 5
    hints = [hint for kit in kits for hint in await kit.wakes.next(0)]
    assert hints == [Hint(ACME, inbox.operation_id(envelope()))]


async def test_another_payload_under_the_same_source_id_is_never_worked_on(tmp_path: Path) -> None:
    """INV-2."""
    kit = await make_kit(tmp_path)
    first = await inbox.accept(kit, ACME, envelope(), TASK)
    conflict = await inbox.accept(kit, ACME, envelope('{"text":"other"}'), TASK)
    assert conflict.verdict == "conflict"
    assert (conflict.event.payload, conflict.event.conflicts) == (first.event.payload, 1)


async def test_an_event_without_a_task_is_stored_as_rejected(tmp_path: Path) -> None:
    kit = await make_kit(tmp_path)
    receipted = await inbox.accept(kit, ACME, envelope(), None, reason="undecodable")
    assert receipted.event.state.name == "rejected"
    assert await kit.wakes.next(0) == ()
    again = await inbox.accept(kit, ACME, envelope(), None, reason="undecodable")
    assert again.verdict == "redelivery"


@pytest.mark.parametrize("scope", [ACME, OTHER, DIRECTORY])
async def test_each_scope_has_its_own_events(tmp_path: Path, scope: Scope) -> None:
    """INV-18."""
    kit = await make_kit(tmp_path)
    await inbox.accept(kit, scope, envelope(), TASK)
    for other in (ACME, OTHER, DIRECTORY):
        event = await kit.store.get(EVENTS.key(other, envelope().event_id))
        assert (event is not None) == (other == scope)


async def test_a_delivery_whose_reply_was_lost_is_counted_once(tmp_path: Path) -> None:
    kit = await make_kit(tmp_path, wrap=ReplyLosing)
    first = await inbox.accept(kit, ACME, envelope(), TASK)
    second = await inbox.accept(kit, ACME, envelope(), TASK)
    third = await inbox.accept(kit, ACME, envelope("{}"), TASK)
    assert (first.verdict, second.verdict, third.verdict) == ("fresh", "redelivery", "conflict")
    assert (third.event.deliveries, third.event.conflicts) == (2, 1)


class Down:
    """A store that cannot be reached."""

    def __init__(self, inner: object) -> None:
        self._inner = inner

    async def transact(self, body: Body[T]) -> T:
        del body
        raise StoreUnavailable(cause="the disk is gone")


async def test_nothing_is_acknowledged_while_the_store_is_down(tmp_path: Path) -> None:
    """INV-16: accept raises, so no caller can acknowledge."""
    kit = await make_kit(tmp_path)
    down = Kit(kit.clock, kit.ids, Down(kit.store), kit.wakes)  # type: ignore[arg-type] # only transact is reached
    with pytest.raises(StoreUnavailable):
        await inbox.accept(down, ACME, envelope(), TASK)
    assert await kit.store.get(EVENTS.key(ACME, envelope().event_id)) is None
