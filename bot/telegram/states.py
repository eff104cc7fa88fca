"""One line each about a decision and about an effect, from the records alone.

Keeps INV-17: queued → sending → sent → verified, or uncertain, exactly as the command, its receipt
and its verification say.
"""

from __future__ import annotations

from datetime import datetime
from typing import assert_never

from bot.telegram.facts import DecisionFacts
from bot.telegram.html import escape, one_line
from runtime.domain import effect
from runtime.domain.approval import (
    Approval,
    Approved,
    Consumed,
    Expired,
    Lapsed,
    Rejected,
    Requested,
    Revoked,
    Superseded,
)
from runtime.domain.effect import Command
from runtime.domain.receipt import Receipt, Verification
from runtime.domain.values import short


def clock(at: datetime) -> str:
    """The time of day, with its zone."""
    return at.strftime("%H:%M:%S UTC")


def moment(at: datetime) -> str:
    """A time as people read it, always with its zone."""
    return at.strftime("%a %-d %b %H:%M:%S UTC")


def approvers(approval: Approval) -> str:
    """Who approved, by name."""
    names = [vote.display for vote in approval.votes if vote.verdict == "approve"]
    return ", ".join(names) or "nobody"


def decision_line(facts: DecisionFacts) -> str:
    """Who decided what, and when."""
    state = facts.approval.state
    match state:
        case Requested():
            return "Not decided; the job has stopped, so nothing is done."
        case Approved(at=at) | Consumed(at=at):
            decided = max((vote.at for vote in facts.approval.votes), default=at)
            return f"Approved by {escape(approvers(facts.approval))} at {clock(decided)}"
        case Rejected(at=at, display=display, reason=reason):
            why = f"\nReason: {escape(one_line(reason, 500))}" if reason else ""
            return f"Rejected by {escape(display)} at {clock(at)}{why}"
        case Expired(at=at):
            return f"Nobody decided until {clock(at)}; nothing is done."
        case Superseded(at=at, display=display):
            return f"Edited by {escape(display)} at {clock(at)}; a newer card replaces this one."
        case Revoked(at=at):
            return f"Taken back at {clock(at)}."
        case Lapsed(at=at):
            return f"Approved, but not used until {clock(at)}; nothing is done."
        case _:
            assert_never(state)


def effect_line(
    command: Command, receipt: Receipt | None, verification: Verification | None
) -> str:
    """Where an effect stands."""
    state = command.state
    match state:
        case effect.Prepared(ready_at=ready):
            again = f" (try {command.tries + 1})" if command.tries else ""
            return f"Effect: queued for {clock(ready)}{again}"
        case effect.Dispatched(at=at):
            return f"Effect: sending since {clock(at)}"
        case effect.Observed(at=at):
            return f"Effect: answered at {clock(at)}, receipt follows"
        case effect.Applied(at=at):
            return _applied(at, receipt, verification)
        case effect.Failed(reason=reason):
            return f"Effect: failed, nothing was done · {escape(one_line(reason, 300))}"
        case effect.Unknown(dispatched_at=sent, reason=reason):
            return (
                f"Effect: UNCERTAIN · sent {clock(sent)}, no answer "
                f"({escape(one_line(reason, 200))}). It may be done; it is not repeated by itself."
            )
        case effect.CommandCancelled(reason=reason):
            return f"Effect: withdrawn before it was sent · {escape(one_line(reason, 300))}"
        case effect.ClosedUnproven():
            return "Effect: closed without proof, by a person"
        case _:
            assert_never(state)


def _applied(at: datetime, receipt: Receipt | None, verification: Verification | None) -> str:
    proof = ""
    if receipt is not None:
        digest = f" · content {short(receipt.content_digest)}" if receipt.content_digest else ""
        proof = f"\n{escape(one_line(receipt.reference, 300))}{digest}"
    if verification is None:
        return f"Effect: sent at {clock(at)}, receipt stored, not verified yet{proof}"
    found = escape(one_line(verification.evidence, 300))
    if verification.verified:
        return f"Effect: verified at {clock(verification.at)} · {found}{proof}"
    return f"Effect: sent, but NOT verified · {found}{proof}"
