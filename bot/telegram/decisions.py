"""Decisions as cards: what is asked, what is offered, and what became of it. Pure.

Keeps INV-17 (a card says "approved" only when the approval is; the content stands in a quotation,
so that no line of it can pass for a line of the card) and its part of INV-15: the buttons carry the
digest of exactly the content that the card, and the pieces before it, show.
"""

from __future__ import annotations

from typing import Final

from bot.telegram.facts import (
    DecisionFacts,
    JobFacts,
    analysis_of,
    draft_of,
    review_of,
    strategy_of,
)
from bot.telegram.html import escape, hidden_characters, one_line, plain
from bot.telegram.render import job_title
from bot.telegram.states import decision_line, effect_line, moment
from bot.telegram.view import Offer, View, Whole, as_file, fitted, shortened
from runtime.domain.approval import Approval, Requested
from runtime.domain.grant import GrantAction
from runtime.domain.job import Running
from runtime.domain.people import Role
from runtime.domain.proposal import Draft, Strategy
from runtime.domain.values import Trust, short

QUOTE_CHARS: Final = 2_000


def decision_card(facts: DecisionFacts) -> View:
    """The request for a decision while it is open; who decided, and the effect, afterwards."""
    approval, job = facts.approval, facts.around.job
    html = f"<blockquote>{content_html(facts)}</blockquote>"
    if isinstance(approval.state, Requested) and isinstance(job.state, Running):
        view = fitted(_open_head(facts), _whole(facts, html), _open_foot(facts))
        return View(view.content, view.lead, decision_offers(approval), approval.decide_by)
    lines = [decision_line(facts)]
    if facts.command is not None:
        around = facts.around
        lines.append(effect_line(facts.command, around.receipt, around.verification))
    lines.append(f"<i>Digest {short(approval.digest)} · policy {approval.policy_version}</i>")
    view = shortened(_closed_head(facts), html, "\n".join(lines))
    show = Offer("Show everything", "show", approval.id, Role.VIEWER, approval.digest)
    return View(view.content, offers=((show,),))


def decision_offers(approval: Approval) -> tuple[tuple[Offer, ...], ...]:
    """What can be pressed while a decision is open."""

    def offer(label: str, action: GrantAction, role: Role = Role.APPROVER) -> Offer:
        return Offer(label, action, approval.id, role, approval.digest)

    first = [offer("Approve", "approve"), offer("Reject", "reject")]
    if approval.kind == "effect":
        first.insert(1, offer("Edit", "edit"))
    return tuple(first), (offer("Show everything", "show", Role.VIEWER),)


def _what(approval: Approval) -> str:
    return "Content pack" if approval.kind == "effect" else "Strategy"


def _open_head(facts: DecisionFacts) -> str:
    subject, job = facts.subject, facts.around.job
    by = escape(subject.author) if subject.trust is Trust.MODEL else "a person"
    return (
        f"<b>Approve? · {_what(facts.approval)}</b>\n{job_title(job)}\n"
        f"<i>{subject.kind.capitalize()} {subject.number}, written by {by}</i>"
    )


def _closed_head(facts: DecisionFacts) -> str:
    words = {
        "requested": "Not decided",
        "approved": "Approved",
        "consumed": "Approved",
        "rejected": "Rejected",
        "expired": "Expired",
        "superseded": "Replaced",
        "revoked": "Taken back",
        "lapsed": "Not used in time",
    }
    word = words[facts.approval.state.name]
    return f"<b>{word} · {_what(facts.approval)}</b>\n{job_title(facts.around.job)}"


def _open_foot(facts: DecisionFacts) -> str:
    approval, state = facts.approval, facts.approval.state
    lines = _reasons(facts)
    if approval.terms is not None:
        lines.append(f"Does: {escape(approval.terms.effect)} to {escape(approval.terms.account)}")
    yes = sum(1 for vote in approval.votes if vote.verdict == "approve")
    counted = f"{yes} of {approval.needed} approvals"
    lines += [
        f"Policy {approval.policy_version} · digest {short(approval.digest)} · {counted}",
        f"Expires {moment(approval.decide_by)}, then nothing is done",
    ]
    if isinstance(state, Requested) and state.held_until is not None:
        lines.append(f"Being edited until {moment(state.held_until)} at the latest")
    return "\n".join(lines)


def _reasons(facts: DecisionFacts) -> list[str]:
    around, lines = facts.around, []
    strategy = strategy_of(around)
    if facts.approval.kind == "effect" and strategy is not None:
        lines.append(f"Why: {escape(one_line(strategy.headline, 200))}")
    draft = draft_of(facts.subject)
    if draft is not None:
        quotes = {id_ for section in draft.sections for id_ in section.quotes}
        rests = f"rests on {len(quotes)} quotes of the source" if quotes else "names no quotes"
        lines.append(f"Evidence: {rests}")
        if hidden := hidden_characters(draft.text):
            lines.append(f"⚠️ {hidden} invisible or direction-changing characters are named ⟨U+…⟩")
        review = review_of(around)
        if review is not None:
            found = "; ".join(one_line(finding, 200) for finding in review.findings[:4])
            lines.append(f"Review: {review.verdict}" + (f" · {escape(found)}" if found else ""))
        elif facts.subject.trust is not Trust.MODEL:
            lines.append("Review: none, a person edited this text")
    return lines


def content_html(facts: DecisionFacts) -> str:
    """The whole content that is decided about."""
    body = facts.subject.body
    if isinstance(body, Draft):
        return draft_html(body)
    if isinstance(body, Strategy):
        return strategy_html(body, facts.around)
    return escape(facts.subject.kind)


def draft_html(draft: Draft) -> str:
    """Every word of a draft."""
    parts = [f"<b>{escape(draft.title)}</b>"]
    for section in draft.sections:
        if section.heading:
            parts.append(f"<b>{escape(section.heading)}</b>")
        parts.append(escape(section.text))
    return "\n\n".join(parts)


def strategy_html(strategy: Strategy, around: JobFacts) -> str:
    """Every word of a strategy, its points with the quotes they name."""
    analysis = analysis_of(around)
    quotes = {quote.id: quote.text for quote in analysis.quotes} if analysis else {}
    lines = [
        f"<b>{escape(strategy.headline)}</b>",
        f"For: {escape(strategy.audience)}",
        f"Angle: {escape(strategy.angle)}",
        f"Because: {escape(strategy.rationale)}",
        "Points:",
    ]
    for point in strategy.points:
        said = escape(one_line(quotes.get(point, ""), QUOTE_CHARS))
        lines.append(f"• “{said}” <i>({escape(point)})</i>" if said else f"• {escape(point)}")
    return "\n".join(lines)


def _whole(facts: DecisionFacts, html: str) -> Whole:
    subject, number = facts.subject, facts.around.job.number
    title = f"{subject.kind.capitalize()} {subject.number} of job {number}"
    return Whole(
        html,
        f"{title} · digest {short(facts.approval.digest)}",
        f"job-{number}-{subject.kind}-{subject.number}.md",
    )


def everything(facts: DecisionFacts) -> View:
    """The whole content as a file, with the exact terms where an effect is decided."""
    draft = draft_of(facts.subject)
    text = draft.text if draft is not None else plain(content_html(facts))
    terms = facts.approval.terms
    if terms is not None:
        text += (
            f"\n\n---\n\nExactly this is approved (digest {terms.digest}):\n\n"
            f"effect: {terms.effect}\naccount: {terms.account}\npayload: {terms.payload}\n"
        )
    whole = _whole(facts, "")
    return View(as_file(whole.title, whole.file_name, text))
