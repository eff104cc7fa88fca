"""Reads the table of `docs/invariants.md`: number, statement, where kept, tests, state."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tests.tidy.tree import ROOT, Source

COUNT = 20
CITATION = re.compile(r"\bINV-(\d+)\b")
ROW = re.compile(r"^\| INV-(\d+) \|(.*)\|$")


@dataclass(frozen=True, slots=True)
class Invariant:
    """One row of the table."""

    number: int
    statement: str
    kept_by: tuple[str, ...]
    tests: tuple[str, ...]
    state: str

    @property
    def name(self) -> str:
        """Its name, as code and tests cite it."""
        return f"INV-{self.number}"


def table() -> tuple[Invariant, ...]:
    """Every row, in the order of the document."""
    text = (ROOT / "docs/invariants.md").read_text(encoding="utf-8")
    found: list[Invariant] = []
    for line in text.splitlines():
        match = ROW.match(line)
        if match:
            statement, kept_by, tests, state = (cell.strip() for cell in match[2].split("|"))
            found.append(Invariant(int(match[1]), statement, _paths(kept_by), _paths(tests), state))
    assert len(found) == COUNT, f"expected {COUNT} rows, found {len(found)}"
    return tuple(found)


def _paths(cell: str) -> tuple[str, ...]:
    return tuple(re.findall(r"`([^`]+)`", cell))


def cited(source: Source) -> set[int]:
    """The numbers that a file's docstrings and comments cite."""
    return {int(number) for number in CITATION.findall(source.text)}


def ranges(text: str) -> list[str]:
    """Citations that hide numbers, such as `INV-1..4`: a search for one of them would miss it."""
    return re.findall(r"\bINV-\d+\s*(?:\.\.|\u2013|-|to)\s*(?:INV-)?\d+", text)
