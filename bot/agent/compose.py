"""The offline writer and reviewer: a draft of exact quotes, and a check that it is one.

Every title, heading and line of the draft stands in the source. The reviewer counts and compares;
what a person changed in a draft and what no quote says comes out as a finding, never as a verdict
about truth.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from bot.agent.extract import as_written, blocked, shortened
from bot.agent.material import Material
from bot.agent.spans import spans
from bot.agent.telling import terms
from runtime.domain.proposal import Analysis, Draft, Escalation, Quote, Review, Section

SECTION_CHARS_MAX: Final = 8_000
GROUP_MIN: Final = 2
FINDINGS_MAX: Final = 12
DRAFT_CHARS_MAX: Final = 12_000
SHOWN_CHARS: Final = 120


# --- writer ----------------------------------------


def write(shown: Material) -> Draft | Escalation:
    """The points of the approved strategy, each in the source's own words."""
    if shown.analysis is None or shown.strategy is None:
        return Escalation(reason="A draft needs a strategy and its analysis; one was not shown.")
    by_id = {quote.id: quote for quote in shown.analysis.quotes}
    points = [by_id[name] for name in shown.strategy.points if name in by_id]
    if not points:
        return Escalation(reason="The strategy names no quote of the analysis.")
    points = [quote for quote in points if not blocked(quote.text, shown.blocked_terms)]
    if not points:
        return Escalation(reason="Every point of the strategy holds a term that the policy blocks.")
    title = _title(shown.analysis, shown.strategy.headline, points, shown.blocked_terms)
    told = [quote for quote in points if quote.text != title] or points
    topics = [name for name in shown.analysis.topics if not blocked(name, shown.blocked_terms)]
    return Draft(
        title=title,
        sections=tuple(
            Section(
                heading=heading,
                text="\n\n".join(quote.text for quote in group),
                quotes=tuple(quote.id for quote in group),
            )
            for heading, group in _grouped(told, topics)
        ),
    )


def _title(
    analysis: Analysis, headline: str, points: Sequence[Quote], blocked_terms: Sequence[str]
) -> str:
    """The headline where the source has those words; a person may have changed it."""
    known = headline == analysis.title or any(headline in quote.text for quote in analysis.quotes)
    wanted = [headline, analysis.title] if known else [analysis.title]
    free = [title for title in wanted if not blocked(title, blocked_terms)]
    return free[0] if free else shortened(points[0].text)


def _grouped(points: Sequence[Quote], topics: Sequence[str]) -> list[tuple[str, list[Quote]]]:
    """Points under the topics that several of them name; the others stand first, without one."""
    left = list(points)
    groups: list[tuple[str, list[Quote]]] = []
    for topic in topics:
        own = [quote for quote in left if topic.casefold() in terms(quote.text)]
        heading = as_written(topic.casefold(), [quote.text for quote in own])
        if heading and is_name(heading, own) and GROUP_MIN <= len(own) < len(points):
            groups.append((heading, own))
            left = [quote for quote in left if quote not in own]
    plain = [("", left)] if left else []
    return [piece for group in [*plain, *groups] for piece in _fitting(*group)]


def is_name(form: str, quotes: Sequence[Quote]) -> bool:
    """Whether a word keeps its capital inside a sentence, so that it can stand as a heading."""
    if not any(character.isupper() for character in form):
        return False
    inside = re.compile(rf"[^\s.!?:][ ]{re.escape(form)}\b")
    return any(inside.search(quote.text) for quote in quotes)


def _fitting(heading: str, group: list[Quote]) -> list[tuple[str, list[Quote]]]:
    """A group as sections that keep within a section's length."""
    pieces: list[tuple[str, list[Quote]]] = []
    used = SECTION_CHARS_MAX
    for quote in group:
        if used + len(quote.text) + 2 > SECTION_CHARS_MAX:
            pieces.append((heading if not pieces else "", []))
            used = 0
        pieces[-1][1].append(quote)
        used += len(quote.text) + 2
    return pieces


# --- reviewer ----------------------------------------


def review(shown: Material) -> Review | Escalation:
    """Whether the draft keeps to the quotes and to the strategy, as far as text can be compared."""
    draft, analysis = shown.draft, shown.analysis
    if draft is None or analysis is None:
        return Escalation(reason="A review needs a draft and its analysis; one was not shown.")
    findings = [*_unquoted(draft, analysis), *_repeated(draft, analysis), *_left_out(draft, shown)]
    held = blocked(draft.text, shown.blocked_terms)
    findings += [f"The policy blocks these terms: {', '.join(held)}."] if held else []
    if len(draft.text) > DRAFT_CHARS_MAX:
        findings.append(f"The draft has {len(draft.text)} characters; {DRAFT_CHARS_MAX} is a lot.")
    return Review(
        verdict="doubts" if findings else "ready",
        findings=tuple(findings[:FINDINGS_MAX]),
    )


def _pieces(text: str, quotes: frozenset[str]) -> list[str]:
    """Whole quotes, else sentences of each line; a person's edit may be any text."""
    found: list[str] = []
    for paragraph in text.split("\n\n"):
        if paragraph in quotes:
            found.append(paragraph)
            continue
        for line in paragraph.splitlines():
            cut = [line[span.start : span.end] for span in spans(line)]
            found += cut or ([line.strip()] if line.strip() else [])
    return found


def _unquoted(draft: Draft, analysis: Analysis) -> list[str]:
    """What the draft says that no quote says."""
    sources = [analysis.title, *(quote.text for quote in analysis.quotes)]
    own = [("title", draft.title)]
    for number, section in enumerate(draft.sections, start=1):
        own += [(f"section {number}, heading", section.heading)] if section.heading else []
        own += [(f"section {number}", piece) for piece in _pieces(section.text, frozenset(sources))]
    return [
        f"No quote says this ({where}): {_shown(piece)}"
        for where, piece in own
        if not any(piece in source for source in sources)
    ]


def _repeated(draft: Draft, analysis: Analysis) -> list[str]:
    quotes = frozenset(quote.text for quote in analysis.quotes)
    seen: set[str] = set()
    findings = []
    for section in draft.sections:
        for piece in _pieces(section.text, quotes):
            folded = " ".join(piece.casefold().split())
            if folded in seen:
                findings.append(f"Said twice: {_shown(piece)}")
            seen.add(folded)
    return findings


def _left_out(draft: Draft, shown: Material) -> list[str]:
    """Points of the strategy that no section rests on."""
    if shown.strategy is None:
        return []
    used = {name for section in draft.sections for name in section.quotes}
    texts = {quote.id: quote.text for quote in shown.quotes}
    missing = [
        name
        for name in shown.strategy.points
        if name not in used and texts.get(name) != draft.title
    ]
    return (
        [f"Points of the strategy that the draft leaves out: {', '.join(missing)}."]
        if missing
        else []
    )


def _shown(piece: str) -> str:
    line = " ".join(piece.split())
    return line if len(line) <= SHOWN_CHARS else f"{line[:SHOWN_CHARS]}…"
