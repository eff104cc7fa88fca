"""Delivery when something is wrong with one card, one chat or one topic: the others go on."""

from __future__ import annotations

import asyncio

from bot.sandbox.client import labels
from bot.telegram.delivery import Deliverer
from bot.telegram.notices import notice
from runtime.domain.card import Card
from runtime.domain.people import Role
from runtime.domain.values import DIRECTORY
from runtime.engine.marks import dirty
from runtime.engine.services import Stop
from runtime.ports import Content, Delivery, Key, Put, Sent
from runtime.stores.collections import BINDINGS, CARDS, ITEMS, JOBS
from tests.bot.telegram.front import ANA, BO, KEY, Front
from tests.world import ACME


class Desk:
    """A Messenger: one chat's answers wait for `open`, and some texts break it."""

    def __init__(self, slow: str = "") -> None:
        self.sent: list[tuple[str, str]] = []
        self.slow = slow
        self.open = asyncio.Event()
        self.arrived = asyncio.Condition()

    async def send(self, destination: str, content: Content) -> Delivery:
        if content.text == "poison":
            message = "a defect"
            raise RuntimeError(message)
        if destination == self.slow:
            await self.open.wait()
        async with self.arrived:
            self.sent.append((destination, content.text))
            self.arrived.notify_all()
        return Sent(len(self.sent))

    async def edit(self, destination: str, message: int, content: Content) -> Delivery:
        del message
        return await self.send(destination, content)

    async def answer(self, query: str, text: str, *, alert: bool = False) -> None:
        raise NotImplementedError

    async def download(self, file: str) -> bytes:
        raise NotImplementedError

    async def until(self, text: str) -> None:
        async with self.arrived:
            await self.arrived.wait_for(lambda: any(text == said for _, said in self.sent))


async def tell(front: Front, text: str, to: str) -> Key[Card]:
    front.later(milliseconds=1)
    made = notice(ACME, f"{to} {text}", to, text, front.clock.now())
    await front.put(made)
    return made.key


async def card_at(front: Front, key: Key[Card]) -> Card:
    card = await front.kit.store.get(key)
    assert card is not None
    return card


async def test_a_chat_whose_answers_are_slow_does_not_keep_another_waiting(front: Front) -> None:
    desk = Desk(slow="telegram:1")
    deliverer = Deliverer(front.kit, desk, KEY, 7)
    stop = Stop()
    running = asyncio.create_task(deliverer.run(stop))
    await tell(front, "slow", "telegram:1")
    await tell(front, "first", "telegram:2")
    deliverer.wake()
    await asyncio.wait_for(desk.until("first"), 10)
    await tell(front, "second", "telegram:2")
    deliverer.wake()
    await asyncio.wait_for(desk.until("second"), 10)
    assert ("telegram:1", "slow") not in desk.sent
    stop.ask()
    desk.open.set()
    await running
    assert ("telegram:1", "slow") in desk.sent


async def test_a_card_that_breaks_its_sending_stops_neither_its_chat_nor_the_others(
    front: Front,
) -> None:
    desk = Desk()
    deliverer = Deliverer(front.kit, desk, KEY, 7)
    bad = await tell(front, "poison", "telegram:1")
    await tell(front, "behind it", "telegram:1")
    await tell(front, "elsewhere", "telegram:2")
    while await deliverer.once():
        pass
    assert sorted(text for _, text in desk.sent) == ["behind it", "elsewhere"]
    state = (await card_at(front, bad)).state
    assert state.name == "unreachable"
    assert "RuntimeError" in getattr(state, "reason", "")


async def test_a_card_with_an_impossible_destination_is_given_up_by_itself(front: Front) -> None:
    desk = Desk()
    deliverer = Deliverer(front.kit, desk, KEY, 7)
    bad = await tell(front, "nowhere", "elsewhere:1")
    await tell(front, "fine", "telegram:2")
    while await deliverer.once():
        pass
    assert [text for _, text in desk.sent] == ["fine"]
    assert (await card_at(front, bad)).state.name == "unreachable"


async def test_a_job_card_that_was_refused_is_tried_again_when_the_job_changes(
    front: Front,
) -> None:
    await front.pair("ana")
    job = await front.job()
    await front.say("ana", "/needs")
    await front.box.people.misbehave("bad_request", "sendMessage", text="ODD", times=1)
    await front.say("ana", "/job 1")
    before = len([m for m in await front.seen("ana") if "Spring release" in m["text"]])
    renamed = job.model_copy(update={"title": "Summer release"})
    mark = dirty(ACME, "job", job.id, front.clock.now(), "renamed")
    await front.put(Put(JOBS.key(ACME, job.id), renamed), mark)
    await front.settle()
    assert before == 0
    said = await front.last("ana")
    assert "Summer release" in said
    assert "Copy" not in said
    page = await front.kit.store.get(ITEMS.key(ACME, f"undelivered:{(await _card(front)).id}"))
    assert page is None or not page.open


async def _card(front: Front) -> Card:
    from runtime.domain.card import card_id

    return await card_at(front, CARDS.key(ACME, card_id("job", "job-1", f"telegram:{ANA}")))


async def test_a_closed_topic_falls_back_to_the_chat_and_leaves_the_chat_reachable(
    front: Front,
) -> None:
    await front.pair("ana")
    made = await front.box.people.stage(
        "create_chat", person="ana", title="Ops", members=["bo"], kind="supergroup"
    )
    chat = int(made["chat_id"])
    await front.box.people.send_text("ana", chat, "/start")
    await front.settle()
    await front.box.people.misbehave("bad_request", "sendMessage", text="TOPIC_CLOSED", times=1)
    await tell(front, "hello", f"telegram:{chat}:77")
    await front.settle()
    assert (await front.last("ana", chat)).startswith("hello")
    assert "topic this belongs to is closed" in await front.last("ana", chat)
    binding = await front.kit.store.get(BINDINGS.key(DIRECTORY, f"telegram:{chat}"))
    assert binding is not None
    assert binding.unreachable_since is None


async def test_a_command_in_a_group_that_did_not_accept_is_answered_there(front: Front) -> None:
    """Nothing tells a bot that a group's members may write again."""
    await front.pair("ana")
    made = await front.box.people.stage("create_chat", person="ana", title="Ops", members=["bo"])
    chat = int(made["chat_id"])
    await front.box.people.send_text("ana", chat, "/start")
    await front.settle()
    refusal = "have no rights to send a message"
    await front.box.people.misbehave("bad_request", "sendMessage", text=refusal, times=1)
    await front.box.people.send_text("ana", chat, "/jobs")
    await front.settle()
    binding = await front.kit.store.get(BINDINGS.key(DIRECTORY, f"telegram:{chat}"))
    assert binding is not None
    assert binding.unreachable_since is not None
    await front.box.people.send_text("ana", chat, "/jobs")
    await front.settle()
    assert "No job yet" in await front.last("ana", chat)


async def test_a_lost_message_can_be_sent_again_or_left(front: Front) -> None:
    await front.pair("ana")
    await front.member(BO, Role.VIEWER)
    await front.box.people.send_text("bo", "bot", "hi")
    await front.settle()
    await front.box.people.misbehave("bad_request", "sendMessage", chat_id=BO, text="ODD", times=2)
    first = await tell(front, "one", f"telegram:{BO}")
    second = await tell(front, "two", f"telegram:{BO}")
    await front.settle()
    await front.say("ana", "/needs")
    cards = [m for m in await front.seen("ana") if "Send again" in labels(m)]
    assert len(cards) == 2
    assert (await front.press("ana", cards[0], "Send again")).startswith("It is sent again.")
    assert (await front.press("ana", cards[1], "Leave it")).startswith("Left.")
    assert [(await card_at(front, key)).state.name for key in (first, second)] == ["idle", "idle"]
    assert await front.last("bo") == "one"
    assert "Nothing waits" in (await _said(front, "/needs"))
    keys = cards[1]["reply_markup"]["inline_keyboard"][0]
    late = await front.press("ana", cards[1], "", data=keys[1]["callback_data"])
    assert late == "Nothing waits here any more."


async def _said(front: Front, text: str) -> str:
    await front.say("ana", text)
    return await front.last("ana")


async def test_a_chat_that_is_heard_again_closes_what_was_listed_about_it(front: Front) -> None:
    await front.pair("ana")
    await front.pair("bo", Role.APPROVER)
    await front.box.people.stage("block", person="bo", blocked=True)
    await front.settle()
    await tell(front, "old news", f"telegram:{BO}")
    await front.settle()
    assert "Not delivered" in await _listed(front)
    await front.box.people.stage("block", person="bo", blocked=False)
    await front.say("bo", "/start")
    assert "old news" not in str(await front.seen("bo"))
    assert "Nothing waits" in await _said(front, "/needs")


async def _listed(front: Front) -> str:
    await front.say("ana", "/needs")
    seen = [str(m["text"]) for m in await front.seen("ana")]
    return next(text for text in reversed(seen) if "Waits for a person" in text)
