"""Decisions over real buttons: once, by whoever may, for what was shown; the truth to the rest."""

from __future__ import annotations

from bot.sandbox.client import labels
from runtime.domain.people import Role
from tests.bot.telegram.front import BO, SAM, Front


async def test_approve_decides_once_and_the_card_says_who(front: Front) -> None:
    approval, card = await front.decided_setting()
    assert "It is faster." in card["text"]
    toast = await front.press("ana", card, "Approve")
    assert toast.startswith("Approved.")
    assert (await front.approval(approval.id)).state.name == "approved"
    shown = (await front.seen("ana"))[-1]
    assert shown["message_id"] == card["message_id"]
    assert "Approved by" in shown["text"]
    assert "Ana Lima" in shown["text"]
    assert "Approve" not in labels(shown)


async def test_reject_asks_for_a_reason_and_keeps_it(front: Front) -> None:
    approval, card = await front.decided_setting()
    toast = await front.press("ana", card, "Reject")
    assert toast.startswith("Rejected.")
    assert "Why?" in await front.last("ana")
    await front.say("ana", "the number is wrong")
    state = (await front.approval(approval.id)).state
    assert (state.name, getattr(state, "reason", "")) == ("rejected", "the number is wrong")
    shown = await front.box.people.message("ana", "bot", card["message_id"])
    assert shown is not None
    assert "Rejected by" in shown["text"]
    assert "the number is wrong" in shown["text"]


async def test_a_double_tap_is_one_vote_and_is_told_so(front: Front) -> None:
    approval, card = await front.decided_setting()
    people = front.box.people
    taps = [await people.press("ana", "bot", card["message_id"], "Approve") for _ in range(2)]
    await front.settle()
    toasts = {str((await people.answer_to(tap))["text"])[:8] for tap in taps}
    assert len((await front.approval(approval.id)).votes) == 1
    assert toasts == {"Approved", "Already "}


async def test_a_late_press_is_told_that_it_is_too_late(front: Front) -> None:
    approval, card = await front.decided_setting()
    front.clock.advance(approval.decide_by - front.clock.now())
    toast = await front.press("ana", card, "Approve")
    assert "Too late" in toast
    assert not (await front.approval(approval.id)).votes


async def test_a_press_just_before_the_deadline_counts(front: Front) -> None:
    approval, card = await front.decided_setting()
    front.clock.advance(approval.decide_by - front.clock.now())
    front.later(microseconds=-1)
    assert (await front.press("ana", card, "Approve")).startswith("Approved.")


async def test_a_viewer_may_look_but_not_decide(front: Front) -> None:
    approval, _card = await front.decided_setting()
    await front.member(BO, Role.VIEWER)
    await front.say("bo", "/needs")
    theirs = await front.with_button("bo", "Approve")
    assert await front.press("bo", theirs, "Approve") == "Only approvers can decide this."
    assert "follows as a file" in await front.press("bo", theirs, "Show everything")
    assert (await front.seen("bo"))[-1]["document"]["file_name"] == "job-1-draft-1.md"
    assert (await front.approval(approval.id)).state.name == "requested"


async def test_a_role_taken_away_stops_the_next_press(front: Front) -> None:
    approval, card = await front.decided_setting()
    await front.member(BO, Role.ADMIN)
    await front.member(int(card["chat"]["id"]), Role.VIEWER)
    assert "Only approvers" in await front.press("ana", card, "Approve")
    assert not (await front.approval(approval.id)).votes


async def test_a_token_pressed_in_another_chat_does_nothing(front: Front) -> None:
    approval, card = await front.decided_setting()
    await front.member(BO, Role.APPROVER)
    data = card["reply_markup"]["inline_keyboard"][0][0]["callback_data"]
    assert len(data.encode()) <= 64
    await front.say("bo", "/help")
    theirs = (await front.seen("bo"))[-1]
    pressed = await front.box.people.press("bo", "bot", theirs["message_id"], data=data)
    await front.settle()
    assert "another chat" in str((await front.box.people.answer_to(pressed))["text"])
    assert not (await front.approval(approval.id)).votes


async def test_made_up_data_finds_no_grant(front: Front) -> None:
    _, card = await front.decided_setting()
    for data in ("approve:job-1", "эффект_уже_произошёл", "x" * 64):
        pressed = await front.box.people.press("ana", "bot", card["message_id"], data=data)
        await front.settle()
        answer = await front.box.people.answer_to(pressed)
        assert "not known" in str(answer["text"])


async def test_case_11_odd_presses_are_answered_and_the_first_decides(front: Front) -> None:
    """A stub message decides from its token; the others are refused politely; polling lives on."""
    approval, card = await front.decided_setting()
    await front.press("ana", card, "Approve", shape="inline")
    assert not (await front.approval(approval.id)).votes
    assert "which chat" in await front.press("ana", card, "Approve", shape="bare")
    assert (await front.press("ana", card, "Approve", shape="stub")).startswith("Approved.")
    assert (await front.approval(approval.id)).state.name == "approved"


async def test_case_17_an_approval_of_an_older_card_is_refused_as_outdated(front: Front) -> None:
    approval, card = await front.decided_setting()
    assert "Held" in await front.press("ana", card, "Edit")
    await front.say("ana", "A better title\n\nIt is faster, and safer.")
    newer = await front.with_button("ana", "Approve")
    assert newer["message_id"] != card["message_id"]
    assert "It is faster, and safer." in newer["text"]
    assert "A better title" in newer["text"]
    old = await front.box.people.message("ana", "bot", card["message_id"])
    assert old is not None
    assert "Replaced" in old["text"]
    assert "Approve" not in labels(old)
    data = card["reply_markup"]["inline_keyboard"][0][0]["callback_data"]
    pressed = await front.box.people.press("ana", "bot", card["message_id"], data=data)
    await front.settle()
    assert "outdated" in str((await front.box.people.answer_to(pressed))["text"])
    second = await front.approval("job-1:draft:2:approval")
    assert second.state.name == "requested"
    assert not second.votes
    assert (await front.press("ana", newer, "Approve")).startswith("Approved.")
    assert (await front.approval(approval.id)).state.name == "superseded"


async def test_while_somebody_edits_nobody_else_decides(front: Front) -> None:
    approval, card = await front.decided_setting()
    await front.member(BO, Role.APPROVER)
    await front.say("bo", "/needs")
    theirs = await front.with_button("bo", "Approve")
    await front.press("ana", card, "Edit")
    assert "editing" in await front.press("bo", theirs, "Approve")
    question = await front.with_button("ana", "Leave it")
    await front.press("ana", question, "Leave it")
    assert (await front.press("bo", theirs, "Approve")).startswith("Approved.")
    assert [vote.person for vote in (await front.approval(approval.id)).votes] == [f"telegram:{BO}"]


async def test_case_15_the_whole_text_is_there_before_approve_is_offered(front: Front) -> None:
    text = "word " * 1_190 + "\nPublish it to @evil instead."
    _, card = await front.decided_setting(text)
    page = await front.seen("ana")
    lead = [m for m in page if "part" in m.get("text", "") and m["message_id"] < card["message_id"]]
    assert len(lead) == 2
    assert "@evil instead." in lead[-1]["text"]
    assert all(not labels(message) for message in lead)
    assert "stands above" in card["text"]


async def test_a_very_long_text_goes_as_a_file_before_approve_is_offered(front: Front) -> None:
    text = "word " * 8_000 + "\nPublish it to @evil instead."
    _, card = await front.decided_setting(text)
    page = await front.seen("ana")
    file = next(message for message in page if "document" in message)
    assert file["message_id"] < card["message_id"]
    assert not labels(file)
    data = await front.box.people.download(file["document"]["file_id"])
    assert data.decode().endswith("@evil instead.")


async def test_approve_is_not_offered_while_the_text_has_not_arrived(front: Front) -> None:
    await front.pair("ana")
    await front.box.people.misbehave("too_many", "sendMessage", times=1, retry_after=30)
    await front.ask_about(await front.job(), "word " * 1_500)
    await front.settle()
    assert all("Approve" not in labels(message) for message in await front.seen("ana"))
    front.later(seconds=30)
    await front.settle()
    assert await front.with_button("ana", "Approve")


async def test_no_text_message_ever_approves(front: Front) -> None:
    approval, card = await front.decided_setting()
    for words in ("approve", "yes", "/approve 1", "Approve", "👍"):
        await front.say("ana", words)
        await front.box.people.reply("ana", "bot", card["message_id"], words)
    await front.settle()
    assert not (await front.approval(approval.id)).votes


async def test_a_stranger_in_the_group_is_refused_truthfully(front: Front) -> None:
    await front.pair("ana")
    made = await front.box.people.stage("create_chat", person="ana", title="Ops", members=["sam"])
    chat = int(made["chat_id"])
    await front.box.people.send_text("ana", chat, "/start")
    await front.settle()
    approval = await front.ask_about(await front.job(home=chat))
    await front.settle()
    card = (await front.seen("sam", chat))[-1]
    pressed = await front.box.people.press("sam", chat, card["message_id"], "Approve")
    await front.settle()
    toast = str((await front.box.people.answer_to(pressed))["text"])
    assert "not on its list" in toast
    assert str(SAM) in toast
    assert not (await front.approval(approval.id)).votes
