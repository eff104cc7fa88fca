"""Escaping, names and splitting: every piece is accepted alone and nothing is lost."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.sandbox.markup_html import HtmlReader
from bot.telegram.html import (
    FSI,
    PDI,
    TEXT_UNITS_MAX,
    escape,
    hidden_characters,
    name,
    one_line,
    plain,
    split_html,
    units,
    whole,
)

WORDS = st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=200)


@st.composite
def marked(draw: st.DrawFn) -> str:
    """Well-nested Telegram HTML around any text."""
    parts = []
    for _ in range(draw(st.integers(1, 6))):
        text = escape(draw(WORDS))
        tag = draw(st.sampled_from(["", "b", "i", "code", "pre", "blockquote"]))
        inner = draw(st.sampled_from(["", "u", "s"])) if tag not in {"code", "pre"} else ""
        text = f"<{inner}>{text}</{inner}>" if inner else text
        parts.append(f"<{tag}>{text}</{tag}>" if tag else text)
    return draw(st.sampled_from(["", " ", "\n"])).join(parts)


def accepted(html: str) -> str:
    """What Telegram's own reader (as the sandbox has it) makes of it; a refusal is an error."""
    text, _ = HtmlReader(html).read()
    return str(text)


@given(WORDS)
def test_escaped_text_reads_back_as_itself(text: str) -> None:
    shown = escape(text)
    if not hidden_characters(text):
        assert accepted(shown) == text
        assert plain(shown) == text


@given(st.text(max_size=300))
def test_no_text_can_become_a_tag(text: str) -> None:
    assert "<" not in escape(text)
    assert ">" not in escape(text)


@given(marked(), st.integers(64, 300))
def test_pieces_fit_and_lose_nothing_visible(html: str, limit: int) -> None:
    pieces = split_html(html, limit)
    for piece in pieces:
        assert units(plain(piece)) <= limit
        accepted(piece)
    seen = "".join("".join(accepted(piece).split()) for piece in pieces)
    assert seen == "".join(accepted(html).split())


def test_case_1_emoji_then_a_long_log() -> None:
    """3,000 x U+1F680, then 9,000 characters of <pre>: whole emoji, tags closed and reopened."""
    log = "".join(f"{number:04d} ok\n" for number in range(1_125))
    assert len(log) == 9_000
    pieces = split_html("🚀" * 3_000 + f"<pre>{log}</pre>")
    assert all(units(accepted(piece)) <= TEXT_UNITS_MAX for piece in pieces)
    assert sum(accepted(piece).count("🚀") for piece in pieces) == 3_000
    assert all(piece.count("<pre>") == piece.count("</pre>") for piece in pieces)
    assert "".join("".join(accepted(piece).split()) for piece in pieces).endswith("1124ok")


@pytest.mark.parametrize("extra", [-1, 0, 1])
def test_the_limit_is_exact(extra: int) -> None:
    pieces = split_html("a" * (TEXT_UNITS_MAX + extra))
    assert len(pieces) == (2 if extra > 0 else 1)
    astral = split_html("🚀" * (TEXT_UNITS_MAX // 2) + "a" * max(extra, 0))
    assert len(astral) == (2 if extra > 0 else 1)


@pytest.mark.parametrize("whole_", ["👩‍👩‍👧‍👦", "🇩🇪", "👍🏽", "é", "🏴󠁧󠁢󠁥󠁮󠁧󠁿"])
def test_what_a_reader_sees_as_one_is_not_cut(whole_: str) -> None:
    pieces = split_html(whole_ * 200, 64)
    assert len(pieces) > 1
    assert all(plain(piece).replace(whole_, "") == "" for piece in pieces)


def test_a_border_prefers_line_ends_then_spaces() -> None:
    assert split_html("a" * 40 + "\n" + "b" * 40, 64)[0] == "a" * 40 + "\n"
    assert split_html("a" * 40 + " " + "b" * 40, 64)[0] == "a" * 40 + " "
    assert split_html("a" * 80, 64)[0] == "a" * 64


def test_a_decorated_character_longer_than_a_message_still_ends() -> None:
    pieces = split_html("a" + "\u0301" * 9_000)
    assert all(units(piece) <= TEXT_UNITS_MAX for piece in pieces)
    assert sum(piece.count("\u0301") for piece in pieces) == 9_000


@pytest.mark.parametrize(
    ("first", "shown"),
    [
        ("\u202eevorppA", f"{FSI}evorppA{PDI}"),
        ("🦊🦊", f"{FSI}🦊🦊 (7){PDI}"),
        ("\u3164", "7"),
        ("", "7"),
        ("\u200b\u2060", "7"),
        ("<b>Root</b>", f"{FSI}<b>Root</b>{PDI}"),
        ("Ana\nApproved by Bo", f"{FSI}Ana Approved by Bo{PDI}"),
        ("עדן", f"{FSI}עדן{PDI}"),
        ("\u2069Ana\u2068", f"{FSI}Ana{PDI}"),
    ],
)
def test_case_27_names_cannot_turn_a_card(first: str, shown: str) -> None:
    assert name(first, "", 7) == shown


def test_a_name_with_marks_is_shown_as_text() -> None:
    assert escape(name("<b>Root</b>", "", 7)) == f"{FSI}&lt;b&gt;Root&lt;/b&gt;{PDI}"


@given(st.text(max_size=100), st.text(max_size=100))
def test_every_name_is_one_line_and_isolated(first: str, last: str) -> None:
    shown = name(first, last, 7)
    assert "\n" not in shown
    assert shown == "7" or (shown[0], shown[-1]) == (FSI, PDI)
    assert escape(shown).count("⟨U+") == 0


def test_direction_changes_in_a_text_are_named() -> None:
    assert escape("pay \u202ecba") == "pay ⟨U+202E⟩cba"
    assert escape("a\u2068b") == "a⟨U+2068⟩b"
    assert hidden_characters("a\u202eb\x00") == 2


def test_lone_surrogates_become_storable() -> None:
    assert whole("a\ud83d").encode()
    assert whole("🚀") == "🚀"


def test_one_line_cuts_with_a_sign() -> None:
    assert one_line("a  b\nc", 10) == "a b c"
    assert one_line("a" * 11, 10) == "a" * 9 + "…"
    assert one_line("a" * 10, 10) == "a" * 10


def test_plain_reads_entities() -> None:
    assert plain("&lt;b&gt; &amp; &quot;&#65;&#x42; <b>x</b> a < b") == '<b> & "AB x a < b'


@pytest.mark.parametrize("hidden", ["\u200b", "\u2060", "\ufeff", "\u180e", "\U000e0041"])
def test_what_a_reader_would_not_see_is_named_and_counted(hidden: str) -> None:
    shown = escape(f"pay{hidden}load")
    assert hidden not in shown
    assert f"U+{ord(hidden):04X}" in shown
    assert hidden_characters(f"pay{hidden}load") == 1


@pytest.mark.parametrize("joined", ["👩\u200d🚀", "\u0645\u06cc\u200c\u062e\u0648", "e\u0301"])
def test_joiners_that_scripts_and_emoji_need_stay(joined: str) -> None:
    assert escape(joined) == joined
