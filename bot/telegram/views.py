"""From a card to its view: which records it shows, and the digest under which it counts as shown.

Keeps INV-17: called inside the transaction that begins the delivery, so that what is sent is the
stored state of that moment, however long the card had waited.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from bot.telegram.decisions import decision_card, everything
from bot.telegram.facts import decision_facts, job_facts
from bot.telegram.grants import invitation_code
from bot.telegram.outcome import outcome_card
from bot.telegram.render import invitation_card, item_card, job_card, question_card
from bot.telegram.view import View, in_pieces
from runtime.domain.card import Card
from runtime.domain.people import code_digest
from runtime.domain.question import Open, QuestionExpired, close, open_at
from runtime.domain.values import DIRECTORY, Scope, identity
from runtime.engine.approvals import At, unhold
from runtime.ports import Put, Reads, Write
from runtime.stores.collections import ITEMS, PAIRING_CODES, QUESTIONS, SHELLS

INVITATION_LOOK: Final = timedelta(seconds=30)
"""How soon a card notices that its code was used, which happens in another chat."""


@dataclass(frozen=True, slots=True)
class Shown:
    """A view, its digest, what must be written with it, and when it changes by itself."""

    view: View
    digest: str
    live: bool = True
    """Whether it still asks something of somebody."""
    writes: tuple[Write, ...] = ()
    changes_at: datetime | None = None


async def shown_by(
    reads: Reads, scope: Scope, card: Card, key: bytes, now: datetime
) -> Shown | None:
    """What a card shows now; None if its subject is not there. `key` makes invitation codes."""
    match card.subject:
        case "notice":
            view = in_pieces(card.body)
            return Shown(replace(view, file=card.file), card.wanted)
        case "job":
            return await _job(reads, scope, card)
        case "outcome":
            facts = await job_facts(reads, scope, card.subject_id)
            return None if facts is None else Shown(outcome_card(facts), card.wanted, live=False)
        case "item":
            return await _item(reads, scope, card)
        case "question":
            return await _question(reads, scope, card, now)
        case "document":
            about = await decision_facts(reads, scope, card.subject_id)
            return None if about is None else Shown(everything(about), card.wanted)
        case "invitation":
            return await _invitation(reads, card, key, now)


async def _job(reads: Reads, scope: Scope, card: Card) -> Shown | None:
    facts = await job_facts(reads, scope, card.subject_id)
    if facts is None:
        return None
    shell = await reads.get(SHELLS.key(scope, card.subject_id))
    digest = card.wanted if shell is None else shell.view
    return Shown(job_card(facts), digest, live=shell is None or shell.open)


async def _item(reads: Reads, scope: Scope, card: Card) -> Shown | None:
    item = await reads.get(ITEMS.key(scope, card.subject_id))
    if item is None:
        return None
    if item.kind in {"approval", "strategy_decision"}:
        facts = await decision_facts(reads, scope, item.subject)
        return None if facts is None else Shown(decision_card(facts), item.view, live=item.open)
    around = None if item.job is None else await job_facts(reads, scope, item.job)
    return Shown(item_card(item, around), item.view, live=item.open)


async def _question(reads: Reads, scope: Scope, card: Card, now: datetime) -> Shown | None:
    key = QUESTIONS.key(scope, card.subject_id)
    question = await reads.get(key)
    if question is None:
        return None
    writes: list[Write] = []
    if isinstance(question.state, Open) and not open_at(question, now):
        question = close(question, QuestionExpired(at=now))
        writes.append(Put(key, question))
        if question.kind == "edit_text":
            at = At(reads, scope, now, f"{question.id}:expired")
            writes.extend(await unhold(at, question.subject, question.person))
    is_open = isinstance(question.state, Open)
    return Shown(
        question_card(question),
        identity("question", question.state.name),
        live=is_open,
        writes=tuple(writes),
        changes_at=question.expires_at if is_open else None,
    )


async def _invitation(reads: Reads, card: Card, key: bytes, now: datetime) -> Shown | None:
    code = invitation_code(key, card.subject_id)
    found = await reads.get(PAIRING_CODES.key(DIRECTORY, code_digest(code)))
    if found is None:
        return None
    open_ = found.used_by is None and now < found.expires_at
    word = "open" if open_ else "used" if found.used_by else "expired"
    return Shown(
        invitation_card(found, code, word),
        identity("invitation", word),
        live=open_,
        changes_at=min(found.expires_at, now + INVITATION_LOOK) if open_ else None,
    )
