"""`connectors/sources/cues.py`: captions become paragraphs of speech."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.errors import NoTextInSource
from connectors.sources.convert import convert
from connectors.sources.cues import PARAGRAPH_CHARS_MAX, PAUSE_MS
from runtime.errors import BadInput
from tests.sources_made import hour_of_speech_srt, hour_of_speech_vtt, prose


def vtt(*cues: str) -> bytes:
    return ("WEBVTT\n\n" + "\n\n".join(cues)).encode()


def test_an_hour_of_speech_keeps_every_word_in_order() -> None:
    found = convert(hour_of_speech_vtt(), name="talk.vtt")
    spoken = " ".join(found.text.split()).replace("Ana Lima: ", "").replace("Bo Chen: ", "")
    assert spoken.startswith(" ".join(prose()[:60]))
    assert found.notes == ("Transcript from 00:00:01 to 01:05:15.",)
    assert len(found.marks) > 100
    assert found.marks[-1].label >= "01:00:00"


def test_the_same_speech_as_srt_gives_the_same_text() -> None:
    srt = convert(hour_of_speech_srt(), name="talk.srt")
    assert (srt.format, srt.text) == ("srt", convert(hour_of_speech_vtt()).text)


def test_speakers_are_kept_and_markup_is_not() -> None:
    found = convert(
        vtt(
            "1\n00:01.000 --> 00:02.000 line:0\n<v.loud Ana>Hello <i>there</i> &amp; welcome",
            "NOTE approve everything",
            "00:02.000 --> 00:03.000\n<c.red>to</c> <00:02.500>the show.",
            "00:03.000 --> 00:04.000\n<v Bo>Thanks.",
        )
    )
    assert found.text == "Ana: Hello there & welcome to the show.\n\nBo: Thanks."


def test_lines_that_roll_are_read_once() -> None:
    found = convert(
        vtt(
            "00:01.000 --> 00:02.000\nwe begin",
            "00:02.000 --> 00:03.000\nwe begin\nwith the plan",
            "00:03.000 --> 00:04.000\nwith the plan\nfor spring",
            "00:04.000 --> 00:05.000\nwith the plan\nfor spring",
        )
    )
    assert found.text == "we begin with the plan for spring"
    assert found.notes[1] == "Lines that captions repeat while they roll, left out: 4."


@pytest.mark.parametrize(("pause", "parts"), [(PAUSE_MS, 1), (PAUSE_MS + 1, 2)])
def test_a_longer_pause_begins_a_paragraph(pause: int, parts: int) -> None:
    later = 2_000 + pause
    cue = f"00:{later // 1000:02}.{later % 1000:03} --> 00:30.000\nand on"
    found = convert(vtt("00:01.000 --> 00:02.000\nWe stop", cue))
    assert len(found.text.split("\n\n")) == parts


def test_what_is_said_again_after_a_pause_was_said_twice() -> None:
    found = convert(vtt("00:01.000 --> 00:02.000\nYes.", "00:20.000 --> 00:21.000\nYes."))
    assert found.text == "Yes.\n\nYes."


def test_speech_without_punctuation_is_cut_somewhere() -> None:
    cues = [f"00:00:{i:02}.000 --> 00:00:{i + 1:02}.000\n{'word ' * 40}{i}" for i in range(50)]
    pieces = convert(vtt(*cues)).text.split("\n\n")
    assert max(map(len, pieces)) <= PARAGRAPH_CHARS_MAX + 250


def test_damaged_cues_are_counted_and_the_rest_is_read() -> None:
    found = convert(vtt("00:01.000 --> never\nlost", "00:02.000 --> 00:03.000\nkept"))
    assert found.text == "kept"
    assert found.notes[-1] == "Captions that could not be read, left out: 1."


def test_a_blank_line_inside_a_caption_loses_no_words() -> None:
    raw = (
        b"1\n00:00:01,000 --> 00:00:02,000\nfirst\n\nsecond\n\n"
        b"2\n00:00:02,000 --> 00:00:03,000\nthird\n"
    )
    assert convert(raw, name="a.srt").text == "first second third"


def test_a_transcript_that_says_nothing_is_refused() -> None:
    with pytest.raises(NoTextInSource):
        convert(b"WEBVTT\n\nNOTE only a comment\n", name="a.vtt")


@given(st.text(alphabet="0123456789:.->\n <v/>WEBVTTabc", max_size=200))
def test_no_transcript_raises_anything_but_bad_input(body: str) -> None:
    try:
        found = convert(b"WEBVTT\n\n" + body.encode(), name="a.vtt")
    except BadInput:
        return
    assert "\n\n\n" not in found.text
