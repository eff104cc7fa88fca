"""Scores spans of a source: how much each tells about the whole.

Only what can be counted: terms that recur, figures, versions and dates, nearness to a heading or to
the beginning, a readable length. Words that ask something of a reader weigh nothing special, so a
source cannot promote itself by giving orders. Equal texts get equal scores on every machine.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from bot.agent.spans import Span

GOOD_CHARS: Final = range(40, 261)
CHARS_MIN: Final = 12
DENSE_CHARS_MIN: Final = 5
"""Scripts without blanks say as much in fewer characters."""
LINK_SHARE_MAX: Final = 0.5
ALIKE: Final = 0.75
COMMON_SHARE: Final = 0.25
COMMON_AMONG_MIN: Final = 8

_WORD: Final = re.compile(r"[^\W_]+(?:[-'’.][^\W_]+)*")  # noqa: RUF001 - a real apostrophe
_DENSE: Final = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")
_LINK: Final = re.compile(
    r"\[[^\]\n]{0,300}\]\([^)\s]{0,500}\)|https?://\S{1,500}|<[^<>\s]{1,300}>"
)
_TRAILER: Final = re.compile(
    r"(?:[\s,;(]*\b(?:by|in|from|via|and|with|thanks to|see|closes|fixes)?[\s:]*"
    r"(?:\[[^\]\n]{0,300}\]\([^)\s]{0,500}\)|https?://[^\s)]{1,500}|(?<!\w)@[\w-]{1,60}|#\d{1,8}))"
    r"[\s).,;]*$"
)
_FIGURE: Final = re.compile(r"\d+(?:[.,:/-]\d+)*\s?%?|[$€£¥]\s?\d")
_VERSION: Final = re.compile(r"\bv?\d+\.\d+(?:\.\d+)*\b")
_DATE: Final = re.compile(r"\b(?:19|20)\d\d-\d\d-\d\d\b|\b\d{1,2}[./]\d{1,2}[./](?:19|20)?\d\d\b")
_BOILERPLATE: Final = re.compile(
    r"all rights reserved|privacy policy|terms of (?:use|service)|cookie|subscribe to|click here"
    r"|sign up for|©|\(c\) (?:19|20)\d\d|full changelog|first contribution|new contributors"
    r"|table of contents|skip to (?:main )?content|powered by|unsubscribe|page \d+ of \d+",
    re.IGNORECASE,
)
_STOP_WORDS: Final = (
    "a an and are as at be been but by can could did do does for from had has have he her his how i"
    " if in into is it its may more most no not of on one only or other our out shall she should so"
    " some such than that the their them then there these they this those to up was we were what"
    " when where which while who will with would you your about after all also any because before"
    " between both each here just like many much must new now over same see very via use used using"
    " der die das und ist im ein eine zu den mit von auf für nicht les des est une dans pour"
    " que qui por con los las del el la le et en de"
)
_STOP: Final = frozenset(_STOP_WORDS.split())


@dataclass(frozen=True, slots=True)
class Told:
    """A span with its score; a higher one tells more."""

    span: Span
    text: str
    score: float


def terms(text: str) -> list[str]:
    """The words of a text that carry meaning, folded; pairs of characters where no blank parts."""
    found: list[str] = []
    for match in _WORD.finditer(_LINK.sub(" ", text)):
        word = match[0].casefold()
        if _DENSE.search(word):
            found += [word[at : at + 2] for at in range(len(word) - 1)]
        elif len(word) > 2 and word not in _STOP and not word.isdigit():  # noqa: PLR2004 - two-letter words link, they do not name
            found.append(word)
    return found


def without_trailer(text: str) -> str:
    """The beginning of a text, without the links and names that credit it at its end."""
    while len(shorter := _TRAILER.sub("", text[-800:])) < len(text[-800:]):
        kept = (text[:-800] + shorter).rstrip()
        if len(kept) < CHARS_MIN:
            break
        text = kept
    return text


def usable(text: str) -> bool:
    """Whether a text can stand alone: long enough, not boilerplate, not mostly links."""
    least = DENSE_CHARS_MIN if _DENSE.search(text) else CHARS_MIN
    if len(text) < least or _BOILERPLATE.search(text):
        return False
    linked = sum(len(found[0]) for found in _LINK.finditer(text))
    return linked <= LINK_SHARE_MAX * len(text)


def told(text: str, found: Sequence[Span], wished: frozenset[str] = frozenset()) -> list[Told]:
    """The usable spans of a text, most telling first. `wished` are terms that a person named."""
    pieces = []
    for span in found:
        shown = without_trailer(text[span.start : span.end])
        if span.kind != "heading" and usable(shown):
            pieces.append(
                (Span(span.start, span.start + len(shown), span.kind, span.heading), shown)
            )
    weights = _weights([shown for _, shown in pieces])
    scored = [
        Told(span, shown, _score(span, shown, index, weights, wished))
        for index, (span, shown) in enumerate(pieces)
    ]
    return sorted(scored, key=lambda item: (-item.score, item.span.start))


def _weights(texts: Sequence[str]) -> dict[str, float]:
    """How much each term tells: it recurs, yet is not everywhere."""
    among = [set(terms(text)) for text in texts]
    counts = Counter(term for found in among for term in found)
    limit = COMMON_SHARE * len(among) if len(among) >= COMMON_AMONG_MIN else len(among) + 1
    return {term: min(count, 12) / 12 for term, count in counts.items() if 1 < count <= limit}


def _score(
    span: Span, text: str, index: int, weights: dict[str, float], wished: frozenset[str]
) -> float:
    words = terms(text)
    recurring = sum(weights.get(word, 0.0) for word in set(words))
    score = 3.0 * recurring / (4 + len(set(words)))
    score += 1.0 / (1 + index / 12)
    score += 0.4 * min(2, len(_FIGURE.findall(text)))
    score += 0.6 * bool(_VERSION.search(text)) + 0.6 * bool(_DATE.search(text))
    score += 0.3 * (span.kind == "item") + 0.2 * (span.heading is not None)
    dense = 3 if _DENSE.search(text) else 1
    score += 0.8 * (len(text) * dense in GOOD_CHARS)
    score += 3.0 * len(wished.intersection(words))
    return round(score, 6)


def distinct(ranked: Iterable[Told], limit: int) -> list[Told]:
    """The first of a ranking, without those that say nearly the same as one before."""
    kept: list[tuple[Told, frozenset[str]]] = []
    for item in ranked:
        own = frozenset(terms(item.text)) or frozenset({item.text})
        if all(not alike(own, other) for _, other in kept):
            kept.append((item, own))
            if len(kept) == limit:
                break
    return [item for item, _ in kept]


def alike(left: frozenset[str], right: frozenset[str]) -> bool:
    """Whether two texts use nearly the same terms."""
    return len(left & right) >= ALIKE * len(left | right)
