"""What people say and what comes of it, over the wire: pairing, jobs, lists, lineage, chat."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.sandbox.client import labels
from bot.telegram.chat import asked as words
from bot.telegram.commands.answers import SECTION_CHARS_MAX, SECTIONS_MAX, as_draft
from bot.telegram.commands.jobs import job_id
from runtime.domain.job import Job
from runtime.domain.people import Role
from runtime.domain.values import DIRECTORY
from runtime.ports import Ask
from runtime.stores.collections import (
    ARTIFACTS,
    BINDINGS,
    EVENTS,
    JOBS,
    MEMBERS,
    OPERATIONS,
)
from tests.bot.telegram.front import ANA, BO, SAM, Front, alone, refused_terms
from tests.world import ACME


async def only_job(front: Front) -> Job:
    page = await front.kit.store.find(Ask(JOBS, "by_number", ACME))
    assert len(page.rows) == 1
    return page.rows[0].record


async def test_a_code_pairs_once_and_the_first_admin_can_work(front: Front) -> None:
    await front.pair("ana")
    assert "<b>" not in await front.last("ana")
    assert "admin" in await front.last("ana")
    member = await front.kit.store.get(MEMBERS.key(ACME, f"telegram:{ANA}"))
    assert member is not None
    assert member.role is Role.ADMIN
    await front.say("bo", "/start code-for-ana")
    assert "has been used" in await front.last("bo")
    assert await front.kit.store.get(MEMBERS.key(ACME, f"telegram:{BO}")) is None
    await front.say("ana", "/start code-for-ana")
    assert "has been used" not in await front.last("ana")


async def test_an_expired_code_does_not_pair(front: Front) -> None:
    await front.pair("ana")
    await front.say("ana", "/invite approver")
    code = (await front.last("ana")).split("/start ")[1].split()[0]
    front.later(hours=24)
    await front.say("bo", f"/start {code}")
    assert "expired" in await front.last("bo")
    shown = (await front.seen("ana"))[-1]
    assert code not in shown["text"]


async def test_an_invitation_is_for_one_person_and_stored_nowhere(front: Front) -> None:
    await front.pair("ana")
    await front.say("ana", "/invite approver")
    code = (await front.last("ana")).split("/start ")[1].split()[0]
    stored = b"".join(path.read_bytes() for path in front.folder.glob("truth.sqlite*"))
    assert b"invitation" in stored
    assert code.encode() not in stored
    await front.say("bo", f"/start {code}")
    assert "approver" in await front.last("bo")
    await front.say("sam", f"/start {code}")
    assert "has been used" in await front.last("sam")


async def test_only_an_admin_invites_and_only_in_private(front: Front) -> None:
    await front.pair("ana")
    await front.pair("bo", Role.APPROVER)
    await front.say("bo", "/invite viewer")
    assert "needs the role admin" in await front.last("bo")


async def test_a_stranger_is_told_the_truth_and_learns_nothing(front: Front) -> None:
    await front.pair("ana")
    await front.job()
    await front.say("sam", "/jobs")
    assert str(SAM) in await front.last("sam")
    assert "Spring" not in await front.last("sam")
    seen = len(await front.seen("sam"))
    await front.say("sam", "hello")
    await front.say("sam", "hello again")
    assert len(await front.seen("sam")) == seen + 1
    front.later(hours=1)
    await front.say("sam", "and again")
    assert len(await front.seen("sam")) == seen + 2


async def test_a_file_starts_a_job_with_its_first_operation_and_its_card(front: Front) -> None:
    await front.pair("ana")
    sent = await front.box.people.send_file(
        "ana", "bot", "changes.md", b"# Changes\n\nFaster.", mime_type="text/markdown"
    )
    await front.settle()
    job = await only_job(front)
    assert (job.number, job.source.kind, job.source.name) == (1, "file", "changes.md")
    assert job.source.file == sent["document"]["file_id"]
    operation = await front.kit.store.get(OPERATIONS.key(ACME, job.operation or ""))
    assert operation is not None
    assert (operation.kind, operation.state.name) == ("stage.read", "pending")
    assert "Job 1" in await front.last("ana")
    assert await front.desk.messenger.download(job.source.file) == b"# Changes\n\nFaster."


async def test_a_link_and_a_text_start_jobs_numbered_in_order(front: Front) -> None:
    await front.pair("ana")
    await front.say("ana", "/new https://example.org/notes make it short")
    await front.say("ana", "/new The release is faster.")
    page = await front.kit.store.find(Ask(JOBS, "by_number", ACME))
    link, text = (row.record for row in page.rows)
    assert (link.number, link.source.link, link.brief) == (
        1,
        "https://example.org/notes",
        "make it short",
    )
    assert (text.number, text.source.kind) == (2, "text")
    artifact = await front.kit.store.get(ARTIFACTS.key(ACME, f"{text.id}:raw"))
    assert artifact is not None
    assert artifact.state.name == "ready"
    whole = await front.spill.whole(front.kit.store, ACME, artifact.id)
    assert whole == b"The release is faster."


async def test_a_file_larger_than_a_bot_may_fetch_is_refused_in_words(front: Front) -> None:
    await front.pair("ana")
    await front.box.people.send_file("ana", "bot", "big.pdf", b"x" * (20 * 1024 * 1024 + 1))
    await front.settle()
    assert "at most 20 MB" in await front.last("ana")
    assert not (await front.kit.store.find(Ask(JOBS, "by_number", ACME))).rows


async def test_a_viewer_cannot_start_a_job(front: Front) -> None:
    await front.pair("ana")
    await front.pair("bo", Role.VIEWER)
    await front.say("bo", "/new The release is faster.")
    assert "needs the role approver" in await front.last("bo")
    assert not (await front.kit.store.find(Ask(JOBS, "by_number", ACME))).rows


async def test_new_alone_asks_and_the_next_message_answers(front: Front) -> None:
    await front.pair("ana")
    await front.say("ana", "/new")
    asked = (await front.seen("ana"))[-1]
    assert labels(asked) == ["Leave it"]
    await front.say("ana", "The release is faster.")
    assert (await only_job(front)).source.kind == "text"
    closed = await front.box.people.message("ana", "bot", asked["message_id"])
    assert closed is not None
    assert "Answered" in closed["text"]
    assert labels(closed) == []


async def test_a_question_is_left_by_its_button_by_a_newer_one_and_by_time(front: Front) -> None:
    await front.pair("ana")
    await front.say("ana", "/new")
    first = (await front.seen("ana"))[-1]
    await front.say("ana", "/new")
    second = (await front.seen("ana"))[-1]
    shown = await front.box.people.message("ana", "bot", first["message_id"])
    assert shown is not None
    assert "Left" in shown["text"]
    assert "Left" in await front.press("ana", second, "Leave it")
    await front.say("ana", "/new")
    third = (await front.seen("ana"))[-1]
    front.later(hours=1)
    await front.settle()
    shown = await front.box.people.message("ana", "bot", third["message_id"])
    assert shown is not None
    assert "Not answered in time" in shown["text"]
    await front.say("ana", "The release is faster.")
    assert not (await front.kit.store.find(Ask(JOBS, "by_number", ACME))).rows


async def test_a_wrong_kind_of_answer_leaves_the_question_open(front: Front) -> None:
    approval, card = await front.decided_setting()
    await front.press("ana", card, "Reject")
    await front.box.people.send_file("ana", "bot", "why.png", b"x", mime_type="image/png")
    await front.settle()
    assert "stays open" in await front.last("ana")
    await front.say("ana", "too early")
    state = (await front.approval(approval.id)).state
    assert getattr(state, "reason", "") == "too early"


async def test_an_edit_by_file_and_an_edit_that_changes_nothing(front: Front) -> None:
    approval, card = await front.decided_setting()
    await front.press("ana", card, "Edit")
    await front.say("ana", "News\n\nIt is faster.")
    assert "as it stands" in await front.last("ana")
    assert (await front.approval(approval.id)).state.name == "requested"
    await front.box.people.send_file(
        "ana", "bot", "new.txt", b"News\n\nIt is safer.", mime_type="text/plain"
    )
    await front.settle()
    newer = await front.with_button("ana", "Approve")
    assert "It is safer." in newer["text"]
    assert (await front.approval(approval.id)).state.name == "superseded"


async def test_an_edit_that_policy_forbids_keeps_the_question_open(tmp_path: Path) -> None:
    async with alone(tmp_path, terms=refused_terms) as front:
        approval, card = await front.decided_setting()
        await front.press("ana", card, "Edit")
        await front.say("ana", "A title\n\nSomething else.")
        assert "forbidden here" in await front.last("ana")
        assert "stays open" in await front.last("ana")
        assert (await front.approval(approval.id)).state.name == "requested"


async def test_needs_lists_what_waits_and_shows_the_cards_again(front: Front) -> None:
    await front.pair("ana")
    await front.say("ana", "/needs")
    assert "Nothing waits" in await front.last("ana")
    await front.ask_about(await front.job())
    await front.settle()
    first = await front.with_button("ana", "Approve")
    await front.say("ana", "/needs")
    again = await front.with_button("ana", "Approve")
    assert again["message_id"] > first["message_id"]
    old = await front.box.people.message("ana", "bot", first["message_id"])
    assert old is not None
    assert "not kept up to date" in old["text"]
    assert labels(old) == []
    assert (await front.press("ana", again, "Approve")).startswith("Approved.")


async def test_a_press_on_the_older_message_makes_it_the_card_again(front: Front) -> None:
    """Also when it was about to be called old: what is pressed shows what became of it."""
    _, first = await front.decided_setting()
    await front.box.people.send_text("ana", "bot", "/needs")
    await front.poll()
    await front.work()
    pressed = await front.press("ana", first, "Approve")
    assert pressed.startswith("Approved.")
    texts = [m["text"] for m in await front.seen("ana") if m["message_id"] == first["message_id"]]
    assert "Approved by" in texts[0]
    assert not [m for m in await front.seen("ana") if "Approve" in labels(m)]


async def test_jobs_job_and_why_speak_from_records(front: Front) -> None:
    await front.pair("ana")
    approval = await front.ask_about(await front.job())
    await front.settle()
    card = await front.with_button("ana", "Approve")
    await front.press("ana", card, "Approve")
    await front.say("ana", "/jobs")
    assert "1 · Spring release" in await front.last("ana")
    await front.say("ana", "/job 1")
    assert "Job 1 · Spring release" in await front.last("ana")
    await front.say("ana", "/job 2")
    assert "no job 2" in await front.last("ana")
    await front.say("ana", "/why 1")
    why = await front.last("ana")
    assert f"digest {approval.digest[:6]}" in why
    assert "vote approve" in why
    assert f"telegram:{ANA}" in why
    assert "Revision draft 1" in why


async def test_why_begins_at_the_event_that_started_the_job(front: Front) -> None:
    await front.pair("ana")
    await front.say("ana", "/new The release is faster.")
    await front.say("ana", "/why 1")
    why = await front.last("ana")
    job = await only_job(front)
    assert why.index("Event telegram") < why.index("telegram.intake") < why.index("stage.read")
    assert job.correlation.split(":")[-1] in why


async def test_status_and_help_say_who_and_what(front: Front) -> None:
    await front.pair("ana")
    await front.say("ana", "/status")
    status = await front.last("ana")
    assert "admin in acme/main" in status
    assert "offline-1" in status
    await front.say("ana", "/help")
    assert "/new" in await front.last("ana")


async def test_plain_words_become_one_operation_for_the_chat_agent(front: Front) -> None:
    await front.pair("ana")
    await front.say("ana", "How is job 1?")
    page = await front.kit.store.find(Ask(OPERATIONS, "ready", None, equals=("pending",), limit=10))
    asked = [row.record for row in page.rows if row.record.kind == "chat.answer"]
    assert len(asked) == 1
    event = await front.kit.store.get(EVENTS.key(ACME, asked[0].event or ""))
    assert event is not None
    assert words(event) == "How is job 1?"


async def test_a_renamed_member_is_shown_by_the_new_name(front: Front) -> None:
    await front.pair("ana")
    await front.say("ana", "/help")
    member = await front.kit.store.get(MEMBERS.key(ACME, f"telegram:{ANA}"))
    assert member is not None
    assert "Ana Lima" in member.display


async def test_a_group_works_only_after_an_admin_said_so(front: Front) -> None:
    await front.pair("ana")
    made = await front.box.people.stage("create_chat", person="ana", title="Ops", members=["bo"])
    chat = int(made["chat_id"])
    await front.box.people.send_text("bo", chat, "/start")
    await front.settle()
    assert "administrator" in await front.last("bo", chat)
    assert await front.kit.store.get(BINDINGS.key(DIRECTORY, f"telegram:{chat}")) is None
    await front.box.people.send_text("ana", chat, "/start@HarmoniaSandboxBot")
    await front.settle()
    assert "I work here now" in await front.last("ana", chat)
    await front.box.people.send_text("bo", chat, "/jobs")
    await front.settle()
    assert "not on its list" in await front.last("bo", chat)


async def test_another_bots_command_and_edited_messages_stay_silent(front: Front) -> None:
    await front.pair("ana")
    seen = len(await front.seen("ana"))
    sent = await front.say("ana", "/needs@SomeOther_bot")
    await front.box.people.edit("ana", "bot", sent["message_id"], "/needs")
    await front.settle()
    assert len(await front.seen("ana")) == seen


def test_a_job_id_follows_from_the_operation() -> None:
    assert job_id("event:a") == job_id("event:a")
    assert job_id("event:a") != job_id("event:b")


@pytest.mark.parametrize(
    ("text", "title", "first"),
    [
        ("Only one line", "Old", "Only one line"),
        ("Title\n\nBody", "Title", "Body"),
        ("\n Title \nBody\n", "Title", "Body"),
        ("t" * 301 + "\nBody", "Old", "t" * 301 + "\nBody"),
    ],
)
def test_plain_text_becomes_a_draft(text: str, title: str, first: str) -> None:
    draft = as_draft(text, "Old")
    assert draft is not None
    assert (draft.title, draft.sections[0].text) == (title, first)


@pytest.mark.parametrize(("extra", "fits"), [(0, True), (1, False)])
def test_a_draft_has_a_largest_size(extra: int, *, fits: bool) -> None:
    text = "x" * (SECTION_CHARS_MAX * SECTIONS_MAX + extra)
    draft = as_draft(text, "Old")
    assert (draft is not None) is fits
    if draft is not None:
        assert "".join(section.text for section in draft.sections) == text


def test_nothing_is_no_draft() -> None:
    assert as_draft(" \n ", "Old") is None
