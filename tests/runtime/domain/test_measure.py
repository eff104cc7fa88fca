"""Measuring: the same bytes give the same measures however they come, and text is really text."""

from __future__ import annotations

import hashlib
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.domain.artifact import CHUNK_BYTES, PREVIEW_CHARS, Measures
from runtime.domain.measure import Measuring

MARK = "Ж€😀\n"


def measure(data: bytes, *cuts: int, text: bool = True) -> Measures:
    measuring = Measuring("text/plain", text=text)
    edges = [0, *sorted(cuts), len(data)]
    for start, end in pairwise(edges):
        measuring.feed(data[start:end])
    return measuring.done()


@settings(max_examples=30)
@given(
    st.text(st.characters(codec="utf-8"), max_size=40),
    st.integers(0, 3),
    st.lists(st.integers(0, 2 * CHUNK_BYTES), max_size=6),
)
def test_how_the_bytes_were_cut_changes_nothing(seed: str, shift: int, cuts: list[int]) -> None:
    text = "x" * shift + (seed + MARK) * (2 * CHUNK_BYTES // len((seed + MARK).encode()))
    data = text.encode()
    found = measure(data, *[min(cut, len(data)) for cut in cuts])
    assert found == measure(data)
    assert found.sha256 == hashlib.sha256(data).hexdigest()
    assert found.chars == len(text)
    assert found.lines == text.count("\n") + (not text.endswith("\n"))
    for index, digest in enumerate(found.chunks):
        start = index * CHUNK_BYTES
        assert digest == hashlib.sha256(data[start : start + CHUNK_BYTES]).hexdigest()
        before = data[:start]
        assert found.chunk_lines[index] == before.count(b"\n")
        begun = sum(1 for byte in before if byte & 0xC0 != 0x80)
        assert found.chunk_chars[index] == begun


@pytest.mark.parametrize("chars", [1, PREVIEW_CHARS - 1, PREVIEW_CHARS, PREVIEW_CHARS + 1])
def test_a_short_text_is_its_own_preview(chars: int) -> None:
    text = ("Ж" * chars)[:-1] + "z"
    found = measure(text.encode())
    assert found.head + found.tail == text


@pytest.mark.parametrize("chars", [2 * PREVIEW_CHARS - 1, 2 * PREVIEW_CHARS, 2 * PREVIEW_CHARS + 1])
def test_head_and_tail_never_overlap_nor_invent(chars: int) -> None:
    text = "".join(chr(0x400 + index % 64) for index in range(chars))
    found = measure(text.encode())
    assert found.head == text[:PREVIEW_CHARS]
    assert found.tail == text[PREVIEW_CHARS:][-PREVIEW_CHARS:]


@pytest.mark.parametrize(
    "data", [b"\xff\xfe", b"ok \xc3", b"\xed\xa0\x80", b"x" * 70_000 + b"\xff"]
)
def test_what_is_not_utf8_has_no_preview_but_its_size(data: bytes) -> None:
    found = measure(data)
    assert found.chars is None
    assert found.chunk_chars == found.chunk_lines == ()
    assert found.head == f"[{len(data)} bytes of text/plain, not shown]"
    assert found.tail == ""


def test_what_is_not_declared_text_is_not_shown_even_if_it_could_be() -> None:
    assert measure(b"plain", text=False).chars is None


def test_a_border_of_chunks_inside_a_character_is_exact() -> None:
    data = b"x" * (CHUNK_BYTES - 1) + "€€".encode()
    found = measure(data)
    assert found.chars == CHUNK_BYTES + 1
    assert found.chunk_chars == (0, CHUNK_BYTES)
    exact = measure(b"x" * CHUNK_BYTES)
    assert len(exact.chunks) == len(exact.chunk_chars) == 1
