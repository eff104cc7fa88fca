"""The Bot API as a real client and a raw one meet it: answers, refusals, bodies, files."""

from __future__ import annotations

import json

import pytest
from telegram import (
    Bot,
    ForceReply,
    InlineKeyboardButton,
    InlineKeyboardMarkup,
    ReplyParameters,
)
from telegram.error import BadRequest, Forbidden, InvalidToken, RetryAfter

from tests.bot.sandbox.world_kit import TOKEN, Sandbox

GROUP = -1002150001001
BO = 6034417202


async def test_a_story_from_start_to_decision_runs_through_the_real_client(box: Sandbox) -> None:
    assert (await box.bot.get_me()).username == "HarmoniaSandboxBot"
    sent = await box.people.send_text("ana", "bot", "/start hello")
    first = (await box.bot.get_updates())[0]
    assert first.message is not None
    assert first.message.text == "/start hello"
    assert [entity.type for entity in first.message.entities] == ["bot_command"]
    keys = InlineKeyboardMarkup([[InlineKeyboardButton("Approve", callback_data="t1")]])
    card = await box.bot.send_message(
        sent["chat"]["id"], "<b>Approve?</b> 🚀", parse_mode="HTML", reply_markup=keys
    )
    assert [(e.offset, e.length, e.type) for e in card.entities] == [(0, 8, "bold")]
    press = await box.people.press("ana", "bot", card.message_id, "Approve")
    update = (await box.bot.get_updates(offset=first.update_id + 1))[0]
    assert update.callback_query is not None
    assert update.callback_query.data == "t1"
    await update.callback_query.answer("Approved by Ana", show_alert=True)
    answer = await box.people.answer_to(press)
    assert (answer["text"], answer["show_alert"]) == ("Approved by Ana", True)
    await update.callback_query.edit_message_text("Approved")
    shown = await box.people.message("ana", "bot", card.message_id)
    assert shown is not None
    assert shown["text"] == "Approved"
    assert "reply_markup" not in shown
    assert shown["edit_date"] >= shown["date"]


@pytest.mark.parametrize("method", ["getMe", "getme", "GETME"])
async def test_method_names_ignore_case_and_get_and_post_are_the_same(
    box: Sandbox, method: str
) -> None:
    got = (await box.http.get(f"/bot{TOKEN}/{method}")).json()
    assert got == (await box.http.post(f"/bot{TOKEN}/{method}")).json()
    assert got["result"]["is_bot"] is True


async def test_query_form_multipart_and_json_bodies_say_the_same(box: Sandbox) -> None:
    ana = await box.started()
    path = f"/bot{TOKEN}/sendMessage"
    markup = {"inline_keyboard": [[{"text": "A", "callback_data": "a"}]]}
    flat = {"chat_id": str(ana), "text": "ä 🚀", "reply_markup": json.dumps(markup)}
    answers = [
        await box.http.get(path, params=flat),
        await box.http.post(path, data=flat),
        await box.http.post(path, data=flat, files={"x": ("x", b"x")}),
        await box.http.post(path, json={"chat_id": ana, "text": "ä 🚀", "reply_markup": markup}),
    ]
    for answer in answers:
        message = answer.json()["result"]
        assert message["text"] == "ä 🚀"
        assert message["reply_markup"] == markup


async def test_strangers_to_the_token_are_turned_away(box: Sandbox) -> None:
    for token, code, text in (
        (TOKEN + "x", 401, "Unauthorized"),
        ("7402510983:", 401, "Unauthorized"),
        ("nonsense", 404, "Not Found"),
    ):
        answer = await box.http.get(f"/bot{token}/getMe")
        assert answer.status_code == code
        assert answer.json() == {"ok": False, "error_code": code, "description": text}
    with pytest.raises(InvalidToken):
        async with Bot(TOKEN + "x", base_url=f"{box.url}/bot"):
            pass


async def test_an_unknown_method_is_not_found(box: Sandbox) -> None:
    body = await box.call("sendTelepathy")
    assert (body["error_code"], body["description"]) == (404, "Not Found: method not found")


@pytest.mark.parametrize(
    ("params", "text"),
    [
        ({"text": "x"}, "Bad Request: chat_id is empty"),
        ({"chat_id": 42, "text": "x"}, "Bad Request: chat not found"),
        ({"chat_id": "@nobody_here", "text": "x"}, "Bad Request: chat not found"),
        ({"chat_id": 42}, "Bad Request: message text is empty"),
        ({"chat_id": 42, "text": " \n "}, "Bad Request: text must be non-empty"),
        (
            {"chat_id": 42, "text": "x", "parse_mode": "BBCode"},
            "Bad Request: unsupported parse_mode",
        ),
        (
            {"chat_id": BO, "text": "x"},
            "Forbidden: bot can't initiate conversation with a user",
        ),
        (
            {"chat_id": GROUP, "text": "x", "message_thread_id": 999},
            "Bad Request: message thread not found",
        ),
        (
            {"chat_id": GROUP, "text": "x", "message_thread_id": 1},
            "Bad Request: message thread not found",
        ),
        (
            {"chat_id": GROUP, "text": "x", "reply_parameters": {"message_id": 999}},
            "Bad Request: message to be replied not found",
        ),
        (
            {"chat_id": GROUP, "text": "x", "reply_markup": "{"},
            "Bad Request: can't parse reply keyboard markup JSON object",
        ),
        (
            {"chat_id": GROUP, "text": "x", "reply_markup": {"inline_keyboard": [[{"text": "A"}]]}},
            (
                "Bad Request: can't parse inline keyboard button: "
                "Text buttons are unallowed in the inline keyboard"
            ),
        ),
        (
            {
                "chat_id": GROUP,
                "text": "x",
                "reply_markup": {"inline_keyboard": [[{"callback_data": "A"}]]},
            },
            "Bad Request: can't parse inline keyboard button: Can't find field \"text\"",
        ),
        (
            {
                "chat_id": GROUP,
                "text": "x",
                "reply_markup": {"inline_keyboard": [[{"text": "A", "url": "http://localhost/"}]]},
            },
            (
                "Bad Request: inline keyboard button URL 'http://localhost/' is invalid: "
                "Wrong HTTP URL"
            ),
        ),
    ],
)
async def test_sends_are_refused_in_telegrams_words_and_leave_nothing(
    box: Sandbox, params: dict[str, object], text: str
) -> None:
    assert await box.refusal("sendMessage", **params) == text
    assert await box.people.messages("ana", GROUP) == []


@pytest.mark.parametrize(("size", "accepted"), [(4095, True), (4096, True), (4097, False)])
async def test_a_text_has_at_most_4096_units_after_its_marks_are_gone(
    box: Sandbox, size: int, *, accepted: bool
) -> None:
    text = "<b>" + "🚀" * (size // 2) + "x" * (size % 2) + "</b>"
    body = await box.call("sendMessage", chat_id=GROUP, text=text, parse_mode="HTML")
    assert body["ok"] is accepted
    assert accepted or body["description"] == "Bad Request: message is too long"


@pytest.mark.parametrize(("size", "accepted"), [(1023, True), (1024, True), (1025, False)])
async def test_a_caption_has_at_most_1024_units(box: Sandbox, size: int, *, accepted: bool) -> None:
    answer = await box.http.post(
        f"/bot{TOKEN}/sendDocument",
        data={"chat_id": GROUP, "caption": "c" * size},
        files={"document": ("a.txt", b"x")},
    )
    assert answer.json()["ok"] is accepted
    assert accepted or answer.json()["description"] == "Bad Request: message caption is too long"


@pytest.mark.parametrize(
    ("data", "accepted"), [("é" * 31 + "x", True), ("é" * 32, True), ("é" * 32 + "x", False)]
)
async def test_callback_data_has_at_most_64_bytes(
    box: Sandbox, data: str, *, accepted: bool
) -> None:
    keys = {"inline_keyboard": [[{"text": "A", "callback_data": data}]]}
    body = await box.call("sendMessage", chat_id=GROUP, text="x", reply_markup=keys)
    assert body["ok"] is accepted
    assert accepted or body["description"] == "Bad Request: BUTTON_DATA_INVALID"


@pytest.mark.parametrize(("count", "accepted"), [(99, True), (100, True), (101, False)])
async def test_a_keyboard_has_at_most_100_buttons(
    box: Sandbox, count: int, *, accepted: bool
) -> None:
    keys = {"inline_keyboard": [[{"text": "A", "callback_data": "a"}]] * count}
    body = await box.call("sendMessage", chat_id=GROUP, text="x", reply_markup=keys)
    assert body["ok"] is accepted
    assert accepted or body["description"] == "Bad Request: reply markup is too long"


async def test_an_edit_that_changes_nothing_is_not_modified(box: Sandbox) -> None:
    card = await box.bot.send_message(GROUP, "x")
    with pytest.raises(BadRequest) as refused:
        await box.bot.edit_message_text("<b></b>x", GROUP, card.message_id, parse_mode="HTML")
    assert refused.value.message == (
        "Message is not modified: specified new message content and reply markup are exactly the "
        "same as a current content and reply markup of the message"
    )
    keys = InlineKeyboardMarkup([[InlineKeyboardButton("A", callback_data="a")]])
    await box.bot.edit_message_reply_markup(GROUP, card.message_id, reply_markup=keys)
    with pytest.raises(BadRequest, match="not modified"):
        await box.bot.edit_message_reply_markup(GROUP, card.message_id, reply_markup=keys)


async def test_edits_of_what_is_not_there_or_not_the_bots_are_refused(box: Sandbox) -> None:
    said = await box.people.send_text("bo", GROUP, "hello")
    for number, text in (
        (999, "Bad Request: message to edit not found"),
        (said["message_id"], "Bad Request: message can't be edited"),
    ):
        params = {"chat_id": GROUP, "message_id": number, "text": "y"}
        assert await box.refusal("editMessageText", **params) == text
    document = await box.bot.send_document(GROUP, b"x", filename="a.txt")
    with pytest.raises(BadRequest, match="There is no text in the message to edit"):
        await box.bot.edit_message_text("y", GROUP, document.message_id)
    changed = await box.bot.edit_message_caption(GROUP, document.message_id, caption="<i>c</i>")
    assert getattr(changed, "caption", None) == "<i>c</i>"


async def test_deleting_twice_is_refused_and_others_see_it_gone(box: Sandbox) -> None:
    card = await box.bot.send_message(GROUP, "x")
    assert await box.bot.delete_message(GROUP, card.message_id)
    assert await box.people.messages("bo", GROUP) == []
    with pytest.raises(BadRequest, match="Message to delete not found"):
        await box.bot.delete_message(GROUP, card.message_id)


async def test_a_press_is_answered_once_and_only_for_a_while(box: Sandbox) -> None:
    keys = InlineKeyboardMarkup([[InlineKeyboardButton("A", callback_data="a")]])
    card = await box.bot.send_message(GROUP, "x", reply_markup=keys)
    old = "Bad Request: query is too old and response timeout expired or query ID is invalid"
    for wait, accepted in ((14, True), (15, True), (17, False)):
        press = await box.people.press("bo", GROUP, card.message_id, "A")
        begun = box.clock.ahead
        box.clock.ahead += type(begun)(seconds=wait - 0.5)
        body = await box.call("answerCallbackQuery", callback_query_id=press["query_id"])
        assert body["ok"] is accepted, wait
        again = await box.refusal("answerCallbackQuery", callback_query_id=press["query_id"])
        assert again == old
    assert await box.refusal("answerCallbackQuery", callback_query_id="1") == old


async def test_files_travel_both_ways_and_the_bot_gets_at_most_20_mb(box: Sandbox) -> None:
    ana = await box.started()
    await box.people.send_file("ana", "bot", "../a b.txt", b"hello", caption="/new this")
    message = (await box.bot.get_updates())[-1].message
    assert message is not None
    assert message.document is not None
    assert message.document.file_name == "a b.txt"
    assert message.document.mime_type == "text/plain"
    held = await message.document.get_file()
    assert bytes(await held.download_as_bytearray()) == b"hello"
    again = await box.bot.send_document(ana, message.document.file_id, caption="back")
    assert again.document is not None
    assert await box.people.download(again.document.file_id) == b"hello"
    limit = 20 * 1024 * 1024
    for size, accepted in ((limit, True), (limit + 1, False)):
        sent = await box.people.send_file("ana", "bot", "big.bin", b"x" * size)
        body = await box.call("getFile", file_id=sent["document"]["file_id"])
        assert body["ok"] is accepted
        assert accepted or body["description"] == "Bad Request: file is too big"
    assert await box.refusal("getFile", file_id="nope") == "Bad Request: invalid file_id"
    lost = await box.http.get(f"/file/bot{TOKEN}/documents/../world.jsonl")
    assert lost.status_code == 404


async def test_a_photo_must_be_an_image(box: Sandbox) -> None:
    png = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + (64).to_bytes(4, "big") + (48).to_bytes(4, "big")
    sent = await box.bot.send_photo(GROUP, png)
    assert [(size.width, size.height) for size in sent.photo] == [(64, 48)]
    with pytest.raises(BadRequest, match=r"Image_process_failed|IMAGE_PROCESS_FAILED"):
        await box.bot.send_photo(GROUP, b"no image")
    with pytest.raises(BadRequest, match=r"[Ff]ile must be non-empty"):
        await box.bot.send_document(GROUP, b"", filename="empty.txt")


async def test_topics_replies_and_force_reply_are_carried(box: Sandbox) -> None:
    said = await box.people.send_text("bo", GROUP, "in the topic", thread_id=2)
    assert said["message_thread_id"] == 2
    answer = await box.bot.send_message(
        GROUP,
        "why?",
        reply_parameters=ReplyParameters(said["message_id"]),
        reply_markup=ForceReply(input_field_placeholder="Reason", selective=True),
    )
    assert answer.message_thread_id == 2
    assert answer.reply_to_message is not None
    assert answer.reply_to_message.text == "in the topic"
    shown = await box.people.message("bo", GROUP, answer.message_id)
    assert shown is not None
    assert shown["input_markup"]["input_field_placeholder"] == "Reason"
    plain = await box.people.send_text("bo", GROUP, "general", thread_id=1)
    assert "message_thread_id" not in plain


async def test_commands_chats_and_members_are_told_as_documented(box: Sandbox) -> None:
    await box.bot.set_my_commands([("start", "pair"), ("needs", "what waits")])
    assert [row.command for row in await box.bot.get_my_commands()] == ["start", "needs"]
    await box.bot.delete_my_commands()
    assert await box.bot.get_my_commands() == ()
    with pytest.raises(BadRequest, match=r"(?i)bot_command_invalid"):
        await box.bot.set_my_commands([("Start", "x")])
    chat = await box.bot.get_chat(GROUP)
    assert (chat.type, chat.title, chat.is_forum) == ("supergroup", "Acme ops", True)
    assert (await box.bot.get_chat_member(GROUP, BO)).status == "member"
    with pytest.raises(BadRequest, match="User not found"):
        await box.bot.get_chat_member(GROUP, 77)
    admins = await box.bot.get_chat_administrators(GROUP)
    assert [row.status for row in admins] == ["creator", "administrator"]
    with pytest.raises(BadRequest, match="private chat"):
        await box.bot.get_chat_administrators(BO)
    assert await box.bot.send_chat_action(GROUP, "typing")
    with pytest.raises(BadRequest, match=r"[Ww]rong parameter action in request"):
        await box.bot.send_chat_action(GROUP, "dancing")


async def test_reactions_pins_copies_and_forwards_work(box: Sandbox) -> None:
    ana = await box.started()
    said = await box.people.send_text("bo", GROUP, "keep <this>")
    number = said["message_id"]
    assert await box.bot.set_message_reaction(GROUP, number, "👍")
    shown = await box.people.message("bo", GROUP, number)
    assert shown is not None
    assert shown["reactions"] == [{"type": "emoji", "emoji": "👍"}]
    assert await box.bot.pin_chat_message(GROUP, number)
    assert (await box.bot.get_chat(GROUP)).pinned_message is not None
    moved = await box.bot.forward_message(ana, GROUP, number)
    assert moved.forward_origin is not None
    assert moved.forward_origin.to_dict()["sender_user"]["id"] == BO
    copied = await box.bot.copy_message(ana, GROUP, number)
    made = await box.people.message("ana", "bot", copied.message_id)
    assert made is not None
    assert made["text"] == "keep <this>"
    assert "forward_origin" not in made


async def test_leaving_a_group_closes_it(box: Sandbox) -> None:
    assert await box.bot.leave_chat(GROUP)
    with pytest.raises(Forbidden, match="bot is not a member of the supergroup chat"):
        await box.bot.send_message(GROUP, "x")


async def test_logging_out_refuses_the_bot_for_ten_minutes(box: Sandbox) -> None:
    assert await box.bot.log_out()
    assert await box.refusal("getMe") == "Logged out"
    box.clock.ahead += type(box.clock.ahead)(seconds=600)
    assert (await box.call("getMe"))["ok"] is True


@pytest.mark.filterwarnings("ignore:Deprecated since version v22.2")
async def test_the_client_knows_a_429_by_its_parameters(box: Sandbox) -> None:
    await box.people.misbehave("too_many", "sendMessage", retry_after=7)
    with pytest.raises(RetryAfter) as refused:
        await box.bot.send_message(GROUP, "x")
    after = refused.value.retry_after  # an environment variable decides which type it is
    assert (after if isinstance(after, int) else after.total_seconds()) == 7
    await box.people.misbehave("too_many", "sendMessage", retry_after=7)
    answer = await box.http.post(f"/bot{TOKEN}/sendMessage", json={"chat_id": GROUP, "text": "x"})
    assert answer.status_code == 429
    assert answer.headers["retry-after"] == "7"
    assert answer.json() == {
        "ok": False,
        "error_code": 429,
        "description": "Too Many Requests: retry after 7",
        "parameters": {"retry_after": 7},
    }
