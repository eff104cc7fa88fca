"""Fitting material into the room that the authority left: what is cut, and in which order.

Keeps its half of INV-9: whatever is left out, whole or in part, becomes an omission that says how
to recover it. Ranks are served in ascending order; within a rank the room is shared evenly, and
what a small one does not need goes to the larger ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from runtime.domain.material import Material, Omission
from runtime.domain.quoting import QUOTED, broken, canonical_line, quote, quoted_chars
from runtime.errors import ProjectionOverflow

PIECE_CHARS_MIN: Final = 200
"""A shorter beginning of something longer tells nothing and is left out."""


@dataclass(frozen=True, slots=True)
class Shown:
    """A material with the part of its text that is shown."""

    material: Material
    text: str

    @property
    def block(self) -> str:
        """Its quoted block."""
        return quote(self.material.header(len(self.text)), self.text)


@dataclass(frozen=True, slots=True)
class Fitted:
    """What is shown, in the given order, and what is not."""

    shown: tuple[Shown, ...]
    omissions: tuple[Omission, ...]


def fit(materials: tuple[Material, ...], room: int) -> Fitted:
    """Choose what is shown in `room` characters, the lines about omissions included.

    Raises:
        ProjectionOverflow: not even those lines would fit.
    """
    needs = [_need(material) for material in materials]
    if sum(needs) <= room:
        return Fitted(tuple(Shown(each, each.text) for each in materials), ())
    reserve = sum(len(omission_line(_omission(each, each.total))) + 1 for each in materials)
    left = room - reserve
    if left < 0:
        raise ProjectionOverflow(section="omissions", needed_chars=reserve, budget_chars=room)
    chosen: dict[int, str] = {}
    for rank in sorted({each.rank for each in materials}):
        members = [place for place, each in enumerate(materials) if each.rank == rank]
        left -= _share(materials, needs, members, left, chosen)
    shown = [Shown(materials[place], chosen[place]) for place in sorted(chosen)]
    omissions = [
        _omission(each, len(chosen.get(place, "")))
        for place, each in enumerate(materials)
        if len(chosen.get(place, "")) < len(each.text) or place not in chosen
    ]
    return Fitted(tuple(shown), tuple(omissions))


def omission_line(omission: Omission) -> str:
    """One line that says what is missing and how to recover it."""
    place = f" characters {omission.start} to {omission.end}" if omission.end else ""
    label = f" {canonical_line(omission.label)}" if omission.label else ""
    return f"- {omission.why}:{label}{place}; {omission.how} [{omission.record}]"


def _share(
    materials: tuple[Material, ...],
    needs: list[int],
    members: list[int],
    room: int,
    chosen: dict[int, str],
) -> int:
    """Serve one rank; how many characters it used."""
    used = 0
    for served, place in enumerate(sorted(members, key=lambda each: (needs[each], each))):
        each = materials[place]
        share = (room - used) // (len(members) - served)
        allowed = room - used if each.cut == "whole" else share
        text = each.text if needs[place] <= allowed else _beginning(each, allowed)
        if text is not None:
            chosen[place] = text
            used += needs[place] - quoted_chars(each.text) + quoted_chars(text)
    return used


def _need(material: Material) -> int:
    """The length of its block, at most: a cut makes the header's numbers no longer."""
    return (
        len(quote(material.header(len(material.text)), ""))
        - quoted_chars("")
        + quoted_chars(material.text)
    )


def _beginning(material: Material, allowed: int) -> str | None:
    """The longest beginning that fits, or None if it may not be cut or nothing useful fits."""
    if material.cut == "whole":
        return None
    # A text that ends with a line break needs a last, empty line.
    room = allowed - (_need(material) - quoted_chars(material.text)) - quoted_chars("")
    taken = whole_lines = 0
    for line in broken(material.text):
        cost = len(QUOTED) + len(line)
        if cost > room:
            taken = whole_lines + max(room - len(QUOTED), 0)
            break
        room -= cost
        taken = whole_lines = whole_lines + len(line)
    near = whole_lines > taken // 2
    end = whole_lines if material.cut == "lines" or near else taken
    text = material.text[:end]
    if material.cut == "lines":
        text = text.removesuffix("\n")
        return text or None
    return text if len(text) >= PIECE_CHARS_MIN else None


def _omission(material: Material, shown_chars: int) -> Omission:
    start = material.start + shown_chars
    end = material.start + len(material.text)
    return Omission(
        record=material.record,
        label=material.label,
        start=min(start, end),
        end=end,
        why="budget",
        how="read it from its record",
    )
