"""`connectors/sources/pdf.py`: the text layer, whole sentences, and honest refusals."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from connectors.errors import EncryptedSource, NoTextInSource
from connectors.sources.convert import convert
from connectors.sources.pdf import unwrapped
from connectors.sources.text import SourceText
from runtime.errors import BadInput
from tests.connectors.sources.test_convert import outcome
from tests.sources_made import PAGES_MIN, encrypted_pdf, prose, scanned_pdf, twenty_page_pdf


def test_twenty_pages_are_read_with_their_numbers() -> None:
    found = convert(twenty_page_pdf(), name="reading.pdf")
    assert found.pages is not None
    assert found.pages >= PAGES_MIN
    assert [mark.label for mark in found.marks] == [f"page {n + 1}" for n in range(found.pages)]
    assert found.title == "Python, read aloud"


def test_sentences_that_the_page_wrapped_can_be_quoted_whole() -> None:
    text = convert(twenty_page_pdf(), name="reading.pdf").text
    sentences = [line.split(". ")[0] for line in prose()[:200] if line.isascii()]
    found = sum(sentence in text for sentence in sentences)
    assert found > 0.9 * len(sentences)  # the others run over the end of a page


def test_a_password_is_named_as_the_reason() -> None:
    with pytest.raises(EncryptedSource) as refused:
        convert(encrypted_pdf(), name="secret.pdf")
    assert "protected by a password" in refused.value.sentence


def test_pages_without_text_are_called_scanned() -> None:
    with pytest.raises(NoTextInSource) as refused:
        convert(scanned_pdf(), name="scan.pdf")
    assert refused.value.fields["pages"] == 2
    assert "scanned" in refused.value.sentence


def test_short_lines_and_lists_are_not_joined() -> None:
    wide = "A line that goes on to the very end of the page and"
    assert unwrapped(f"Title\n{wide}\ncontinues.\n- item\n- item two") == (
        f"Title\n{wide} continues.\n- item\n- item two"
    )


def test_a_hyphen_at_the_end_of_a_line_stays() -> None:
    assert unwrapped("a long line with a well-\nknown word") == "a long line with a well-known word"


@settings(max_examples=30)
@given(st.lists(st.tuples(st.integers(0, 1150), st.integers(0, 255)), min_size=1, max_size=8))
def test_no_damaged_pdf_raises_anything_but_bad_input(changes: list[tuple[int, int]]) -> None:
    raw = bytearray(encrypted_pdf() if len(changes) % 2 else scanned_pdf())
    for at, value in changes:
        raw[at % len(raw)] = value
    assert isinstance(outcome(bytes(raw), "a.pdf"), SourceText | BadInput)
