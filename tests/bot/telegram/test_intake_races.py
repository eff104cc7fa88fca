"""Two processes over one store and one bot: still one decision, one event, one reply."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bot.telegram.intake import take
from runtime.domain.people import Role
from runtime.stores.collections import EVENTS
from tests.bot.sandbox.world_kit import sandbox
from tests.bot.telegram.front import BO, Front, process
from tests.world import ACME, ManualClock


@contextlib.asynccontextmanager
async def two(folder: Path) -> AsyncIterator[tuple[Front, Front]]:
    clock = ManualClock()
    async with (
        sandbox() as box,
        process(box, folder, clock, seed=1) as one,
        process(box, folder, clock, seed=2) as other,
    ):
        yield one, other


@pytest.mark.parametrize("round_", range(5))
async def test_case_13_approve_and_reject_at_once_decide_once(tmp_path: Path, round_: int) -> None:
    async with two(tmp_path) as (one, other):
        approval, card = await one.decided_setting()
        await one.member(BO, Role.APPROVER)
        await one.say("bo", "/needs")
        theirs = await one.with_button("bo", "Reject")
        people = one.box.people
        yes = await people.press("ana", "bot", card["message_id"], "Approve")
        no = await people.press("bo", "bot", theirs["message_id"], "Reject")
        await one.poll()
        await asyncio.gather(one.work(), other.work())
        await asyncio.gather(one.settle(), other.settle())
        stored = await one.approval(approval.id)
        assert len(stored.votes) == 1
        assert stored.state.name in {"approved", "rejected"}
        toasts = {str((await people.answer_to(press))["text"]) for press in (yes, no)}
        winner = "Approved." if stored.state.name == "approved" else "Rejected."
        assert sum(toast.startswith(winner) for toast in toasts) == 1
        assert sum(toast.startswith("Already ") for toast in toasts) == 1


async def test_five_deliveries_to_two_processes_are_one_event_and_one_reply(
    tmp_path: Path,
) -> None:
    async with two(tmp_path) as (one, other):
        await one.pair("ana")
        before = len(await one.seen("ana"))
        await one.box.people.send_text("ana", "bot", "/help")
        updates, _ = await one.poller.fetch(0)
        update = updates[0]
        assert isinstance(update, dict)
        taken = await asyncio.gather(
            *(take(front.kit, one.box.bot.id, update) for front in (one, other, one, other, one))
        )
        assert sorted(receipted.verdict for receipted in taken) == ["fresh"] + ["redelivery"] * 4
        await asyncio.gather(one.work(), other.work())
        await asyncio.gather(one.deliverer.once(), other.deliverer.once())
        event = await one.kit.store.get(EVENTS.key(ACME, taken[0].event.id))
        assert event is not None
        assert event.deliveries == 5
        assert len(await one.seen("ana")) == before + 1


async def test_two_deliverers_send_a_card_once(tmp_path: Path) -> None:
    async with two(tmp_path) as (one, other):
        await one.pair("ana")
        await one.ask_about(await one.job())
        await one.projector.once()
        before = len(await one.seen("ana"))
        await asyncio.gather(one.deliverer.once(), other.deliverer.once())
        assert len(await one.seen("ana")) == before + 1
