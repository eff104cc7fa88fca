"""Texts that Telegram's clients cut: is this message the rest of one that came just before?

A client sends a text above 4,096 units as several messages in a row. The first is refused because
it may be a piece (`sourcing.py`); the last is often short, and alone it would pass for a whole
source, edit or question. What came before is looked up among the stored events, so the answer is
the same in every process.
"""

from __future__ import annotations

import json
from typing import Final

from bot.telegram.commandline import words_of
from bot.telegram.html import units
from bot.telegram.intake import SOURCE
from bot.telegram.sourcing import CUT_UNITS_MIN
from bot.telegram.updates import Json, mapping, number, sender
from runtime.domain.values import Scope, identity
from runtime.ports import Store
from runtime.stores.collections import EVENTS

LOOK_BACK: Final = 4
"""Updates of other chats may lie between two pieces."""
APART_SECONDS_MAX: Final = 2
"""Pieces of one text are sent in the same moment; a person needs longer to write another one."""


def rest_of(before: Json, update: Json) -> bool:
    """Whether `update` is the next piece of the text that `before` began. Pure."""
    earlier, later = mapping(before.get("message")), mapping(update.get("message"))
    first, second = sender(before), sender(update)
    if first.person is None or (first.chat, first.thread, first.person) != (
        second.chat,
        second.thread,
        second.person,
    ):
        return False
    seconds = (number(later.get("date")) or 0) - (number(earlier.get("date")) or 0)
    text = later.get("text")
    return (
        isinstance(text, str)
        and "forward_origin" not in later
        and 0 <= seconds <= APART_SECONDS_MAX
        and (second.message or 0) > (first.message or 0)
        and units(words_of(earlier)[0]) >= CUT_UNITS_MIN
    )


async def continues(store: Store, scope: Scope, bot_id: int, update: Json) -> bool:
    """Whether an update is the rest of a text whose beginning is among the last events."""
    update_id = number(update.get("update_id")) or 0
    for back in range(1, min(LOOK_BACK, update_id) + 1):
        key = EVENTS.key(scope, identity(SOURCE, f"{bot_id}:{update_id - back}"))
        event = await store.get(key)
        if event is not None and rest_of(mapping(json.loads(event.payload)), update):
            return True
    return False
