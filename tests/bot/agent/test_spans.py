"""Spans are exact, in order and apart, and are the sentences that a reader would mark."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.agent.spans import SPAN_CHARS_MAX, spans
from tests import sources_made

LETTERS = st.characters(codec="utf-8", exclude_characters="\r")
LINES = st.sampled_from(
    [
        "# Heading",
        "- an item, which goes on",
        "  and on. And ends!",
        "1. First.",
        "Prose. More of it? Yes… and so on",
        "```",
        "~~~",
        "<!-- hidden",
        "-->",
        "| a | b |",
        "===",
        "---",
        "",
        "    code()",
        "这是第一句。这是第二句。「引文。」完",
        "Ana: Hello there.",
        "00:01:02.000 --> 00:01:04.000",
        "[00:12] Spoken words.",
        "A" * (SPAN_CHARS_MAX + 7),
        "é" * 900,
        "> quoted line.",
    ]
)
TEXTS = st.one_of(st.text(LETTERS, max_size=400), st.lists(LINES, max_size=20).map("\n".join))


def texts(source: str) -> list[str]:
    """What the spans say."""
    return [source[span.start : span.end] for span in spans(source)]


@given(TEXTS)
def test_spans_are_exact_ordered_apart_and_without_outer_blanks(source: str) -> None:
    at = 0
    found = spans(source)
    for span in found:
        assert at <= span.start < span.end <= len(source)
        piece = source[span.start : span.end]
        assert piece == piece.strip()
        assert any(character.isalpha() for character in piece)
        at = span.end
    assert found == spans(source)


@given(TEXTS)
def test_no_sentence_is_longer_than_the_limit_by_more_than_its_accents(source: str) -> None:
    for span in spans(source):
        assert span.kind == "heading" or span.end - span.start <= SPAN_CHARS_MAX + 50


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("One. Two! Three? Four", ["One.", "Two!", "Three?", "Four"]),
        ("It costs 3.5 euros. Fine.", ["It costs 3.5 euros.", "Fine."]),
        (
            "Dr. Lee met J. K. Smith, i.e. him. Good.",
            ["Dr. Lee met J. K. Smith, i.e. him.", "Good."],
        ),
        ("See No. 5 and fig. 2. He said no. So", ["See No. 5 and fig. 2.", "He said no.", "So"]),
        ("He said “no.” Then he left.", ["He said “no.”", "Then he left."]),
        ("Wait... what? Yes.", ["Wait... what?", "Yes."]),
        ("A line that\nwraps on. Next.", ["A line that\nwraps on.", "Next."]),
        ("First para\n\nSecond para", ["First para", "Second para"]),
        (
            "你好世界。今天发布了新版本。「很好。」他说",
            ["你好世界。", "今天发布了新版本。", "「很好。」", "他说"],
        ),
        ("यह पहला है। यह दूसरा है।", ["यह पहला है।", "यह दूसरा है।"]),
        ("ما هذا؟ هذا كتاب.", ["ما هذا؟", "هذا كتاب."]),
        ("# T #\n\n- one\n- two\n  goes on\n1. three", ["T", "one", "two\n  goes on", "three"]),
        ("Title\n=====\n\nText.", ["Title", "Text."]),
        ("a b\n```\ncode here.\n```\nc d", ["a b", "c d"]),
        ("a b\n\n    code here.\n\nc d", ["a b", "c d"]),
        ("<!-- a\nb -->\nText.", ["Text."]),
        ("| a | b |\n|---|---|\nText.", ["Text."]),
        ("1\n00:00:01,000 --> 00:00:02,000\nHello you.", ["Hello you."]),
        ("[00:12] Hello you.\n[00:15] And you.", ["Hello you.", "And you."]),
        ("---\n***\n12345\n", []),
        ("", []),
    ],
)
def test_known_texts_are_cut_as_a_reader_would(source: str, expected: list[str]) -> None:
    assert texts(source) == expected


def test_a_name_before_a_colon_is_a_speaker_only_if_it_returns() -> None:
    speech = "Ana Lima: We start.\n\nBo: Good.\n\nAna Lima: Next.\n\nAna Lima: End."
    assert texts(speech) == ["We start.", "Bo: Good.", "Next.", "End."]
    notes = "Note: One.\n\nNote: Two.\n\nNote: Three."
    assert texts(notes) == ["Note: One.", "Note: Two.", "Note: Three."]


def test_unpunctuated_speech_is_cut_at_pauses() -> None:
    speech = "so we went on and " * 200
    found = texts(speech)
    assert len(found) > 5
    assert all(len(piece) <= SPAN_CHARS_MAX for piece in found)
    assert " ".join(found) == speech.strip()


def test_items_know_the_heading_above_them() -> None:
    source = "# A\n\none one\n\n## B\n\n- two two\n"
    found = spans(source)
    heads = [None if span.heading is None else source[found[span.heading].start] for span in found]
    assert heads == [None, "A", None, "B"]


def test_a_real_changelog_is_cut_in_one_pass() -> None:
    source = sources_made.long_changelog().decode()
    found = spans(source)
    assert len(found) > 1_000
    assert not any("<!--" in source[span.start : span.end] for span in found)
