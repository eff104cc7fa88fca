"""`connectors/sources/decode.py`: encodings are stated or UTF-8, never guessed."""

from __future__ import annotations

import codecs

import pytest

from connectors.errors import SourceUndecodable
from connectors.sources.convert import convert


@pytest.mark.parametrize(
    ("raw", "offset"),
    [(b"\xff" + b"abc", 0), (b"abc\xff", 3), (b"abc\xc3", 3), (b"\xed\xa0\x80", 0)],
)
def test_invalid_utf8_is_refused_with_the_position_of_the_first_wrong_byte(
    raw: bytes, offset: int
) -> None:
    with pytest.raises(SourceUndecodable) as refused:
        convert(raw, name="a.txt")
    assert refused.value.fields == {"name": "a.txt", "encoding": "UTF-8", "offset": offset}
    assert f"position {offset}" in refused.value.sentence


@pytest.mark.parametrize(
    ("mark", "codec", "note"),
    [
        (codecs.BOM_UTF8, "utf-8", ()),
        (codecs.BOM_UTF16_LE, "utf-16-le", ("Read as UTF-16.",)),
        (codecs.BOM_UTF16_BE, "utf-16-be", ("Read as UTF-16.",)),
        (codecs.BOM_UTF32_LE, "utf-32-le", ("Read as UTF-32.",)),
        (codecs.BOM_UTF32_BE, "utf-32-be", ("Read as UTF-32.",)),
    ],
)
def test_a_byte_order_mark_decides_and_does_not_stay(
    mark: bytes, codec: str, note: tuple[str, ...]
) -> None:
    found = convert(mark + "Grüße".encode(codec), name="a.txt")
    assert (found.text, found.notes) == ("Grüße", note)


def test_a_position_after_a_byte_order_mark_counts_the_mark() -> None:
    with pytest.raises(SourceUndecodable) as refused:
        convert(codecs.BOM_UTF8 + b"a\xff", name="a.txt")
    assert refused.value.fields["offset"] == 4


def test_an_encoding_that_the_transport_states_is_used_and_noted() -> None:
    found = convert("café".encode("latin-1"), content_type="text/plain; charset=ISO-8859-1")
    assert found.text == "café"
    assert found.notes == ("Read as cp1252, the encoding that the source states.",)


def test_an_encoding_that_a_page_states_is_used() -> None:
    page = '<html><meta charset="windows-1251"><p>Привет</p></html>'.encode("cp1251")
    assert convert(page, name="a.html").text == "Привет"


def test_an_unknown_stated_encoding_is_not_believed() -> None:
    assert convert("é".encode(), content_type="text/plain; charset=rot13").text == "é"
    with pytest.raises(SourceUndecodable):
        convert(b"\xe9", content_type="text/plain; charset=unicode_escape")
