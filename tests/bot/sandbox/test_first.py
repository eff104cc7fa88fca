"""First contact."""
from __future__ import annotations

from world_kit import Sandbox
from telegram import InlineKeyboardMarkup, InlineKeyboardButton, Update


async def test_story(box: Sandbox) -> None:
    me = await box.bot.get_me()
    assert me.username == "HarmoniaSandboxBot"
    sent = await box.people.send_text("ana", "bot", "/start hello")
    ups = await box.bot.get_updates()
    assert ups[0].message.text == "/start hello"
    assert ups[0].message.entities[0].type == "bot_command"
    card = await box.bot.send_message(sent["chat"]["id"], "<b>Approve?</b> 🚀 <i>x</i>", parse_mode="HTML",
        reply_markup=InlineKeyboardMarkup([[InlineKeyboardButton("Approve", callback_data="t1")]]))
    got = await box.people.wait_for("ana", "bot", "Approve?")
    assert got["message_id"] == card.message_id
    p = await box.people.press("ana", "bot", card.message_id, "Approve")
    ups = await box.bot.get_updates(offset=ups[-1].update_id + 1, timeout=5)
    assert ups[0].callback_query.data == "t1"
    await ups[0].callback_query.answer("done")
    assert (await box.people.answer_to(p))["text"] == "done"
    await ups[0].callback_query.edit_message_text("Approved")
    f = await box.people.send_file("bo", "bot", "a b.txt", b"hello", caption="cap")
    ups = await box.bot.get_updates(offset=ups[-1].update_id + 1, timeout=5)
    file = await ups[0].message.document.get_file()
    assert bytes(await file.download_as_bytearray()) == b"hello"
    doc = await box.bot.send_document(sent["chat"]["id"], b"abc", filename="x.zip", caption="c")
    assert doc.document.file_name == "x.zip"
    print((await box.people.ledger())["calls"][-1])
