"""`connectors/sources/detect.py`: content decides, names may only agree."""

from __future__ import annotations

import pytest

from connectors.errors import EncryptedSource, UnsupportedSource
from connectors.sources.convert import convert
from connectors.sources.detect import SUPPORTED
from tests.sources_made import hour_of_speech_vtt, small_docx, twenty_page_pdf

PAGE = b"<!DOCTYPE html><p>Hello</p>"


def refusal(raw: bytes, name: str | None, content_type: str | None = None) -> UnsupportedSource:
    with pytest.raises(UnsupportedSource) as refused:
        convert(raw, name=name, content_type=content_type)
    return refused.value


@pytest.mark.parametrize(
    ("raw", "looks_like"),
    [
        (b"\x89PNG\r\n\x1a\n\x00\x00", "a PNG picture"),
        (b"\xff\xd8\xff\xe0\x00", "a JPEG picture"),
        (b"MZ\x90\x00\x03\x00", "a Windows program"),
        (b"\x7fELF\x02\x01", "a Linux program"),
        (b"ID3\x04\x00\x00", "an MP3 recording"),
        (b"\xff\xfb\x90\x00abc", "an MP3 recording"),
        (b"RIFF\x24\x00\x00\x00WAVEfmt ", "a WAV recording"),
        (b"\x00\x00\x00\x18ftypmp42", "an MP4 or HEIC file"),
        (b"\x1f\x8b\x08\x00abc", "a gzip archive"),
        (b"PK\x05\x06" + bytes(18), "a zip archive"),
        (b"PK\x03\x04 not really", "a damaged zip archive"),
        (b"{\\rtf1 hello}", "an RTF document"),
        (
            b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600),
            "an old Office document (.doc, .xls, .ppt)",
        ),
        (b"ab\x00cd\x00\x00", "binary data"),
        ("hello there".encode("utf-16-le"), "UTF-16 without its byte order mark"),
    ],
)
@pytest.mark.parametrize("name", [None, "notes.txt", "notes.md"])
def test_what_is_not_read_is_named_whatever_its_name_says(
    raw: bytes, looks_like: str, name: str | None
) -> None:
    fault = refusal(raw, name)
    assert fault.fields["looks_like"] == looks_like
    assert SUPPORTED in fault.sentence
    assert ("declared as" in fault.sentence) is (name is not None)


@pytest.mark.parametrize(
    ("raw", "name", "content_type"),
    [
        (b"Hello there.", "report.pdf", None),
        (b"Hello there.", "letter.docx", None),
        (b"Hello there.", "photo.png", None),
        (b"Hello there.", "song.mp3", None),
        (b"Hello there.", "talk.vtt", None),
        (b"Hello there.", "talk.srt", None),
        (b"Hello there.", None, "image/png"),
        (b"Hello there.", None, "application/pdf"),
        (twenty_page_pdf(), "notes.txt", None),
        (twenty_page_pdf(), "letter.docx", None),
        (small_docx(), "report.pdf", None),
        (small_docx(), None, "text/html"),
    ],
)
def test_a_name_that_contradicts_the_content_is_refused_and_both_are_said(
    raw: bytes, name: str | None, content_type: str | None
) -> None:
    assert "but is declared as" in refusal(raw, name, content_type).sentence


@pytest.mark.parametrize(
    ("raw", "name", "content_type", "form"),
    [
        (b"Hello", None, None, "text"),
        (b"Hello", "a.txt", "application/octet-stream", "text"),
        (b"Hello", "a.py", "text/x-python", "text"),
        (b'{"a": 1}', "a.json", "application/json", "text"),
        (b"# Hello", "a.md", "text/plain", "markdown"),
        (b"# Hello", None, "text/markdown; charset=utf-8", "markdown"),
        (b"# Hello", "a.md", "application/x-genesis-rom", "markdown"),
        (b"Hello", None, "application/x-unheard-of", "text"),
        (b"Hello", "example.zip (page)", "text/plain", "text"),
        (PAGE, "a.md", "text/html", "html"),
        (PAGE, "a.md", None, "html"),
        (PAGE, None, None, "html"),
        (b"just words", "a.html", None, "html"),
        (b"<p>no doctype", None, "text/html", "html"),
        (b"<p align=center>a readme</p>", "README.md", None, "markdown"),
        (hour_of_speech_vtt(), "a.txt", None, "vtt"),
        (hour_of_speech_vtt(), None, None, "vtt"),
        (b"1\n00:00:01,000 --> 00:00:02,000\nHi", "a.srt", None, "srt"),
        (b"MZ is how it begins.", "a.txt", None, "text"),
        (b"%PDFs are fine", "a.txt", None, "text"),
        (twenty_page_pdf(), None, None, "pdf"),
        (b"\n" + twenty_page_pdf(), "a.pdf", "application/octet-stream", "pdf"),
        (small_docx(), None, None, "docx"),
    ],
)
def test_content_and_name_together_choose_the_reader(
    raw: bytes, name: str | None, content_type: str | None, form: str
) -> None:
    assert convert(raw, name=name, content_type=content_type).format == form


def test_an_encrypted_word_document_is_told_apart_from_an_old_one() -> None:
    raw = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(64) + "EncryptedPackage".encode("utf-16-le")
    with pytest.raises(EncryptedSource):
        convert(raw, name="a.docx")
