"""The offline reader, analyst and strategist: they choose from the source and add no word to it.

Everything they return, except the strategist's plain statements about itself, is an exact piece of
what was shown. What a source asks for is never done: it is only ever a candidate for quoting.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from bot.agent.answers import AnalysisSaid, NotesSaid, Said
from bot.agent.material import Material, Window
from bot.agent.spans import Span, spans
from bot.agent.telling import Told, alike, distinct, terms, told
from runtime.domain.proposal import Escalation, Notes, Quote, Strategy

READER_QUOTES: Final = 24
ANALYST_QUOTES: Final = 60
SUMMARY_QUOTES: Final = 5
TOPICS: Final = 8
POINTS: Final = 8
TITLE_CHARS_GOOD: Final = 120
TITLE_TERMS_MIN: Final = 2
TOPIC_CHARS_MIN: Final = 4
TOPIC_CHARS_MAX: Final = 60
WINDOW_STEP: Final = 0.5
"""How many ranks a later window stands behind the one before it."""

NOT_STATED: Final = "not stated in the source"


def wished(shown: Material) -> frozenset[str]:
    """Terms that a person named in the brief or in a reason; they only weigh, never command."""
    return frozenset(term for text in shown.texts("brief", "decision") for term in terms(text))


def blocked(text: str, blocked_terms: Sequence[str]) -> list[str]:
    """The terms that a text may not hold and does."""
    folded = text.casefold()
    return [term for term in blocked_terms if term.casefold() in folded]


def said(texts: Sequence[str]) -> tuple[Said, ...]:
    """Texts numbered F1, F2, ..."""
    return tuple(Said(id=f"F{number}", text=text) for number, text in enumerate(texts, start=1))


# --- reader ----------------------------------------


def read_window(shown: Material) -> NotesSaid | Escalation:
    """The most telling pieces of the shown part of the source."""
    if not shown.windows:
        return Escalation(reason="No part of a source was shown.")
    window = shown.windows[0]
    found = _uncut(spans(window.text), window)
    picked = distinct(told(window.text, found, wished(shown)), READER_QUOTES)
    if not picked and window.whole:
        return Escalation(
            reason="The source holds no sentence or list item that can be quoted: only code, "
            "links, tables or boilerplate."
        )
    return NotesSaid(
        title=_title(window, found, picked), quotes=said([item.text for item in picked])
    )


def _uncut(found: Sequence[Span], window: Window) -> Sequence[Span]:
    """Without what the window's border may have cut; the neighbouring window has it whole."""
    first = 1 if window.start > 0 else 0
    last = -1 if window.end < window.total else None
    return found[first:last]


def _title(window: Window, found: Sequence[Span], picked: Sequence[Told]) -> str:
    """The first heading of the source, else its first usable sentence; other parts have none."""
    if window.start > 0:
        return ""
    headings = [window.text[span.start : span.end] for span in found if span.kind == "heading"]
    inside = [item.text for item in sorted(picked, key=lambda item: item.span.start)]
    return shortened(headings[0]) if headings else titled(inside)


def titled(texts: Sequence[str]) -> str:
    """The first text that is short enough for a title, else the beginning of the first."""
    short = [text for text in texts if len(text) <= TITLE_CHARS_GOOD and "\n" not in text]
    return shortened(short[0] if short else texts[0]) if texts else ""


def shortened(text: str) -> str:
    """The text's first line, cut at a blank if it is too long for a title."""
    line = text.splitlines()[0]
    if len(line) <= TITLE_CHARS_GOOD:
        return line
    cut = line[:TITLE_CHARS_GOOD]
    return cut.rpartition(" ")[0] or cut


# --- analyst ----------------------------------------


def analyse(shown: Material) -> AnalysisSaid | Escalation:
    """The readers' notes as one: without repeats, most telling first, renumbered."""
    merged = _merged(shown.notes, wished(shown))
    if not merged:
        return Escalation(reason="The notes hold no quote, so there is nothing to analyse.")
    quotes = said([quote.text for quote in merged])
    places = {numbered.id: quote.start for numbered, quote in zip(quotes, merged, strict=True)}
    first = [numbered.id for numbered in quotes[:SUMMARY_QUOTES]]
    title = next((notes.title for notes in shown.notes if notes.title), "")
    return AnalysisSaid(
        title=title or titled([quote.text for quote in sorted(merged, key=_position)]),
        topics=topics([quote.text for quote in merged]),
        summary=tuple(sorted(first, key=lambda name: places[name])),
        quotes=quotes,
    )


def _position(quote: Quote) -> int:
    return quote.start


def _merged(all_notes: Sequence[Notes], wishes: frozenset[str]) -> list[Quote]:
    """Quotes by rank in their notes, earlier parts of the source first, near repeats dropped."""
    ranked = sorted(
        (
            (rank + WINDOW_STEP * number - 8 * len(wishes.intersection(terms(quote.text))), quote)
            for number, notes in enumerate(all_notes)
            for rank, quote in enumerate(notes.quotes)
        ),
        key=lambda pair: (pair[0], pair[1].start),
    )
    kept: list[Quote] = []
    seen: list[frozenset[str]] = []
    for _, quote in ranked:
        own = frozenset(terms(quote.text)) or frozenset({quote.text})
        if all(not alike(own, other) for other in seen):
            kept.append(quote)
            seen.append(own)
            if len(kept) == ANALYST_QUOTES:
                break
    return kept


def topics(texts: Sequence[str]) -> tuple[str, ...]:
    """Terms that recur among the texts, as they are written there."""
    counts = Counter(term for text in texts for term in set(terms(text)))
    found: list[str] = []
    for term, count in sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])):
        if count == 1 or len(found) == TOPICS:
            break
        written = as_written(term, texts)
        least = TOPIC_CHARS_MIN if term.isascii() else 2
        if written and least <= len(term) <= TOPIC_CHARS_MAX:
            found.append(written)
    return tuple(found)


def as_written(term: str, texts: Sequence[str]) -> str | None:
    """How a folded term stands in the texts, most often; None where folding changed its length."""
    forms: Counter[str] = Counter()
    for text in texts:
        at = text.casefold().find(term)
        form = text[at : at + len(term)] if at >= 0 else ""
        if form.casefold() == term:
            forms[form] += 1
    return min(forms, key=lambda form: (-forms[form], form)) if forms else None


# --- strategist ----------------------------------------


def strategise(shown: Material, model: str) -> Strategy | Escalation:
    """A plan made of the analysis' own quotes, and a plain word about how it was made."""
    analysis = shown.analysis
    if analysis is None:
        return Escalation(reason="No analysis was shown, so there is nothing to plan from.")
    wishes = wished(shown)
    usable = [quote for quote in analysis.quotes if not blocked(quote.text, shown.blocked_terms)]
    if not usable:
        return Escalation(reason="Every quote of the analysis holds a term that the policy blocks.")
    order = {name: at for at, name in enumerate(analysis.summary)}
    best = sorted(
        enumerate(usable),
        key=lambda pair: (
            -len(wishes.intersection(terms(pair[1].text))),
            order.get(pair[1].id, len(order) + pair[0]),
        ),
    )
    chosen = sorted((quote for _, quote in best[:POINTS]), key=_position)
    asked = (
        " Words of the brief or of a reason only raised quotes that share them." if wishes else ""
    )
    return Strategy(
        headline=_headline(analysis.title, [quote.text for _, quote in best], shown.blocked_terms),
        audience=NOT_STATED,
        angle=best[0][1].text,
        points=tuple(quote.id for quote in chosen),
        rationale=f"Made by {model} without any AI service: the points are the source's own "
        "sentences, chosen by recurring terms, figures, dates and position, in the order of the "
        f"source. It judges neither truth nor audience.{asked}",
    )


def _headline(title: str, ranked: Sequence[str], blocked_terms: Sequence[str]) -> str:
    """The title, or a short telling quote where the title is one bare word such as "Changelog"."""
    free = not blocked(title, blocked_terms)
    if free and len(set(terms(title))) >= TITLE_TERMS_MIN:
        return title
    short = [text for text in ranked[:POINTS] if len(text) <= TITLE_CHARS_GOOD and "\n" not in text]
    return short[0] if short else title if free else shortened(ranked[0])
