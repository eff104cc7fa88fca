"""The world a sandbox starts with: a bot, three people, one group.

Keeps: Ana, Bo and Sam have the same numbers in every sandbox, so that tests and pages can name
them; the bot's token is fresh for each world unless one is given, so that no page on the web can
guess the address it would have to call.
"""

from __future__ import annotations

from pathlib import Path

from bot.sandbox.model import Chat, Person, Setup, Topic
from bot.sandbox.world import World
from runtime.ports import Clock, Ids

BOT_ID = 7402510983
BOT_USERNAME = "HarmoniaSandboxBot"
ANA = Person(
    id=5120045101,
    key="ana",
    first_name="Ana",
    last_name="Lima",
    username="ana_lima",
    language_code="en",
    note="admin",
)
BO = Person(
    id=6034417202,
    key="bo",
    first_name="Bo",
    last_name="Lindqvist",
    username="bo_lindqvist",
    language_code="en",
    note="approver",
)
SAM = Person(id=7281190303, key="sam", first_name="Sam", language_code="de", note="stranger")
PEOPLE = (ANA, BO, SAM)
GROUP_ID = -1002150001001
GROUP_TITLE = "Acme ops"
FIRST_UPDATE_ID = 314159001


def open_world(
    clock: Clock, ids: Ids, directory: Path | None = None, *, token: str | None = None
) -> World:
    """The world of the directory, or a fresh one; `token` replaces the stored bot token."""
    world = World(clock, ids, directory)
    if world.empty:
        _populate(world, token or f"{BOT_ID}:{ids.token()}")
    elif token is not None and token != world.setup.token:
        world.put(world.setup.model_copy(update={"token": token}))
    world.commit()
    return world


def _populate(world: World, token: str) -> None:
    head = token.partition(":")[0]
    bot_id = int(head) if head.isdigit() else BOT_ID
    world.put(Setup(token=token, bot_id=bot_id, next_update_id=FIRST_UPDATE_ID))
    world.put(
        Person(id=bot_id, key="bot", first_name="Harmonia", username=BOT_USERNAME, is_bot=True)
    )
    for person in PEOPLE:
        world.put(person)
        world.put(
            Chat(
                id=person.id,
                type="private",
                started=False,
                members={person.id: "member", bot_id: "member"},
            )
        )
    world.put(
        Chat(
            id=GROUP_ID,
            type="supergroup",
            title=GROUP_TITLE,
            is_forum=True,
            members={
                ANA.id: "creator",
                BO.id: "member",
                SAM.id: "member",
                bot_id: "administrator",
            },
        )
    )
    world.put(Topic(chat_id=GROUP_ID, thread_id=2, name="Campaigns"))
    world.count(f"messages:{GROUP_ID}", start=3)
