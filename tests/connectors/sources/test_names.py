"""`connectors/sources/names.py`: names that are safe to show."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.sources.names import NAME_CHARS_MAX, shown_name, suffix_of


@given(st.text(max_size=300))
def test_a_shown_name_is_one_bounded_line_that_reverses_nothing(name: str) -> None:
    shown = shown_name(name)
    assert 0 < len(shown) <= NAME_CHARS_MAX
    assert len(shown.splitlines()) == 1
    assert "\u202e" not in shown
    assert shown_name(shown) == shown


@pytest.mark.parametrize(
    ("name", "shown", "suffix"),
    [
        (None, "the source", ""),
        ("", "the source", ""),
        ("\u202e\n", "the source", ""),
        ("../../etc/passwd", "passwd", ""),
        ("C:\\tmp\\a.TXT", "a.TXT", "txt"),
        ("photo\u202egpj.exe", "photogpj.exe", "exe"),
        (".md", ".md", ""),
        ("notes.md ", "notes.md", "md"),
    ],
)
def test_names_are_cleaned(name: str | None, shown: str, suffix: str) -> None:
    assert (shown_name(name), suffix_of(name)) == (shown, suffix)


def test_a_long_name_keeps_its_ending() -> None:
    shown = shown_name("x" * 200 + ".docx")
    assert "…" in shown
    assert shown.endswith(".docx")
    assert suffix_of("x" * 200 + ".docx") == "docx"
