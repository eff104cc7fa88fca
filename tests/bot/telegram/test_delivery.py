"""Cards converge: lost replies, limits, blocked chats, vanished messages, dead senders, moves."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path

from bot.sandbox.client import labels
from bot.telegram.delivery import LEASE_TERM, Deliverer
from bot.telegram.notices import notice
from bot.telegram.sending import Sendings
from runtime.domain.card import COPIES_MAX, Card, CardSending
from runtime.domain.people import Role
from runtime.domain.values import DIRECTORY
from runtime.engine.services import Holder, Stop
from runtime.ports import Ask, Commit, Key, Put, Reads, Sent
from runtime.stores.collections import BINDINGS, CARDS, MARKERS
from tests.bot.telegram.front import ANA, BO, KEY, Front, alone
from tests.world import ACME, ReplyLosing, make_kit


async def sent_to(front: Front, person: str = "ana") -> int:
    return len(await front.seen(person))


async def tell(front: Front, text: str, id_: str = "n1", to: int = ANA) -> Key[Card]:
    """Make a notice and deliver what can be delivered."""
    made = notice(ACME, id_, f"telegram:{to}", text, front.clock.now())
    await front.put(made)
    return made.key


async def card_at(front: Front, key: Key[Card]) -> Card:
    card = await front.kit.store.get(key)
    assert card is not None
    return card


async def test_case_3_a_send_whose_reply_was_lost_is_not_repeated_at_once(front: Front) -> None:
    """It is uncertain; after a pause one copy follows, marked; both decide one item."""
    await front.pair("ana")
    approval = await front.ask_about(await front.job())
    await front.projector.once()
    await front.box.people.misbehave("drop_reply", "sendMessage", times=1)
    before = await sent_to(front)
    for _ in range(5):
        await front.deliverer.once()
    assert await sent_to(front) == before + 1
    card = next(card for card in await front.cards() if card.subject == "item")
    assert card.state.name == "uncertain"
    front.later(seconds=29)
    await front.settle()
    assert await sent_to(front) == before + 1
    front.later(seconds=1)
    await front.settle()
    first, copy = (await front.seen("ana"))[-2:]
    assert "Copy" in copy["text"]
    assert labels(copy) == labels(first)
    toast = await front.press("ana", first, "Approve")
    assert toast.startswith("Approved.")
    adopted = await front.box.people.message("ana", "bot", first["message_id"])
    assert adopted is not None
    assert "Approved by" in adopted["text"]
    old = await front.box.people.message("ana", "bot", copy["message_id"])
    assert old is not None
    assert "not kept up to date" in old["text"]
    assert labels(old) == []
    data = copy["reply_markup"]["inline_keyboard"][0][0]["callback_data"]
    assert "Already approved" in await front.press("ana", copy, "", data=data)
    assert len((await front.approval(approval.id)).votes) == 1


async def test_a_press_settles_the_doubt_about_a_send(front: Front) -> None:
    await front.pair("ana")
    await front.ask_about(await front.job())
    await front.projector.once()
    await front.box.people.misbehave("drop_reply", "sendMessage", times=1)
    await front.deliverer.once()
    before = await sent_to(front)
    card = await front.with_button("ana", "Approve")
    await front.press("ana", card, "Approve")
    front.later(minutes=5)
    await front.settle()
    assert await sent_to(front) == before


async def test_lost_replies_end_after_two_copies_and_go_to_the_fallback(front: Front) -> None:
    await front.pair("ana")
    await front.member(BO, Role.ADMIN)
    await front.box.people.send_text("bo", "bot", "/start")
    await front.settle()
    await front.ask_about(await front.job())
    await front.projector.once()
    await front.box.people.misbehave("drop_reply", "sendMessage", chat_id=ANA, times=10)
    before = await sent_to(front)
    for _ in range(6):
        await front.deliverer.once()
        front.later(seconds=31)
    await front.settle()
    assert await sent_to(front) == before + 1 + COPIES_MAX
    assert await front.with_button("bo", "Approve")


async def test_an_edit_whose_reply_was_lost_is_simply_repeated(front: Front) -> None:
    _, card = await front.decided_setting()
    await front.box.people.misbehave("drop_reply", "editMessageText", times=1)
    before = await sent_to(front)
    await front.press("ana", card, "Approve")
    front.later(seconds=2)
    await front.settle()
    assert await sent_to(front) == before
    assert not [card for card in await front.cards() if card.subject == "item"]


async def test_what_never_reached_telegram_is_sent_again_without_a_mark(tmp_path: Path) -> None:
    async with alone(tmp_path) as front:
        await front.pair("ana")
        key = await tell(front, "hello")
        await front.box.people.misbehave("too_many", "sendMessage", retry_after=7)
        await front.deliverer.once()
        assert (await card_at(front, key)).copies == 0
        before = await sent_to(front)
        front.later(seconds=6, milliseconds=999)
        await front.deliverer.once()
        assert await sent_to(front) == before
        front.later(milliseconds=1)
        await front.deliverer.once()
        assert await front.last("ana") == "hello"


async def test_a_429_holds_back_that_chat_only_and_keeps_its_order(front: Front) -> None:
    await front.pair("ana")
    await front.member(BO, Role.VIEWER)
    await front.box.people.send_text("bo", "bot", "/start")
    await front.settle()
    await front.box.people.misbehave("too_many", "sendMessage", chat_id=ANA, retry_after=10)
    await tell(front, "first", "a1")
    front.later(milliseconds=1)
    await tell(front, "second", "a2")
    await tell(front, "other", "b1", to=BO)
    before = await sent_to(front)
    await front.settle()
    assert await front.last("bo") == "other"
    assert await sent_to(front) == before
    front.later(seconds=10)
    await front.settle()
    assert [m["text"] for m in (await front.seen("ana"))[-2:]] == ["first", "second"]


async def test_case_7_a_blocked_chat_is_tried_once_and_the_item_goes_to_the_admin(
    front: Front,
) -> None:
    await front.pair("ana")
    await front.pair("bo", Role.APPROVER)
    approval = await front.ask_about(await front.job(home=BO))
    await front.box.people.stage("block", person="bo", blocked=True)
    await front.settle()
    binding = await front.kit.store.get(BINDINGS.key(DIRECTORY, f"telegram:{BO}"))
    assert binding is not None
    assert binding.unreachable_since is not None
    card = await front.with_button("ana", "Approve")
    calls = len((await front.box.people.ledger())["calls"])
    for minute in range(5):
        await tell(front, "again", f"x{minute}", to=BO)
        front.later(minutes=1)
        await front.settle()
    ledger = (await front.box.people.ledger())["calls"][calls:]
    assert not [call for call in ledger if call["method"].lower() == "sendmessage"]
    await front.box.people.stage("block", person="bo", blocked=False)
    await front.say("bo", "/start")
    theirs = await front.with_button("bo", "Approve")
    assert (await front.press("bo", theirs, "Approve")).startswith("Approved.")
    shown = await front.box.people.message("ana", "bot", card["message_id"])
    assert shown is not None
    assert "Approved by" in shown["text"]
    assert len((await front.approval(approval.id)).votes) == 1


async def test_a_lost_card_leaves_a_marker_for_the_projector(front: Front) -> None:
    await front.pair("ana")
    key = await tell(front, "hello")
    await front.box.people.misbehave("forbidden", "sendMessage", text="bot was blocked by the user")
    await front.deliverer.once()
    assert (await card_at(front, key)).state.name == "unreachable"
    page = await front.kit.store.find(Ask(MARKERS, "waiting", None))
    assert [row.record.subject for row in page.rows if row.record.kind == "card"] == [key.id]


async def test_a_deleted_message_is_replaced_when_its_state_changes(front: Front) -> None:
    approval, card = await front.decided_setting()
    await front.member(BO, Role.APPROVER)
    await front.say("bo", "/needs")
    theirs = await front.with_button("bo", "Approve")
    await front.box.people.delete("ana", "bot", card["message_id"])
    await front.press("bo", theirs, "Approve")
    newest = (await front.seen("ana"))[-1]
    assert newest["message_id"] > card["message_id"]
    assert "Approved by" in newest["text"]
    assert (await front.approval(approval.id)).state.name == "approved"


async def test_a_refused_content_rests_and_the_next_card_goes_out(front: Front) -> None:
    await front.pair("ana")
    key = await tell(front, "odd", "a1")
    front.later(milliseconds=1)
    await front.box.people.misbehave("bad_request", "sendMessage", text="WEIRD_CONTENT_INVALID")
    await tell(front, "fine", "a2")
    await front.settle()
    assert (await card_at(front, key)).state.name == "unreachable"
    assert await front.last("ana") == "fine"


async def test_html_that_telegram_refuses_goes_out_as_plain_text(front: Front) -> None:
    await front.pair("ana")
    await tell(front, "<b>a &lt; b</b> <unknown>tail</unknown>")
    await front.settle()
    assert await front.last("ana") == "a < b tail"


async def test_a_sender_that_died_sending_leaves_a_doubt_not_a_second_message(
    front: Front,
) -> None:
    """A new message may be there; an edit may be repeated."""
    await front.pair("ana")
    key = await tell(front, "hello")
    begun = Sendings(KEY)
    now = front.clock.now()

    async def body(reads: Reads) -> Commit[object]:
        return await begun.begin(reads, key, "sending-of-the-dead", now)

    await front.kit.store.transact(body)
    assert isinstance((await card_at(front, key)).state, CardSending)
    before = await sent_to(front)
    front.later(seconds=59)
    await front.settle()
    assert await sent_to(front) == before
    front.later(seconds=1)
    await front.settle()
    assert (await card_at(front, key)).state.name == "uncertain"
    assert await sent_to(front) == before
    front.later(seconds=30)
    await front.settle()
    assert "Copy" in await front.last("ana")


async def test_an_answer_of_another_sending_is_not_stored(front: Front) -> None:
    await front.pair("ana")
    key = await tell(front, "hello")
    begun = Sendings(KEY)
    now = front.clock.now()

    async def first(reads: Reads) -> Commit[object]:
        return await begun.begin(reads, key, "mine", now)

    errand = await front.kit.store.transact(first)
    card = await card_at(front, key)
    assert isinstance(card.state, CardSending)
    other = card.model_copy(update={"state": card.state.model_copy(update={"tag": "theirs"})})
    await front.put(Put(key, other))

    async def late(reads: Reads) -> Commit[float]:
        return await begun.end(reads, errand, Sent(7), now)  # type: ignore[arg-type]  # the errand that `first` began

    await front.kit.store.transact(late)
    assert await card_at(front, key) == other


async def test_case_5_a_group_that_moved_keeps_its_cards_and_the_old_id_grants_nothing(
    front: Front,
) -> None:
    await front.pair("ana")
    made = await front.box.people.stage("create_chat", person="ana", title="Ops", members=["bo"])
    old = int(made["chat_id"])
    await front.box.people.send_text("ana", old, "/start")
    await front.settle()
    approval = await front.ask_about(await front.job(home=old))
    moved = await front.box.people.stage("migrate", chat=old)
    new = int(moved["chat_id"])
    await front.projector.once()
    await front.deliverer.once()
    card = next(m for m in (await front.seen("ana", new))[::-1] if "Approve" in labels(m))
    was = await front.kit.store.get(BINDINGS.key(DIRECTORY, f"telegram:{old}"))
    now = await front.kit.store.get(BINDINGS.key(DIRECTORY, f"telegram:{new}"))
    assert was is not None
    assert was.moved_to == f"telegram:{new}"
    assert now is not None
    assert now.tenant == ACME
    await front.settle()
    pressed = await front.box.people.press("ana", new, card["message_id"], "Approve")
    await front.settle()
    assert (await front.approval(approval.id)).state.name == "approved"
    assert str((await front.box.people.answer_to(pressed))["text"]).startswith("Approved.")
    assert await front.kit.store.get(BINDINGS.key(DIRECTORY, f"telegram:{old}")) == was


async def test_edits_collapse_to_the_newest_state(front: Front) -> None:
    _approval, card = await front.decided_setting()
    await front.box.people.misbehave("too_many", "editMessageText", retry_after=5, times=1)
    await front.press("ana", card, "Reject")
    await front.say("ana", "not now")
    front.later(seconds=5)
    calls = len((await front.box.people.ledger())["calls"])
    await front.settle()
    ledger = (await front.box.people.ledger())["calls"][calls:]
    edits = [call for call in ledger if call["method"].lower() == "editmessagetext"]
    assert len([edit for edit in edits if "Rejected by" in str(edit)]) == 1
    shown = await front.box.people.message("ana", "bot", card["message_id"])
    assert shown is not None
    assert "not now" in shown["text"]


async def test_every_commit_of_a_delivery_recognises_its_own_success(front: Front) -> None:
    """With every commit's reply lost twice, a card is still sent once."""
    await front.pair("ana")
    await tell(front, "hello")
    kit = await make_kit(front.folder, clock=front.clock, seed=9, wrap=ReplyLosing)
    losing = Deliverer(kit, front.desk.messenger, KEY, front.box.bot.id)
    before = await sent_to(front)
    await losing.once()
    await losing.once()
    assert await sent_to(front) == before + 1
    await kit.store.close()


async def test_a_long_notice_arrives_whole_and_in_order(front: Front) -> None:
    """Case 1 through the wire: emoji, then a long <pre>; every piece is accepted alone."""
    await front.pair("ana")
    log = "".join(f"line {number}\n" for number in range(900))
    before = await sent_to(front)
    await tell(front, "🚀" * 3_000 + f"<pre>{log}</pre>")
    await front.settle()
    pieces = (await front.seen("ana"))[before:]
    text = "\n".join(piece["text"] for piece in pieces)
    assert text.count("🚀") == 3_000
    assert [word for word in text.replace("🚀", "").split() if word.isdigit()] == [
        str(number) for number in range(900)
    ]
    assert pieces[-1]["entities"][0]["type"] == "pre"


async def test_delivery_begins_what_is_due_and_nothing_else(front: Front) -> None:
    await front.pair("ana")
    key = await tell(front, "later")
    card = await card_at(front, key)
    due = front.clock.now() + timedelta(seconds=10)
    await front.put(Put(key, card.model_copy(update={"due_at": due})))
    front.later(seconds=9, milliseconds=999)
    before = await sent_to(front)
    await front.deliverer.once()
    assert await sent_to(front) == before
    front.later(milliseconds=1)
    await front.deliverer.once()
    assert await sent_to(front) == before + 1
    page = await front.kit.store.find(Ask(CARDS, "of_subject", ACME, equals=(key.id,)))
    assert not page.rows


async def test_the_loop_sends_when_woken_and_ends_when_asked(front: Front) -> None:
    """The clock stands still, so only `wake` can have made it look."""
    await front.pair("ana")
    stop = Stop()
    running = asyncio.create_task(front.deliverer.run(stop))
    await tell(front, "woken")
    front.deliverer.wake()
    await front.box.people.wait_for("ana", "bot", "woken")
    stop.ask()
    await running
    assert await Holder(front.kit, f"telegram-delivery:{front.box.bot.id}").take()


async def test_a_second_loop_stands_by_while_the_first_has_the_lease(front: Front) -> None:
    await front.pair("ana")
    other = Holder(front.kit, f"telegram-delivery:{front.box.bot.id}", LEASE_TERM)
    assert await other.take()
    stop = Stop()
    running = asyncio.create_task(front.deliverer.run(stop))
    key = await tell(front, "hello")
    front.deliverer.wake()
    for _ in range(20):
        front.later(milliseconds=100)
        await asyncio.wait([running], timeout=0)
    assert (await card_at(front, key)).message is None
    stop.ask()
    await running
