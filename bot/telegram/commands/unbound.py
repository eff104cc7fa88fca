"""Updates of chats that work for nobody yet: pairing, a group's first /start, strangers.

Only metadata of them is stored. The tenant that a commit may write besides the directory is the one
that a pairing code names, or the one that the sender's own private chat works for.
"""

from __future__ import annotations

from bot.telegram import address, reach
from bot.telegram.commands import people
from bot.telegram.commands.turn import Desk, Turn
from bot.telegram.intents import BindGroup, Intent, Moved, Pair, Status
from bot.telegram.route import route_unbound
from bot.telegram.updates import Json, Sender, number, text
from runtime.domain.operation import Operation, succeed
from runtime.domain.people import tenant_of
from runtime.domain.values import DIRECTORY, Tenant
from runtime.engine.work import Step, Work
from runtime.ports import Reads, Write
from runtime.stores.collections import BINDINGS, CARDS, MEMBERS, PAIRING_CODES
from runtime.stores.scoped import Scoped


async def unbound_intake(desk: Desk, work: Work, kept: Json) -> None:
    """Answer an update of an unbound chat from its metadata."""
    intent = route_unbound(kept)
    who = _sender(kept)
    tenant = await _tenant(work, intent, who)

    async def body(reads: Reads, current: Operation) -> Step[None]:
        now = work.now()
        member = None
        if tenant is not None and who.person is not None:
            member = await reads.get(MEMBERS.key(tenant, address.chat_id(who.person)))
        turn = Turn(desk, DIRECTORY, reads, current, who, member, now)
        writes = await _answered(turn, intent, tenant, asks=kept.get("command") is not None)
        return Step(None, tuple(writes), succeed(current, now))

    scopes = (DIRECTORY,) if tenant is None else (DIRECTORY, tenant)
    await work.commit(body, Scoped(work.kit.store, scopes))


def _sender(kept: Json) -> Sender:
    return Sender(
        kind="message",
        chat=number(kept.get("chat")),
        chat_type=text(kept.get("chat_type")),
        thread=number(kept.get("thread")),
        person=number(kept.get("person")),
        display="",
        message=number(kept.get("message")),
    )


async def _tenant(work: Work, intent: Intent, who: Sender) -> Tenant | None:
    """The one tenant that answering this may concern."""
    if isinstance(intent, Pair):
        code = await work.kit.store.get(PAIRING_CODES.key(DIRECTORY, intent.code))
        return None if code is None else code.tenant
    if isinstance(intent, BindGroup) and who.person is not None:
        own = await work.kit.store.get(BINDINGS.key(DIRECTORY, address.chat_id(who.person)))
        return tenant_of(own)
    return None


async def _answered(
    turn: Turn, intent: Intent, tenant: Tenant | None, *, asks: bool
) -> list[Write]:
    match intent:
        case Pair(code=code):
            return await people.start_with_code(turn, code, tenant)
        case BindGroup():
            return await people.bind_group(turn, tenant)
        case Moved(old=old, new=new):
            return await reach.moved(turn.reads, old, new, turn.now)
        case Status():
            return await _stranger(turn, asks=asks)
        case _:
            return []


async def _stranger(turn: Turn, *, asks: bool) -> list[Write]:
    """The truth for a stranger: once a minute after a command, else at most once an hour.

    Who floods the bot must not fill the queue of what it has to send.
    """
    html = people.STRANGER.format(number=turn.who.person)
    term = turn.now.strftime("%Y%m%d%H%M" if asks else "%Y%m%d%H")
    said = people.said_once(turn, f"stranger:{turn.destination}:{term}", html)
    known = await turn.reads.get(CARDS.key(DIRECTORY, said.key.id))
    return [] if known is not None else [said]
