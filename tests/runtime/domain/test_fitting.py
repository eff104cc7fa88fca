"""Fitting: what is cut, in which order, and that each cut is said (INV-9)."""

from __future__ import annotations

import json
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.domain.fitting import PIECE_CHARS_MIN, Fitted, fit, omission_line
from runtime.domain.material import Material, material
from runtime.domain.values import Trust
from runtime.errors import ProjectionOverflow

Cut = Literal["whole", "lines", "chars"]


def made(name: str, text: str, rank: int = 0, cut: Cut = "whole") -> Material:
    return material(
        "source", f"artifacts/{name}", text, trust=Trust.EXTERNAL, rank=rank, label=name, cut=cut
    )


def used(fitted: Fitted) -> int:
    return sum(len(shown.block) for shown in fitted.shown) + sum(
        len(omission_line(each)) + 1 for each in fitted.omissions
    )


def names(fitted: Fitted) -> list[str]:
    return [shown.material.label for shown in fitted.shown]


def test_what_fits_exactly_is_shown_whole_and_one_character_less_is_not() -> None:
    materials = (made("a", "one\ntwo"), made("b", "x" * 500))
    room = used(fit(materials, 10_000))
    whole = fit(materials, room)
    assert [shown.text for shown in whole.shown] == ["one\ntwo", "x" * 500]
    assert whole.omissions == ()
    less = fit(materials, room - 1)
    assert names(less) == ["a"]
    assert [each.label for each in less.omissions] == ["b"]


def test_lower_ranks_are_served_first_and_order_is_kept() -> None:
    materials = (made("late", "x" * 600, rank=9), made("early", "y" * 600, rank=1))
    fitted = fit(materials, 1_200)
    assert names(fitted) == ["early"]
    assert names(fit(materials, 10_000)) == ["late", "early"]


def test_one_rank_is_shared_evenly_and_small_ones_leave_the_rest() -> None:
    long = "line of text\n" * 1_000
    materials = (
        made("a", long, cut="lines"),
        made("small", "tiny", cut="lines"),
        made("b", long, cut="lines"),
    )
    fitted = fit(materials, 6_000)
    texts = {shown.material.label: shown.text for shown in fitted.shown}
    assert texts["small"] == "tiny"
    assert abs(len(texts["a"]) - len(texts["b"])) <= len("line of text\n")
    assert len(texts["a"]) > 1_500


def test_a_cut_between_lines_leaves_whole_lines() -> None:
    rows = [json.dumps({"quotes": {"id": f"F{n}", "text": "x" * (n % 50)}}) for n in range(200)]
    fitted = fit((made("a", "\n".join(rows), cut="lines"),), 3_000)
    (shown,) = fitted.shown
    assert shown.text.split("\n") == rows[: shown.text.count("\n") + 1]
    (omission,) = fitted.omissions
    assert (omission.start, omission.end) == (len(shown.text), len("\n".join(rows)))


def test_an_excerpt_says_which_of_its_characters_are_missing() -> None:
    window = made("a", "x" * 5_000, cut="chars").model_copy(update={"start": 700, "total": 9_000})
    fitted = fit((window,), 2_000)
    (shown,) = fitted.shown
    (omission,) = fitted.omissions
    assert omission.start == 700 + len(shown.text)
    assert omission.end == 5_700
    assert "artifacts/a" in omission_line(omission)
    assert shown.material.header(len(shown.text)).end == omission.start


def test_a_useless_beginning_is_left_out_and_said() -> None:
    materials = (made("a", "x" * 900, rank=0), made("b", "y" * 5_000, rank=1, cut="chars"))
    frame = used(fit((materials[0],), 10_000)) + 600
    tight = fit(materials, frame)
    assert all(len(shown.text) >= PIECE_CHARS_MIN for shown in tight.shown)
    assert {each.label for each in tight.omissions} == {"b"}


def test_no_room_even_for_the_omissions_is_an_error() -> None:
    materials = (made("a", "x" * 900),)
    with pytest.raises(ProjectionOverflow) as caught:
        fit(materials, 10)
    needed = caught.value.fields["needed_chars"]
    assert isinstance(needed, int)
    assert fit(materials, needed).shown == ()
    with pytest.raises(ProjectionOverflow):
        fit(materials, needed - 1)


pieces = st.tuples(
    st.text(st.sampled_from("ab \n\r\u2028"), max_size=900),
    st.integers(0, 2),
    st.sampled_from(("whole", "lines", "chars")),
)


@given(st.lists(pieces, max_size=6), st.integers(0, 6_000))
def test_the_room_is_never_exceeded_and_nothing_vanishes(
    several: list[tuple[str, int, Cut]], room: int
) -> None:
    materials = tuple(
        made(f"m{place}", text, rank, cut) for place, (text, rank, cut) in enumerate(several)
    )
    try:
        fitted = fit(materials, room)
    except ProjectionOverflow:
        assert room < 200 * len(materials)
        return
    assert used(fitted) <= room
    shown = {each.material.label: each.text for each in fitted.shown}
    left = {each.label: each for each in fitted.omissions}
    for each in materials:
        text = shown.get(each.label)
        if text is None:
            assert (left[each.label].start, left[each.label].end) == (0, len(each.text))
        else:
            assert each.text.startswith(text)
            assert (each.label in left) is (len(text) < len(each.text))
            assert each.cut != "whole" or text == each.text


@pytest.mark.parametrize("cut", ["lines", "chars"])
@pytest.mark.parametrize("line", ["", "abcdefg", "x" * 240])
def test_a_cut_is_exact_at_every_size_of_the_room(cut: Cut, line: str) -> None:
    text = f"{line}\n" * 300
    # All positions have five digits, so no line about an omission is shorter than was reserved.
    window = made("a", text, cut=cut).model_copy(update={"start": 20_000, "total": 99_999})
    sizes = set()
    for room in range(700, 1_400):
        fitted = fit((window,), room)
        assert used(fitted) <= room
        sizes.add(sum(len(shown.text) for shown in fitted.shown))
    assert len(sizes) > 1
