"""Places what a model quoted: an exact text becomes a quote with its position, or is refused.

A reader's quote must stand in the shown source; an analyst's must be one of the readers' quotes; a
strategy and a draft may name only quotes of the shown analysis. This finds evidence, it makes none:
`runtime.domain.proposal.grounded` checks every position again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from bot.agent.answers import AnalysisSaid, Answer, NotesSaid, Refusal, Said
from bot.agent.material import Material, Window, material
from runtime.domain.projection import Projection
from runtime.domain.proposal import Analysis, Draft, Notes, Quote, Result, Strategy


def place(answer: Answer, projection: Projection) -> Result | Refusal:
    """The result with its quotes placed. Pure."""
    match answer:
        case NotesSaid():
            placed = _placed(answer.quotes, _in_source(material(projection.text).windows))
            if isinstance(placed, Refusal):
                return placed
            return Notes(title=answer.title, quotes=placed)
        case AnalysisSaid():
            return _analysis(answer, material(projection.text))
        case Strategy():
            return _known(answer.points, material(projection.text), "answer.points") or answer
        case Draft():
            named = [name for section in answer.sections for name in section.quotes]
            return _known(named, material(projection.text), "answer.sections.quotes") or answer
        case _:
            return answer


def _analysis(said: AnalysisSaid, shown: Material) -> Analysis | Refusal:
    placed = _placed(said.quotes, _in_quotes(shown.quotes))
    if isinstance(placed, Refusal):
        return placed
    names = {quote.id for quote in placed}
    if not names.issuperset(said.summary):
        return Refusal("schema", "answer.summary: names no quote of the analysis")
    return Analysis(title=said.title, topics=said.topics, summary=said.summary, quotes=placed)


def _in_source(windows: Sequence[Window]) -> Callable[[str], int | None]:
    """Where a text first stands in the shown source."""

    def find(text: str) -> int | None:
        for window in windows:
            index = window.text.find(text)
            if index >= 0:
                return window.start + index
        return None

    return find


def _in_quotes(quotes: Sequence[Quote]) -> Callable[[str], int | None]:
    """Where a text that was quoted before stands."""
    places: dict[str, int] = {}
    for quote in quotes:
        places.setdefault(quote.text, quote.start)
    return places.get


def _placed(said: Sequence[Said], find: Callable[[str], int | None]) -> tuple[Quote, ...] | Refusal:
    placed: list[Quote] = []
    names: set[str] = set()
    for index, quote in enumerate(said):
        start = find(quote.text)
        if start is None:
            return Refusal("schema", f"answer.quotes.{index}: not an exact piece of what was shown")
        if quote.id in names:
            return Refusal("schema", f"answer.quotes.{index}: its number is taken")
        names.add(quote.id)
        placed.append(Quote(id=quote.id, text=quote.text, start=start))
    return tuple(placed)


def _known(names: Iterable[str], shown: Material, where: str) -> Refusal | None:
    known = {quote.id for quote in shown.analysis.quotes} if shown.analysis else set()
    if known.issuperset(names):
        return None
    return Refusal("schema", f"{where}: names no quote of the analysis")
