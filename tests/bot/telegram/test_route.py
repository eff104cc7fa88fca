"""Routing: what acts, what is silent, what is refused; a table of updates and a fuzzer."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.telegram.intents import (
    Answer,
    AskNew,
    BindGroup,
    Chat,
    Help,
    Ignore,
    Intent,
    Invite,
    Jobs,
    Moved,
    Needs,
    New,
    Pair,
    Press,
    Reach,
    Refuse,
    ShowJob,
    Status,
    Why,
    WrongAnswer,
)
from bot.telegram.route import HINT_ANONYMOUS, PASTED_CHARS_MIN, Facts, route, route_unbound
from bot.telegram.sourcing import CUT_UNITS_MIN, HINT_CUT
from runtime.domain.people import Role, code_digest
from runtime.domain.question import Open, Question, QuestionKind, place

FACTS = Facts(bot_id=7, bot_username="OpsDesk_bot")
NOW = datetime(2027, 1, 4, 9, 0, tzinfo=UTC)
PRIVATE = {"id": 1001, "type": "private"}
GROUP = {"id": -5, "type": "supergroup"}
ANA = {"id": 1001, "is_bot": False, "first_name": "Ana"}


def said(text: str, chat: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:  # noqa: ANN401 - any JSON value
    """A message; a leading slash gets the entity that Telegram would add."""
    message: dict[str, Any] = {
        "message_id": 5,
        "chat": chat or PRIVATE,
        "from": ANA,
        "text": text,
        **more,
    }
    if text.startswith("/"):
        length = len(text.split(maxsplit=1)[0].encode("utf-16-le")) // 2
        message["entities"] = [{"type": "bot_command", "offset": 0, "length": length}]
    return {"update_id": 1, "message": message}


def asked(kind: QuestionKind) -> Facts:
    here, person = "telegram:1001", "telegram:1001"
    question = Question(
        id="q1",
        kind=kind,
        place=place(here, person),
        destination=here,
        person=person,
        subject="approval-1",
        text="?",
        asked_at=NOW,
        expires_at=NOW + timedelta(hours=1),
        state=Open(),
    )
    return Facts(7, "OpsDesk_bot", question, question_message=4)


@pytest.mark.parametrize(
    ("text", "intent"),
    [
        ("/start", Status()),
        ("/start abc", Pair(code_digest("abc"))),
        ("/help", Help()),
        ("/status", Status()),
        ("/new", AskNew()),
        ("/needs", Needs()),
        ("/needs@opsdesk_BOT", Needs()),
        ("/jobs", Jobs(None)),
        ("/jobs 30", Jobs(30)),
        ("/job 17", ShowJob(17)),
        ("/why #17", Why(17)),
        ("/invite approver", Invite(Role.APPROVER)),
        ("/invite Viewer", Invite(Role.VIEWER)),
    ],
)
def test_documented_forms_act(text: str, intent: Intent) -> None:
    assert route(said(text), FACTS) == intent


def test_case_19_only_documented_forms_of_our_own_name_act() -> None:
    """Own name in any case acts; another bot's stays silent; the rest is said to be no command."""
    assert isinstance(route(said("/needs@opsdesk_BOT"), FACTS), Needs)
    for chat in (PRIVATE, GROUP):
        assert isinstance(route(said("/needs@OpsDesk_bot2", chat), FACTS), Ignore)
    assert isinstance(route(said("/NEEDS"), FACTS), Refuse)
    assert isinstance(route(said("/NEEDS", GROUP), FACTS), Ignore)
    assert route(said("please /needs"), FACTS) == Chat("please /needs")
    middle = said("please /needs")
    middle["message"]["entities"] = [{"type": "bot_command", "offset": 7, "length": 6}]
    assert route(middle, FACTS) == Chat("please /needs")


@pytest.mark.parametrize("text", ["/job", "/job x", "/job -1", "/why 1234567890", "/invite admin"])
def test_a_command_with_a_wrong_argument_says_how_it_is_written(text: str) -> None:
    assert isinstance(route(said(text), FACTS), Refuse)


def test_an_unknown_command_is_answered_in_private_only() -> None:
    assert isinstance(route(said("/pause 3"), FACTS), Refuse)
    assert isinstance(route(said("/pause 3", GROUP), FACTS), Ignore)


def test_offsets_count_utf16_units() -> None:
    update = said("🚀 /needs")
    update["message"]["entities"] = [{"type": "bot_command", "offset": 3, "length": 6}]
    assert route(update, FACTS) == Chat("🚀 /needs")


def test_edited_messages_and_forwards_never_run_a_command() -> None:
    edited = {"update_id": 1, "edited_message": said("/needs")["message"]}
    assert isinstance(route(edited, FACTS), Ignore)
    forwarded = route(said("/new text", forward_origin={"type": "user"}), FACTS)
    assert forwarded == Chat("/new text")


def test_anonymous_admins_and_channels_are_refused_with_a_hint() -> None:
    anonymous = said("/needs", GROUP, sender_chat=GROUP)
    assert route(anonymous, FACTS) == Refuse(HINT_ANONYMOUS, "anonymous")
    assert isinstance(route(said("hello", GROUP, sender_chat=GROUP), FACTS), Ignore)
    post = {
        "update_id": 1,
        "channel_post": said("/needs", {"id": -9, "type": "channel"})["message"],
    }
    assert route(post, FACTS) == Refuse(HINT_ANONYMOUS, "anonymous")


def test_other_bots_are_ignored() -> None:
    update = said("/needs")
    update["message"]["from"] = {"id": 5, "is_bot": True, "first_name": "Other"}
    assert isinstance(route(update, FACTS), Ignore)


def test_group_talk_is_for_the_bot_only_when_it_says_so() -> None:
    assert isinstance(route(said("hello all", GROUP), FACTS), Ignore)
    mention = said("@OPSDESK_bot how is it?", GROUP)
    mention["message"]["entities"] = [{"type": "mention", "offset": 0, "length": 12}]
    assert isinstance(route(mention, FACTS), Chat)
    reply = said("how is it?", GROUP, reply_to_message={"message_id": 3, "from": {"id": 7}})
    assert isinstance(route(reply, FACTS), Chat)


def test_files_links_and_long_texts_are_sources_in_private() -> None:
    document = {"file_id": "F", "file_name": "a.md", "mime_type": "text/markdown", "file_size": 9}
    update = said("", document=document, caption="make it short")
    del update["message"]["text"]
    intent = route(update, FACTS)
    assert isinstance(intent, New)
    assert intent.source.file is not None
    assert (intent.source.file.id, intent.source.brief) == ("F", "make it short")
    link = route(said("https://example.org/a"), FACTS)
    assert isinstance(link, New)
    assert link.source.link == "https://example.org/a"
    assert isinstance(route(said("see https://example.org/a"), FACTS), Chat)
    assert isinstance(route(said("w" * PASTED_CHARS_MIN), FACTS), New)
    assert isinstance(route(said("w" * (PASTED_CHARS_MIN - 1)), FACTS), Chat)
    assert isinstance(route(said("", GROUP, document=document), FACTS), Ignore)


def test_a_text_that_may_be_a_piece_is_refused_with_the_way_out() -> None:
    assert route(said("w" * CUT_UNITS_MIN), FACTS) == Refuse(HINT_CUT, "content")
    assert isinstance(route(said("w" * (CUT_UNITS_MIN - 1)), FACTS), New)


def test_new_takes_its_source_from_the_rest_or_the_replied_message() -> None:
    with_link = route(said("/new https://example.org/a keep it short"), FACTS)
    assert isinstance(with_link, New)
    assert (with_link.source.link, with_link.source.brief) == (
        "https://example.org/a",
        "keep it short",
    )
    with_text = route(said("/new Release notes: faster."), FACTS)
    assert isinstance(with_text, New)
    assert with_text.source.text == "Release notes: faster."
    replied = route(
        said("/new", GROUP, reply_to_message={"document": {"file_id": "F"}, "from": ANA}), FACTS
    )
    assert isinstance(replied, New)


def test_what_cannot_be_read_is_said_so_and_service_messages_are_not() -> None:
    photo = said("", photo=[{"file_id": "P"}])
    del photo["message"]["text"]
    assert isinstance(route(photo, FACTS), Refuse)
    pinned = said("", pinned_message={"message_id": 3})
    del pinned["message"]["text"]
    assert isinstance(route(pinned, FACTS), Ignore)


def test_a_question_takes_its_kind_of_answer_and_stays_open_for_others() -> None:
    facts = asked("edit_text")
    intent = route(said("the new text"), facts)
    assert isinstance(intent, Answer)
    assert intent.text == "the new text"
    voice = said("", voice={"file_id": "V"})
    del voice["message"]["text"]
    assert isinstance(route(voice, facts), WrongAnswer)
    assert isinstance(route(said("w" * CUT_UNITS_MIN), facts), WrongAnswer)
    assert isinstance(route(said("/needs"), facts), Needs)
    assert isinstance(route(said("/PAUSE"), facts), Refuse)
    source = route(said("https://example.org/a"), asked("new_source"))
    assert isinstance(source, Answer)
    assert source.source is not None
    photo = said("", photo=[{"file_id": "P"}])
    del photo["message"]["text"]
    assert isinstance(route(photo, asked("reject_reason")), WrongAnswer)


@pytest.mark.parametrize(
    ("name", "declared", "taken"),
    [
        ("a.md", "application/octet-stream", True),
        ("a.MD", "", True),
        ("a", "text/plain", True),
        ("a.pdf", "application/pdf", False),
    ],
)
def test_an_edit_may_come_as_a_text_file_whatever_its_client_calls_it(
    name: str, declared: str, *, taken: bool
) -> None:
    document = {"file_id": "F", "file_name": name, "mime_type": declared}
    sent = said("", document=document)
    del sent["message"]["text"]
    intent = route(sent, asked("edit_text"))
    assert isinstance(intent, Answer if taken else WrongAnswer)


def test_in_a_group_only_a_reply_to_the_question_answers_it() -> None:
    facts = asked("reject_reason")
    assert isinstance(route(said("hm", GROUP), facts), Ignore)
    other = said("hm", GROUP, reply_to_message={"message_id": 3})
    assert isinstance(route(other, facts), Ignore)
    reply = said("hm", GROUP, reply_to_message={"message_id": 4})
    assert isinstance(route(reply, facts), Answer)


def test_presses_keep_token_query_and_message() -> None:
    full = {
        "update_id": 1,
        "callback_query": {
            "id": "q",
            "from": ANA,
            "data": "t",
            "message": {"message_id": 4, "date": 0, "chat": PRIVATE},
        },
    }
    assert route(full, FACTS) == Press("t", "q", 4)
    bare = {"update_id": 1, "callback_query": {"id": "q", "from": ANA}}
    assert route(bare, FACTS) == Press("", "q", None)


@pytest.mark.parametrize(
    ("status", "accepts"),
    [("kicked", False), ("left", False), ("member", True), ("administrator", True)],
)
def test_the_bots_own_membership_says_whether_it_is_heard(status: str, accepts: bool) -> None:
    update = {
        "update_id": 1,
        "my_chat_member": {"chat": PRIVATE, "from": ANA, "new_chat_member": {"status": status}},
    }
    intent = route(update, FACTS)
    assert isinstance(intent, Reach)
    assert intent.accepts is accepts


def test_both_migration_messages_say_the_same() -> None:
    old = said("", {"id": -5, "type": "group"}, migrate_to_chat_id=-1005)
    new = said("", {"id": -1005, "type": "supergroup"}, migrate_from_chat_id=-5)
    assert route(old, FACTS) == route(new, FACTS) == Moved(-5, -1005)


@pytest.mark.parametrize(
    ("kept", "intent"),
    [
        ({"kind": "message", "person": 1, "chat_type": "private", "code": "ab"}, Pair("ab")),
        ({"kind": "message", "person": 1, "chat_type": "group", "command": "start"}, BindGroup()),
        ({"kind": "message", "person": 1, "chat_type": "private"}, Status()),
        ({"kind": "message", "person": 1, "chat_type": "group", "command": "needs"}, Status()),
        ({"kind": "press", "query": "q", "message": 4}, Press("", "q", 4)),
        ({"kind": "message", "chat": -5, "migrate_to_chat_id": -6}, Moved(-5, -6)),
    ],
)
def test_metadata_of_unbound_chats_is_enough(kept: dict[str, Any], intent: Intent) -> None:
    assert route_unbound(kept) == intent


def test_group_talk_of_an_unbound_chat_is_ignored() -> None:
    assert isinstance(route_unbound({"kind": "message", "person": 1, "chat_type": "group"}), Ignore)


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20) | st.floats(allow_nan=False),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "message",
                    "callback_query",
                    "chat",
                    "id",
                    "from",
                    "text",
                    "entities",
                    "data",
                    "type",
                ]
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=20,
)


@given(JUNK, JUNK, JUNK)
def test_no_update_breaks_routing(first: object, second: object, third: object) -> None:
    """Whatever the JSON is, there is an intent."""
    for kind in ("message", "edited_message", "callback_query", "my_chat_member", "channel_post"):
        update = {"update_id": 1, kind: {"chat": first, "from": second, "text": third}}
        route(update, FACTS)
        route(update, asked("edit_text"))
    route({"message": first}, FACTS)
    route_unbound({"kind": "message", "person": first, "chat": second, "code": third})
