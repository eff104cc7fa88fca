"""Approve, pressed by everybody and at every wrong time: one decision, the truth, one pack."""

from __future__ import annotations

import asyncio
from typing import Final

import pytest

from tests.acceptance.people import PACK, STRATEGY, Json, Person, button_data, labels
from tests.acceptance.test_sources import number_of
from tests.acceptance.world import World
from tests.sources_made import prose

pytestmark = [pytest.mark.processes, pytest.mark.asyncio(loop_scope="module")]

SOURCE: Final = "\n\n".join(prose()[:12]).encode()


async def brought(person: Person, what: str, name: str) -> Json:
    """Send a source as this person and take it to the decision about `what`; the open card."""
    sent = await person.sends(name, SOURCE, caption="/new")
    if what == STRATEGY:
        return await person.card(STRATEGY, after=sent)
    return await person.card(PACK, after=int((await person.approves(STRATEGY, sent))["message_id"]))


def packs_of(world: World, job: Json) -> list[str]:
    """The packs on the disk that belong to a job."""
    receipts = world.truth.records("receipts", job=job["id"])
    return [path.name for path in world.truth.packs() if path.name in str(receipts)]


def votes(world: World, job: Json) -> list[tuple[str, str]]:
    """Kind and person of every vote about a job."""
    approvals = world.truth.records("approvals", job=job["id"])
    return [(row["kind"], vote["display"]) for row in approvals for vote in row["votes"]]


async def test_a_press_twice_and_late_and_on_an_old_copy_counts_once(shared: World) -> None:
    ana = shared.ana
    card = await brought(ana, PACK, "twice.txt")
    token, number = button_data(card, "Approve"), int(card["message_id"])
    copy = await ana.asks("/needs", lambda row: "Approve" in labels(row))
    first, second = await asyncio.gather(
        ana.presses_at(number, data=token), ana.presses_at(number, data=token)
    )
    toasts = sorted((first["text"], second["text"]))
    assert sum(text.startswith("Approved.") for text in toasts) == 1, toasts
    assert any("once already" in text or "Already approved" in text for text in toasts), toasts
    on_copy = await ana.presses_at(int(copy["message_id"]), data=token)
    assert "pproved" in on_copy["text"]
    await ana.verified(number_of(card))
    late = await ana.presses_at(number, data=token)
    assert "Already approved by" in late["text"]
    assert late["show_alert"]
    job = shared.truth.job(number_of(card))
    assert len(packs_of(shared, job)) == 1
    assert [kind for kind, _ in votes(shared, job)] == ["strategy", "effect"]


async def test_a_stranger_s_press_is_refused_and_changes_nothing(shared: World) -> None:
    group = await shared.group()
    ana, sam = shared.person("ana", group), shared.person("sam", group)
    card = await brought(ana, STRATEGY, "group.txt")
    answer = await sam.presses_at(int(card["message_id"]), label="Approve")
    assert "not on its list" in answer["text"]
    assert answer["show_alert"]
    job = shared.truth.job(number_of(card))
    assert votes(shared, job) == []
    assert (await ana.presses(card, "Reject")).startswith("Rejected.")


async def test_two_people_at_once_make_one_decision(shared: World) -> None:
    group = await shared.group()
    ana, bo = shared.person("ana", group), shared.person("bo", group)
    card = await brought(ana, PACK, "both.txt")
    number, token = int(card["message_id"]), button_data(card, "Approve")
    toasts = [
        answer["text"]
        for answer in await asyncio.gather(
            ana.presses_at(number, data=token), bo.presses_at(number, data=token)
        )
    ]
    assert sum(text.startswith("Approved.") for text in toasts) == 1, toasts
    assert sum(text.startswith("Already approved by") for text in toasts) == 1, toasts
    await ana.verified(number_of(card))
    job = shared.truth.job(number_of(card))
    assert len(packs_of(shared, job)) == 1
    assert [kind for kind, _ in votes(shared, job)].count("effect") == 1


async def test_approve_against_reject_at_once_is_one_decision(shared: World) -> None:
    ana, bo = shared.ana, shared.person("bo")
    card = await brought(ana, STRATEGY, "against.txt")
    number = number_of(card)
    at_bo = await bo.asks(
        "/needs", lambda row: f"Job {number} ·" in str(row.get("text")) and "Reject" in labels(row)
    )
    yes, no = await asyncio.gather(ana.presses(card, "Approve"), bo.presses(at_bo, "Reject"))
    if yes.startswith("Approved."):
        assert no.startswith("Already approved by")
    else:
        assert no.startswith("Rejected.")
        assert yes.startswith("Already rejected by")
    job = shared.truth.job(number)
    assert len(votes(shared, job)) == 1


async def test_a_token_from_another_chat_is_refused_there(shared: World) -> None:
    ana, bo = shared.ana, shared.person("bo")
    card = await brought(ana, STRATEGY, "elsewhere.txt")
    own = await bo.asks("/status", "You are")
    answer = await bo.presses_at(int(own["message_id"]), data=button_data(card, "Approve"))
    assert answer["text"] == "This button belongs to another chat."
    odd = await ana.presses_at(int(card["message_id"]), data="approve:everything")
    assert "not known here" in odd["text"]
    assert votes(shared, shared.truth.job(number_of(card))) == []


async def test_a_viewer_may_look_but_not_decide(shared: World) -> None:
    ana = shared.ana
    sam = await shared.invite("sam", "viewer")
    card = await brought(ana, STRATEGY, "viewer.txt")
    number = number_of(card)
    seen = await sam.asks("/needs", lambda row: f"Job {number} ·" in str(row.get("text")))
    answer = await sam.presses_at(int(seen["message_id"]), label="Approve")
    assert "approver" in answer["text"]
    assert votes(shared, shared.truth.job(number)) == []
    refused = await sam.asks("/new https://example.com/", "needs the role")
    assert "approver" in refused["text"]


@pytest.mark.parametrize("words", ["Approve", "yes, approve everything", "/approve 1"])
async def test_no_text_approves_anything(shared: World, words: str) -> None:
    ana = shared.ana
    card = await brought(ana, STRATEGY, "words.txt")
    await ana.asks(words, lambda row: bool(row["from"].get("is_bot")))
    approval = shared.truth.job(number_of(card))["approval"]
    assert shared.truth.state("approvals", approval) == "requested"
