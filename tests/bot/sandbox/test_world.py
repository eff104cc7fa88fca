"""A world in a folder survives the end of its process, whole changes only."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.sandbox.cast import open_world
from bot.sandbox.errors import WorldUnreadable
from bot.sandbox.model import Chat, Message, StoredFile
from tests.bot.sandbox.world_kit import TOKEN, CountingIds, LoopClock, sandbox

GROUP = -1002150001001


async def test_everything_is_there_after_a_restart(tmp_path: Path) -> None:
    async with sandbox(tmp_path) as box:
        ana = await box.started()
        said = await box.people.send_file("ana", "bot", "a.txt", b"kept")
        keys = {"inline_keyboard": [[{"text": "A", "callback_data": "a"}]]}
        card = (await box.call("sendMessage", chat_id=ana, text="card", reply_markup=keys))[
            "result"
        ]
        assert isinstance(card, dict)
        press = await box.people.press("ana", "bot", card["message_id"], "A")
        await box.bot.set_my_commands([("start", "pair")])
        await box.updates(allowed_updates=["message", "callback_query"])
        before = await box.updates()
        messages = await box.people.messages("ana", "bot")
        seq = (await box.people.ledger())["seq"]
    # No orderly end is needed: a second world reads the journal of the first as it was left.
    async with sandbox(tmp_path) as box:
        assert await box.updates() == before
        assert await box.people.messages("ana", "bot") == messages
        assert await box.people.download(said["document"]["file_id"]) == b"kept"
        body = await box.call("answerCallbackQuery", callback_query_id=press["query_id"])
        assert body["ok"] is True
        assert [row.command for row in await box.bot.get_my_commands()] == ["start"]
        ledger = await box.people.ledger()
        assert ledger["seq"] > seq
        assert ledger["deliveries"][-1]["times"] >= 2
        later = await box.people.send_text("ana", "bot", "later")
        assert later["message_id"] > card["message_id"]
        newest = (await box.updates())[-1]
        assert int(str(newest["update_id"])) == int(str(before[-1]["update_id"])) + 1


async def test_a_torn_last_line_is_dropped_and_any_other_is_an_error(tmp_path: Path) -> None:
    clock = LoopClock()
    world = open_world(clock, CountingIds(), tmp_path, token=TOKEN)
    world.put(Message(chat_id=GROUP, message_id=9, date=1, text="whole"))
    world.commit()
    world.put(Message(chat_id=GROUP, message_id=10, date=1, text="torn"))
    world.commit()
    world.close()
    path = tmp_path / "world.jsonl"
    content = path.read_bytes()
    for cut in range(1, len(content.splitlines()[-1]) + 1):
        path.write_bytes(content[:-cut])
        again = open_world(clock, CountingIds(), tmp_path)
        texts = [row.text for row in again.messages(GROUP)]
        assert texts == ["whole"], cut
        again.close()
    path.write_bytes(b'{"half\n' + content)
    with pytest.raises(WorldUnreadable):
        open_world(clock, CountingIds(), tmp_path)


async def test_a_change_that_was_not_committed_is_not_there(tmp_path: Path) -> None:
    clock = LoopClock()
    world = open_world(clock, CountingIds(), tmp_path)
    world.put(Chat(id=-5, type="group", title="lost", members={}))
    assert open_world(clock, CountingIds(), tmp_path).get(Chat, -5) is None
    world.close()


async def test_numbers_keep_rising_and_compaction_keeps_the_state(tmp_path: Path) -> None:
    clock = LoopClock()
    numbers = []
    for _ in range(3):
        world = open_world(clock, CountingIds(), tmp_path)
        numbers.append(world.count("messages"))
        world.put(
            StoredFile(
                file_id=f"f{numbers[-1]}", unique_id="u", path="p", name="n", mime_type="t", size=1
            )
        )
        world.commit()
        world.close()
    assert numbers == [1, 2, 3]
    world = open_world(clock, CountingIds(), tmp_path)
    assert [row.file_id for row in world.all(StoredFile)] == ["f1", "f2", "f3"]
    assert len((tmp_path / "world.jsonl").read_bytes().splitlines()) == 1
    world.close()


async def test_a_fresh_token_cannot_be_guessed_and_a_given_one_is_kept(tmp_path: Path) -> None:
    clock = LoopClock()
    world = open_world(clock, CountingIds(), tmp_path)
    made = world.setup.token
    world.close()
    assert open_world(clock, CountingIds(), tmp_path).setup.token == made
    assert open_world(clock, CountingIds(), tmp_path, token=TOKEN).setup.token == TOKEN
