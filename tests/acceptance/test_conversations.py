"""What an operator says and asks: editing, rejecting, the bot commands, a plain question."""

from __future__ import annotations

import re
from typing import Final

import pytest

from tests.acceptance.people import PACK, STRATEGY, Json, button_data, labels
from tests.acceptance.test_decisions import brought, votes
from tests.acceptance.test_sources import number_of
from tests.acceptance.truth import open_pack
from tests.acceptance.world import World

pytestmark = [pytest.mark.processes, pytest.mark.asyncio(loop_scope="module")]

EDITED: Final = "Spring launch\n\nWe launch on Friday, and nothing else.\n\nBring <tea> & cake."
DIGEST: Final = re.compile(r"[Dd]igest ([0-9a-f]{6})")


def digest_of(card: Json) -> str:
    """The beginning of the digest that a card shows."""
    found = DIGEST.search(card["text"])
    assert found is not None, card["text"]
    return found[1]


async def test_an_edit_makes_a_new_draft_and_the_pack_has_the_edited_text(shared: World) -> None:
    ana, bo = shared.ana, shared.person("bo")
    old = await brought(ana, PACK, "edit.txt")
    number, token = number_of(old), button_data(old, "Approve")
    at_bo = await bo.asks("/needs", lambda row: f"Job {number} ·" in str(row.get("text")))
    assert await ana.presses(old, "Edit") == "Held for your edit."
    question = await ana.sees("Send the whole new text", after=int(old["message_id"]))
    held = await bo.presses_at(int(at_bo["message_id"]), data=button_data(at_bo, "Approve"))
    assert held["text"] == "Somebody is editing this; a new card follows."
    said = await ana.says(EDITED, reply_to=int(question["message_id"]))
    await ana.sees("Nothing is approved yet", after=said)
    new = await ana.card(PACK, after=said)
    assert digest_of(new) != digest_of(old)
    assert "We launch on Friday, and nothing else." in new["text"]
    assert "Bring <tea> & cake." in new["text"]
    assert "written by a person" in new["text"]
    late = await ana.presses_at(int(old["message_id"]), data=token)
    assert not late["text"].startswith("Approved"), late["text"]
    job = shared.truth.job(number)
    assert [kind for kind, _ in votes(shared, job)] == ["strategy"]
    replaced = await ana.client.message("ana", "bot", int(old["message_id"]))
    assert replaced is not None
    assert replaced["text"].startswith("Replaced · Content pack")
    assert (await ana.presses(new, "Approve")).startswith("Approved.")
    await ana.verified(number)
    (receipt,) = shared.truth.records("receipts", job=job["id"])
    pack = open_pack(shared.data / "packs" / receipt["reference"])
    assert pack.problems == ()
    assert pack.title == "Spring launch"
    said_in_pack = "\n\n".join(section["text"] for section in pack.sections)
    assert said_in_pack == "We launch on Friday, and nothing else.\n\nBring <tea> & cake."
    assert receipt["terms_digest"].startswith(digest_of(new))


async def test_an_edit_that_is_left_lets_the_old_text_be_decided(shared: World) -> None:
    ana = shared.ana
    card = await brought(ana, PACK, "left.txt")
    await ana.presses(card, "Edit")
    question = await ana.sees("Send the whole new text", after=int(card["message_id"]))
    assert (await ana.presses(question, "Leave it")).startswith("Left.")
    assert (await ana.presses(card, "Approve")).startswith("Approved.")
    await ana.verified(number_of(card))


async def test_a_rejection_asks_why_and_keeps_the_reason(shared: World) -> None:
    ana = shared.ana
    card = await brought(ana, STRATEGY, "reject.txt")
    number = number_of(card)
    assert (await ana.presses(card, "Reject")).startswith("Rejected.")
    await ana.sees("It is rejected. Why?", after=int(card["message_id"]))
    file = await ana.asks_with("late.txt", b"not a reason", "I need the reason")
    assert "stays open" in file["text"]
    said = await ana.says("It says nothing about <prices> & dates.")
    await ana.sees("the reason is noted", after=said)
    why = await ana.asks(f"/why {number}", "Why · job")
    assert "reason: It says nothing about <prices> & dates." in why["text"]
    closed = await ana.client.message("ana", "bot", int(card["message_id"]))
    assert closed is not None
    assert closed["text"].startswith("Rejected · Strategy")
    job = await ana.asks(f"/job {number}", lambda row: f"Job {number} ·" in str(row.get("text")))
    assert "Stopped (rejected)" in job["text"]
    assert shared.truth.records("commands", job=shared.truth.job(number)["id"]) == []


async def test_new_alone_asks_and_the_next_text_is_the_source(shared: World) -> None:
    ana = shared.ana
    await ana.asks("/new", "What shall I work on?")
    text = "The fair opens on 4 May in Lisbon. It has 120 stands. Entry costs 8 euros for adults."
    said = await ana.says(text)
    card = await ana.card(STRATEGY, after=said)
    assert "Lisbon" in card["text"]
    job = shared.truth.job(number_of(card))
    assert shared.truth.text(job).strip() == text


async def test_the_bot_commands_answer_from_stored_state(shared: World) -> None:
    ana = shared.ana
    card = await brought(ana, STRATEGY, "commands.txt")
    number = number_of(card)
    needs = await ana.asks("/needs", "Waits for a person")
    assert f"job-{number}" in needs["text"] or f"job {number}" in needs["text"].lower()
    jobs = await ana.asks("/jobs", "Jobs")
    assert f"\n{number} · " in jobs["text"]
    assert "needs you" in jobs["text"]
    job = await ana.asks(f"/job {number}", lambda row: f"Job {number} ·" in str(row.get("text")))
    assert "▶️ Waiting for a decision about the strategy" in job["text"]
    assert "Show what waits" in labels(job)
    shown = await ana.presses(job, "Show what waits")
    assert shown == "Here is what waits."
    status = await ana.asks("/status", "You are admin")
    assert "offline model" in status["text"]
    help_ = await ana.asks("/help", "/needs")
    for command in ("/new", "/jobs", "/job", "/why", "/status", "/help", "/start"):
        assert command in help_["text"]
    none = await ana.asks("/job 999", "no job 999")
    assert none["text"] == "There is no job 999 here."
    unknown = await ana.asks("/pauze", "/help")
    assert "Nothing was done" in unknown["text"]


async def test_a_question_is_answered_by_the_agent_which_says_that_it_is_offline(
    shared: World,
) -> None:
    ana = shared.ana
    card = await brought(ana, STRATEGY, "question.txt")
    answer = await ana.asks("What is waiting for me?", lambda row: bool(row["from"].get("is_bot")))
    assert "offline" in answer["text"]
    assert f"job-{number_of(card)}" in answer["text"] or f"Job {number_of(card)}" in answer["text"]


async def test_show_everything_sends_the_whole_content_with_its_terms(shared: World) -> None:
    ana = shared.ana
    card = await brought(ana, PACK, "everything.txt")
    sent = int((await ana.history())[-1]["message_id"])
    assert (await ana.presses(card, "Show everything")) == "The whole content follows as a file."
    file = await ana.sees(lambda row: "document" in row, after=sent)
    body = (await ana.client.download(file["document"]["file_id"])).decode()
    job = shared.truth.job(number_of(card))
    draft = shared.truth.body(job, "draft")
    for section in draft["sections"]:
        assert section["text"] in body
    assert "Exactly this is approved" in body
    assert digest_of(card) in body
