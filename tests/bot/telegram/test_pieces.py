"""A text that Telegram's clients cut never becomes a source, an edit or a reason by its tail."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from bot.sandbox.client import labels
from bot.telegram.pieces import APART_SECONDS_MAX, rest_of
from bot.telegram.sourcing import CUT_UNITS_MIN, HINT_REST
from runtime.ports import Ask
from runtime.stores.collections import JOBS
from tests.bot.telegram.front import Front
from tests.world import ACME

LONG = "w" * CUT_UNITS_MIN


def said(text: str, *, number: int = 10, date: int = 100, person: int = 1, chat: int = 1) -> Any:  # noqa: ANN401 - any JSON value
    return {
        "update_id": number,
        "message": {
            "message_id": number,
            "date": date,
            "chat": {"id": chat, "type": "private"},
            "from": {"id": person, "is_bot": False},
            "text": text,
        },
    }


@pytest.mark.parametrize(
    ("before", "after", "rest"),
    [
        (said(LONG), said("tail", number=11), True),
        (said(LONG), said("tail", number=11, date=100 + APART_SECONDS_MAX), True),
        (said(LONG), said("tail", number=11, date=101 + APART_SECONDS_MAX), False),
        (said(LONG), said("tail", number=11, date=99), False),
        (said(LONG), said("tail", number=13), True),
        (said(LONG), said("tail", number=10), False),
        (said(LONG[1:]), said("tail", number=11), False),
        (said("🚀" * (CUT_UNITS_MIN // 2)), said("tail", number=11), True),
        (said(LONG), said("tail", number=11, person=2), False),
        (said(LONG), said("tail", number=11, chat=2), False),
        ({"update_id": 10}, said("tail", number=11), False),
    ],
)
def test_the_rest_is_what_one_person_sends_at_once_behind_a_cut_text(
    before: dict[str, Any], after: dict[str, Any], *, rest: bool
) -> None:
    assert rest_of(before, after) is rest


async def pasted(front: Front, *pieces: str) -> None:
    """As a client sends a long text: its pieces one after the other, then the bot looks."""
    for piece in pieces:
        await front.box.people.send_text("ana", "bot", piece)
    await front.settle()


async def test_the_tail_of_a_pasted_text_starts_no_job(front: Front) -> None:
    await front.pair("ana")
    await pasted(front, "w " * 2_040, "t " * 400)
    assert not (await front.kit.store.find(Ask(JOBS, "by_number", ACME))).rows
    told = [message["text"] for message in await front.seen("ana")][-2:]
    assert "Telegram cuts long texts" in told[0]
    assert told[1] == HINT_REST


async def test_the_tail_of_a_pasted_text_does_not_replace_a_draft(front: Front) -> None:
    approval, card = await front.decided_setting()
    await front.press("ana", card, "Edit")
    await pasted(front, "w " * 2_040, "the end")
    assert (await front.approval(approval.id)).state.name == "requested"
    assert await front.last("ana") == HINT_REST
    front.box.clock.ahead += timedelta(seconds=APART_SECONDS_MAX + 1)
    await front.say("ana", "Really the new text.")
    assert (await front.approval(approval.id)).state.name == "superseded"
    assert "Really the new text." in (await front.with_button("ana", "Approve"))["text"]
    assert labels(await front.with_button("ana", "Approve"))
