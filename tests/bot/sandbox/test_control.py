"""The control API: its door, what people do, misbehaviour, the ledger."""

from __future__ import annotations

import httpx
import pytest
from telegram.error import BadRequest, ChatMigrated, Forbidden, NetworkError

from bot.sandbox.errors import ControlRefusal, WaitEnded
from tests.bot.sandbox.world_kit import PAGE_TOKEN, TOKEN, Sandbox

GROUP = -1002150001001
ANA = 5120045101
BO = 6034417202


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"X-Sandbox-Token": ""},
        {"X-Sandbox-Token": PAGE_TOKEN[:-1]},
        {"X-Sandbox-Token": PAGE_TOKEN + "x"},
        {"X-Sandbox-Token": PAGE_TOKEN, "Host": "evil.example"},
        {"X-Sandbox-Token": PAGE_TOKEN, "Host": "127.0.0.1.evil.example:80"},
    ],
)
async def test_without_the_token_or_under_a_foreign_name_nothing_is_told_or_done(
    box: Sandbox, headers: dict[str, str]
) -> None:
    body = {"person": "ana", "chat": "bot", "text": "x"}
    for method, path in (("GET", "state"), ("POST", "send"), ("GET", "file"), ("POST", "file")):
        answer = await box.http.request(method, f"/sandbox/{path}", headers=headers, json=body)
        assert answer.status_code == 403
    assert await box.people.messages("ana", "bot") == []


async def test_the_page_tells_its_token_only_under_its_own_name(box: Sandbox) -> None:
    page = await box.http.get("/")
    assert PAGE_TOKEN in page.text
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    foreign = await box.http.get("/", headers={"Host": "evil.example"})
    assert foreign.status_code == 403
    assert PAGE_TOKEN not in foreign.text
    assert (await box.http.get("/page/../client.py")).status_code == 404


async def test_people_edit_reply_forward_and_the_bot_hears_of_it(box: Sandbox) -> None:
    said = await box.people.send_text("ana", "bot", "one")
    await box.people.edit("ana", "bot", said["message_id"], "two")
    await box.people.reply("ana", "bot", said["message_id"], "three")
    await box.people.forward("ana", "bot", said["message_id"], GROUP)
    first, edited, replied, moved = await box.bot.get_updates()
    assert first.message is not None
    assert edited.edited_message is not None
    assert edited.edited_message.text == "two"
    assert edited.edited_message.edit_date is not None
    assert replied.message is not None
    assert replied.message.reply_to_message is not None
    assert replied.message.reply_to_message.message_id == said["message_id"]
    assert moved.message is not None
    assert moved.message.forward_origin is not None
    with pytest.raises(ControlRefusal):
        await box.people.edit("bo", GROUP, moved.message.message_id, "not mine")
    with pytest.raises(ControlRefusal):
        await box.people.messages("bo", ANA)


@pytest.mark.parametrize("shape", ["full", "stub", "inline", "bare"])
async def test_presses_come_in_every_shape_that_telegram_has(box: Sandbox, shape: str) -> None:
    keys = {"inline_keyboard": [[{"text": "A", "callback_data": "a"}]]}
    sent = await box.call("sendMessage", chat_id=GROUP, text="x", reply_markup=keys)
    result = sent["result"]
    assert isinstance(result, dict)
    await box.people.press("sam", GROUP, result["message_id"], "A", shape=shape)
    query = (await box.bot.get_updates())[0].callback_query
    assert query is not None
    assert query.from_user.first_name == "Sam"
    assert (query.data is None) is (shape == "bare")
    assert (query.message is None) is (shape in {"inline", "bare"})
    assert (query.inline_message_id is not None) is (shape == "inline")
    if query.message is not None:
        assert query.message.is_accessible is (shape == "full")


async def test_anonymous_admins_write_as_the_group(box: Sandbox) -> None:
    await box.people.send_text("ana", GROUP, "/needs", **{"as": "anonymous"})
    message = (await box.bot.get_updates())[0].message
    assert message is not None
    assert message.sender_chat is not None
    assert message.sender_chat.id == GROUP
    assert message.from_user is not None
    assert message.from_user.username == "GroupAnonymousBot"
    with pytest.raises(ControlRefusal):
        await box.people.send_text("sam", GROUP, "/needs", **{"as": "anonymous"})


async def test_a_channel_post_has_no_sender(box: Sandbox) -> None:
    made = await box.people.stage("create_chat", person="ana", title="News", type="channel")
    await box.people.send_text("ana", made["chat_id"], "post")
    joined, posted = await box.bot.get_updates()
    assert joined.my_chat_member is not None
    assert posted.channel_post is not None
    assert posted.channel_post.from_user is None


async def test_privacy_mode_hides_plain_group_talk_from_a_plain_member(box: Sandbox) -> None:
    await box.people.stage("standing", chat=GROUP, who="bot", status="member", person="ana")
    card = await box.bot.send_message(GROUP, "card")
    for text in ("plain", "/needs", "/needs@HarmoniaSandboxBot", "/needs@OtherBot", "hi @OtherBot"):
        await box.people.send_text("bo", GROUP, text)
    await box.people.send_text("bo", GROUP, "hey @harmoniasandboxbot")
    await box.people.reply("bo", GROUP, card.message_id, "an answer")
    heard = [update.message.text for update in await box.bot.get_updates() if update.message]
    assert heard == ["/needs", "/needs@HarmoniaSandboxBot", "hey @harmoniasandboxbot", "an answer"]
    await box.people.stage("privacy", reads_all=True)
    await box.people.send_text("bo", GROUP, "plain again")
    last = (await box.bot.get_updates())[-1].message
    assert last is not None
    assert last.text == "plain again"


# --- misbehaviour ---


async def test_a_dropped_reply_was_applied_and_a_dropped_request_was_not(box: Sandbox) -> None:
    await box.people.misbehave("drop_reply", "sendMessage")
    with pytest.raises(NetworkError):
        await box.bot.send_message(GROUP, "lost answer")
    await box.people.misbehave("drop_before", "sendMessage")
    with pytest.raises(httpx.RemoteProtocolError):
        await box.call("sendMessage", chat_id=GROUP, text="lost request")
    texts = [item["text"] for item in await box.people.messages("bo", GROUP)]
    assert texts == ["lost answer"]
    calls = [row for row in (await box.people.ledger())["calls"] if row["method"] == "sendMessage"]
    assert [(row["applied"], row["replied"], row["fault"]) for row in calls] == [
        (True, False, "drop_reply"),
        (False, False, "drop_before"),
    ]
    assert (await box.call("sendMessage", chat_id=GROUP, text="well again"))["ok"] is True


async def test_a_fault_fires_for_its_chat_its_method_and_its_times_only(box: Sandbox) -> None:
    ana = await box.started()
    await box.people.misbehave("fail_before", "sendmessage", chat_id=GROUP, times=2, code=502)
    assert (await box.call("sendMessage", chat_id=ana, text="x"))["ok"] is True
    assert (await box.call("getChat", chat_id=GROUP))["ok"] is True
    for accepted in (False, False, True):
        body = await box.call("sendMessage", chat_id=GROUP, text="x")
        assert body["ok"] is accepted
        assert accepted or (body["error_code"], body["description"]) == (502, "Bad Gateway")
    await box.people.misbehave("forbidden", times=9)
    await box.people.behave()
    assert (await box.call("getMe"))["ok"] is True


async def test_a_delayed_reply_outlasts_the_clients_patience_but_is_applied(box: Sandbox) -> None:
    await box.people.misbehave("delay_reply", "sendMessage", seconds=30)
    with pytest.raises(httpx.ReadTimeout):
        await box.http.post(
            f"/bot{TOKEN}/sendMessage", json={"chat_id": GROUP, "text": "slow"}, timeout=0.3
        )
    assert await box.people.wait_for("bo", GROUP, "slow")


async def test_an_order_that_is_not_understood_is_refused(box: Sandbox) -> None:
    for order in (
        {"kind": "explode"},
        {"kind": "drop_reply", "times": 0},
        {"kind": "too_many", "retry_after": "x"},
    ):
        kind = str(order.pop("kind"))
        with pytest.raises(ControlRefusal):
            await box.people.misbehave(kind, **order)
    with pytest.raises(ControlRefusal):
        await box.people.stage("make_coffee")


async def test_blocking_is_told_refused_and_taken_back_by_writing(box: Sandbox) -> None:
    ana = await box.started()
    await box.people.stage("block", person="ana")
    with pytest.raises(Forbidden, match="bot was blocked by the user"):
        await box.bot.send_message(ana, "x")
    told = (await box.bot.get_updates())[-1].my_chat_member
    assert told is not None
    assert told.new_chat_member.status == "kicked"
    await box.people.send_text("ana", "bot", "/start")
    assert (await box.bot.send_message(ana, "welcome back")).text == "welcome back"


async def test_a_migrated_group_refuses_with_its_new_number(box: Sandbox) -> None:
    made = await box.people.stage("create_chat", person="ana", title="Small", members=["bo"])
    old = made["chat_id"]
    assert (await box.bot.send_message(old, "x")).chat.type == "group"
    new = (await box.people.stage("migrate", chat=old))["chat_id"]
    assert str(new).startswith("-100")
    with pytest.raises(ChatMigrated) as refused:
        await box.bot.send_message(old, "x")
    assert refused.value.new_chat_id == new
    raw = await box.call("sendMessage", chat_id=old, text="x")
    assert raw["description"] == "Bad Request: group chat was upgraded to a supergroup chat"
    assert raw["parameters"] == {"migrate_to_chat_id": new}
    assert (await box.bot.send_message(new, "x")).chat.type == "supergroup"
    services = [update.message for update in await box.bot.get_updates() if update.message]
    assert [row.migrate_to_chat_id for row in services if row.migrate_to_chat_id] == [new]
    assert [row.migrate_from_chat_id for row in services if row.migrate_from_chat_id] == [old]
    with pytest.raises(ControlRefusal):
        await box.people.messages("bo", old)


async def test_a_deleted_topic_is_not_found_and_takes_its_messages(box: Sandbox) -> None:
    made = await box.people.stage("create_topic", person="ana", chat="Acme ops", name="Spring")
    thread = made["thread_id"]
    card = await box.bot.send_message(GROUP, "x", message_thread_id=thread)
    await box.people.stage("delete_topic", chat=GROUP, thread_id=thread)
    with pytest.raises(BadRequest, match="Message thread not found"):
        await box.bot.send_message(GROUP, "x", message_thread_id=thread)
    with pytest.raises(BadRequest, match="Message to edit not found"):
        await box.bot.edit_message_text("y", GROUP, card.message_id)


async def test_a_frozen_message_cannot_be_edited(box: Sandbox) -> None:
    card = await box.bot.send_message(GROUP, "x")
    await box.people.stage("freeze", chat=GROUP, message_id=card.message_id)
    with pytest.raises(BadRequest, match="Message can't be edited"):
        await box.bot.edit_message_text("y", GROUP, card.message_id)
    await box.people.stage("freeze", chat=GROUP, message_id=card.message_id, frozen=False)
    assert await box.bot.edit_message_text("y", GROUP, card.message_id)


async def test_a_new_person_may_have_any_name(box: Sandbox) -> None:
    await box.people.stage(
        "add_person", id=424242, key="rtl", first_name="\u202eevorppA", username="rtl_person"
    )
    await box.people.send_text("rtl", "bot", "hello")
    message = (await box.bot.get_updates())[0].message
    assert message is not None
    assert message.from_user is not None
    assert message.from_user.first_name == "\u202eevorppA"


# --- waiting and the ledger ---


async def test_a_wait_that_ends_without_its_message_says_what_was_seen(box: Sandbox) -> None:
    await box.bot.send_message(GROUP, "something else")
    with pytest.raises(WaitEnded, match="something else"):
        await box.people.wait_for("bo", GROUP, "never", seconds=0)


async def test_the_ledger_keeps_calls_in_order_without_secrets(box: Sandbox) -> None:
    before = (await box.people.ledger())["seq"]
    await box.bot.send_message(GROUP, "one")
    await box.call("sendMessage", chat_id=GROUP)
    await box.bot.send_document(GROUP, b"12345", filename="a.txt")
    ledger = await box.people.ledger(after=before)
    assert [row["method"] for row in ledger["calls"]] == [
        "sendMessage",
        "sendMessage",
        "sendDocument",
    ]
    assert [row["answer"]["ok"] for row in ledger["calls"]] == [True, False, True]
    assert ledger["calls"][2]["params"]["document"]["bytes"] == 5
    assert TOKEN not in str(ledger)
    sequence = [row["seq"] for row in ledger["calls"]]
    assert sequence == sorted(set(sequence))


async def test_people_cannot_send_what_a_client_would_not(box: Sandbox) -> None:
    with pytest.raises(ControlRefusal):
        await box.people.send_text("ana", "bot", "   ")
    with pytest.raises(ControlRefusal):
        await box.people.send_text("ana", "bot", "x" * 4097)
    with pytest.raises(ControlRefusal):
        await box.people.send_file("ana", "bot", "empty", b"")
    with pytest.raises(ControlRefusal):
        await box.people.send_text("nobody", "bot", "x")
    assert await box.updates() == []
    assert BO not in [row["update_id"] for row in (await box.people.ledger())["deliveries"]]
