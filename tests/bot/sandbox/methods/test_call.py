"""Every method answers or refuses, whatever it is given, and a refusal changes nothing."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from bot.sandbox.cast import GROUP_ID, open_world
from bot.sandbox.errors import ApiRefusal
from bot.sandbox.ledger import Ledger
from bot.sandbox.methods import METHODS, Call
from bot.sandbox.model import Chat, Message, StoredFile, Topic
from bot.sandbox.params import Params, Upload
from bot.sandbox.updates import Updates
from bot.sandbox.world import World
from tests.bot.sandbox.world_kit import CountingIds


class StandingClock:
    """A clock that nobody waits on."""

    def now(self) -> datetime:
        return datetime(2026, 11, 30, tzinfo=UTC)

    def monotonic(self) -> float:
        return 0.0

    async def sleep(self, seconds: float) -> None:
        del seconds


NAMES = (
    "chat_id", "text", "message_id", "message_thread_id", "reply_parameters", "reply_markup",
    "entities", "parse_mode", "caption", "document", "photo", "from_chat_id", "user_id", "file_id",
    "callback_query_id", "reaction", "commands", "scope", "url", "secret_token", "message_ids",
    "action", "name", "link_preview_options", "max_connections", "allowed_updates", "show_alert",
)  # fmt: skip  # one name a line would hide the test
odd = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**60), 2**60),
        st.text(max_size=8),
        st.sampled_from(
            [GROUP_ID, 4, "4", "html", "typing", "<b>x</b>", "{", "[", "attach://x", "https://x.y"]
        ),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(
                ["text", "type", "message_id", "chat_id", "offset", "length", "inline_keyboard"]
            ),
            inner,
            max_size=4,
        ),
    ),
    max_leaves=6,
)


def furnished() -> tuple[World, Updates]:
    clock = StandingClock()
    world = open_world(clock, CountingIds())
    world.put(Message(chat_id=GROUP_ID, message_id=4, date=world.now(), sender_id=world.bot.id,
                      text="x"))  # fmt: skip  # a plain message of the bot
    world.commit()
    return world, Updates(world, Ledger(clock))


def state(world: World) -> list[Any]:
    kinds = (Chat, Message, Topic, StoredFile)
    return [row for kind in kinds for row in world.all(kind)]


def attempt(method: str, call: Call) -> ApiRefusal | None:
    try:
        METHODS[method](call)
    except ApiRefusal as refused:
        return refused
    return None


@settings(max_examples=400)
@given(
    st.sampled_from(sorted(METHODS)),
    st.dictionaries(st.sampled_from(NAMES), odd, max_size=6),
)
def test_a_method_answers_or_refuses_and_a_refusal_changes_nothing(
    method: str, values: dict[str, Any]
) -> None:
    world, updates = furnished()
    before = state(world)
    params = Params({"chat_id": GROUP_ID, **values}, {"x": Upload("x", "text/plain", b"x")})
    refusal = attempt(method, Call(world, updates, params, 15))
    if refusal is not None:
        assert refusal.code in {400, 403}
        assert state(world) == before
