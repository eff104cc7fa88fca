"""/start, /invite, /status, /help: who may do what here, and how the bot is."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from bot.telegram import address, reach
from bot.telegram.commands.turn import Turn
from bot.telegram.grants import invitation_code
from bot.telegram.html import escape
from bot.telegram.notices import notice, show
from bot.telegram.setup import MENU
from bot.telegram.states import moment
from runtime.domain.card import Card, Subject
from runtime.domain.people import (
    PAIRING_VALID,
    Binding,
    PairingCode,
    PairingRefused,
    Role,
    code_digest,
    enrol,
    may,
    pair,
)
from runtime.domain.values import DIRECTORY, Tenant
from runtime.ports import Ask, Create, Put, Write
from runtime.stores.collections import BINDINGS, ITEMS, LEASES, MEMBERS, PAIRING_CODES, SHELLS

COUNT_MAX: Final = 100
FIRST_CODE_BY: Final = "harmonia"
"""Who makes the codes that are printed at a start; anybody who can read that output has them."""
STRANGER: Final = (
    "I work for a team, and you are not on its list. Ask one of its administrators for an "
    "invitation code and send it to me as /start CODE; whoever has just started me finds the first "
    "code where I was started. (Your number here is {number}.)"
)
STRANGER_TOAST: Final = (
    "I work for a team, and you are not on its list. Ask one of its administrators for an "
    "invitation code. (Your number here is {number}.)"
)
HELP_END: Final = (
    "In a private chat a file, a link or a long text starts a job by itself; other text is a "
    "question to the agent. Only buttons decide: no text ever approves anything."
)
CANNOT_DO: Final = "This needs the role {needed}; you are {role} here."


def refused(turn: Turn, needed: Role) -> Write:
    """The truthful answer to somebody who may not."""
    if turn.member is None:
        return turn.say(STRANGER.format(number=turn.who.person))
    return turn.say(CANNOT_DO.format(needed=needed.word, role=turn.member.role.word))


def said_once(turn: Turn, id_: str, html: str) -> Create[Card]:
    """A notice under an ID of its own, for what is not said again and again."""
    return notice(turn.scope, id_, turn.destination, html, turn.now)


async def start_with_code(turn: Turn, digest: str, tenant: Tenant | None) -> list[Write]:
    """Use a pairing code: the person becomes a member, the private chat works for the tenant.

    `tenant` is the one whose scope the commit may write; a code of another is not known here.
    """
    key = PAIRING_CODES.key(DIRECTORY, digest)
    code = await turn.reads.get(key)
    if code is not None and code.tenant != tenant:
        code = None
    used = pair(code, turn.person, turn.now)
    if isinstance(used, PairingCode) and await _is_spent(turn, used):
        used = PairingRefused("this code was for the first administrator, and there is one")
    if isinstance(used, PairingRefused):
        again = "" if turn.member is not None else " Ask an administrator for a new one."
        return [turn.say(f"I cannot pair you: {escape(used.reason)}.{again}")]
    if not turn.who.private:
        return [turn.say("Send the code to me in a private chat; here others would see it.")]
    member_key = MEMBERS.key(used.tenant, turn.person)
    known = await turn.reads.get(member_key)
    member = enrol(known, used, turn.person, turn.now)
    if known is None and turn.who.display:
        member = member.model_copy(update={"display": turn.who.display})
    return [
        Put(key, used),
        Put(member_key, member),
        *await _bound(turn, used.tenant),
        turn.say(_welcome(member.role), scope=used.tenant),
    ]


async def _is_spent(turn: Turn, code: PairingCode) -> bool:
    """Whether a code that was printed at a start came too late: somebody else is admin by now."""
    if code.by != FIRST_CODE_BY or code.role is not Role.ADMIN:
        return False
    ask = Ask(MEMBERS, "by_role", code.tenant, equals=(Role.ADMIN.value,), limit=1)
    page = await turn.reads.find(ask)
    return any(row.record.id != turn.person for row in page.rows)


def _welcome(role: Role) -> str:
    may_do = {
        Role.VIEWER: "You can look at jobs: /jobs, /needs, /why.",
        Role.APPROVER: "You can start jobs with /new and decide about what waits in /needs.",
        Role.ADMIN: "You can start jobs, decide, and bring others in with /invite.",
    }
    return f"Paired: you are <b>{role.word}</b> here. {may_do[role]} /help says the rest."


async def _bound(turn: Turn, tenant: Tenant) -> list[Write]:
    """The chat works for the tenant, unless it already works for one."""
    chat = address.chat_id(turn.who.chat or 0)
    key = BINDINGS.key(DIRECTORY, chat)
    known = await turn.reads.get(key)
    if known is not None and known.moved_to is None:
        return []
    return [Put(key, Binding(id=chat, tenant=tenant, by=turn.person, since=turn.now))]


async def bind_group(turn: Turn, tenant: Tenant | None) -> list[Write]:
    """An administrator's /start lets a group work for that person's tenant."""
    member = None if tenant is None else await turn.reads.get(MEMBERS.key(tenant, turn.person))
    if tenant is None or not may(member, Role.ADMIN):
        text = "Only an administrator, paired with me in a private chat, can let me work here."
        return [turn.say(text)]
    text = "I work here now. Members of the list can use /new, /needs, /jobs, /job and /why."
    return [*await _bound(turn, tenant), turn.say(text, scope=tenant)]


async def invite(turn: Turn, role: Role) -> list[Write]:
    """A one-time code, shown once, in the administrator's private chat only."""
    if not turn.who.private:
        return [turn.say("I make codes in a private chat only; here others would see them.")]
    invitation = PairingCode(
        id=code_digest(invitation_code(turn.desk.key, turn.operation.id)),
        tenant=turn.tenant,
        role=role,
        by=turn.person,
        expires_at=turn.now + PAIRING_VALID,
    )
    what: tuple[Subject, str] = ("invitation", turn.operation.id)
    return [
        Create(PAIRING_CODES.key(DIRECTORY, invitation.id), invitation),
        *await show(turn.reads, turn.scope, what, turn.destination, turn.now),
    ]


async def status(turn: Turn) -> list[Write]:
    """Who the person is here and how the bot is, from stored state."""
    tenant = turn.tenant
    role = turn.member.role.word if turn.member else "nobody"
    open_jobs = await turn.reads.find(Ask(SHELLS, "open", tenant, equals=(True,), limit=COUNT_MAX))
    items = await turn.reads.find(Ask(ITEMS, "open", tenant, equals=(True,), limit=COUNT_MAX))
    counts = f"{_counted(len(open_jobs.rows))} · waiting for a person: {_counted(len(items.rows))}"
    lines = [
        f"You are <b>{role}</b> in {escape(tenant.workspace)}/{escape(tenant.brand)}.",
        f"Open jobs: {counts}",
        f"Model: {escape(turn.desk.model)}",
        await _poller(turn) if turn.desk.polls else "Updates come by webhook",
        *(f"⚠️ {escape(problem)}" for problem in turn.desk.health()),
    ]
    return [turn.say("\n".join(line for line in lines if line))]


def _counted(count: int) -> str:
    return f"{count} or more" if count >= COUNT_MAX else str(count)


async def _poller(turn: Turn) -> str:
    lease = await turn.reads.get(LEASES.key(DIRECTORY, f"telegram-poller:{turn.desk.bot_id}"))
    if lease is None:
        return ""
    return _alive(lease.until, turn.now)


def _alive(until: datetime, now: datetime) -> str:
    return "Polling: running" if now < until else f"Polling: nobody since {moment(until)}"


async def help_(turn: Turn) -> list[Write]:
    """What the bot understands."""
    lines = ["I take a source to an approved, exported and verified content pack.", ""]
    lines += [f"/{name} — {escape(words)}" for name, words in MENU]
    lines += ["", HELP_END]
    return [turn.say("\n".join(lines))]


async def restored(turn: Turn) -> list[Write]:
    """This chat was heard: if it was unreachable, what still waits is sent again."""
    chat = address.chat_id(turn.who.chat or 0)
    return await reach.regained(turn.reads, turn.tenant, chat, turn.now)
