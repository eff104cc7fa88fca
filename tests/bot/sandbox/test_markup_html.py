"""Marked text: what each style becomes, where offsets point, what is refused with which words."""

from __future__ import annotations

import contextlib
import html
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.sandbox.errors import ApiRefusal
from bot.sandbox.markup_html import TAGS, HtmlReader
from bot.sandbox.markup_markdown import MarkdownV2Reader, read_markdown
from bot.sandbox.markup_text import Raw, checked_link, find, settle, units

Marks = list[dict[str, Any]]


def read(text: str) -> tuple[str, Marks]:
    return settle(*HtmlReader(text).read())


def short(marks: Marks) -> list[tuple[str, int, int]]:
    return [(mark["type"], mark["offset"], mark["length"]) for mark in marks]


def refusal(reader: Callable[[str], object], text: str) -> str:
    with pytest.raises(ApiRefusal) as refused:
        reader(text)
    assert refused.value.code == 400
    return refused.value.description.removeprefix("Bad Request: can't parse entities: ")


@pytest.mark.parametrize(
    ("text", "plain", "marks"),
    [
        ("<b>a</b>", "a", [("bold", 0, 1)]),
        ("🚀<b>ä</b>", "🚀ä", [("bold", 2, 1)]),
        ("<b>a<i>b</i></b>", "ab", [("bold", 0, 2), ("italic", 1, 1)]),
        ("<i><b>ab</b></i>", "ab", [("bold", 0, 2), ("italic", 0, 2)]),
        ("<b>a</b><b>b</b>", "ab", [("bold", 0, 2)]),
        ("<B>a</>", "a", [("bold", 0, 1)]),
        ("<b></b>a", "a", []),
        ("1 &lt; 2 &amp;&#38;&#x26; &quot;&nbsp;", '1 < 2 &&& "&nbsp;', []),
        ("&#128640;<u>x</u>", "🚀x", [("underline", 2, 1)]),
        ("<b>&#60</b>", "<", [("bold", 0, 1)]),
        ("a > b & c", "a > b & c", []),
        ("<code><b>a</b></code>", "a", [("code", 0, 1)]),
        ("<pre><code class='language-py'>a</code></pre>", "a", [("pre", 0, 1)]),
        ("<tg-spoiler>a</tg-spoiler><span class=tg-spoiler>b</span>", "ab", [("spoiler", 0, 2)]),
        ("<blockquote expandable>a</blockquote>", "a", [("expandable_blockquote", 0, 1)]),
        ("<blockquote>a\nb</blockquote>", "a\nb", [("blockquote", 0, 3)]),
        ("  <b> a </b>  ", "a", [("bold", 0, 1)]),
        ("<del>a</del><strike>b</strike><s>c</s>", "abc", [("strikethrough", 0, 3)]),
        ("\u202eabc\r\n\tx", "abc\n x", []),
    ],
)
def test_html_becomes_plain_text_and_entities(
    text: str, plain: str, marks: list[tuple[str, int, int]]
) -> None:
    got, entities = read(text)
    if text.startswith("  <b>"):
        # The server trims the text, never the inside of a leading entity.
        assert (got, short(entities)) == (" a", [("bold", 0, 2)])
        return
    assert (got, short(entities)) == (plain, marks)


def test_details_of_entities_are_kept() -> None:
    _, (pre,) = read('<pre><code class="language-python">x</code></pre>')
    assert pre["language"] == "python"
    _, (link,) = read('<a href="https://example.org/?a=1&amp;b=2">x</a>')
    assert link["url"] == "https://example.org/?a=1&b=2"
    _, (bare,) = read("<a href='example.org'>x</a>")
    assert bare["url"] == "http://example.org/"
    _, (user,) = read('<a href="tg://user?id=42">x</a>')
    assert (user["type"], user["user_id"]) == ("text_mention", 42)
    assert read('<a href="javascript:alert(1)">x</a>') == ("x", [])
    assert read('<a href="http://localhost/">x</a>') == ("x", [])
    _, (emoji,) = read('<tg-emoji emoji-id="5368324170671202286">👍</tg-emoji>')
    assert emoji["custom_emoji_id"] == "5368324170671202286"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("<b>a", 'Can\'t find end tag corresponding to start tag "b"'),
        ("ä<x>a</x>", 'Unsupported start tag "x" at byte offset 2'),
        ("a < b", 'Unsupported start tag "" at byte offset 2'),
        ("🚀</b>", "Unexpected end tag at byte offset 4"),
        ("<b>a</i>", 'Unmatched end tag at byte offset 4, expected "</b>", found "</i>"'),
        ("<b>a</b", "Unclosed end tag at byte offset 4"),
        ("<b", "Unclosed start tag at byte offset 0"),
        ("<a href", 'Unclosed start tag "a" at byte offset 0'),
        ("<a href=", 'Unclosed start tag "a" at byte offset 0'),
        ("<a href='x", "Unclosed start tag at byte offset 0"),
        ("<a href=x/y>a</a>", "Unexpected end of name token at byte offset 8"),
        ("<b />a</b>", 'Empty attribute name in the tag "b" at byte offset 0'),
        ("<span>a</span>", 'Tag "span" must have class "tg-spoiler" at byte offset 0'),
        ("<tg-emoji>a</tg-emoji>", "Invalid custom emoji identifier specified"),
        (
            "&#xD800;",
            (
                "Text contains invalid Unicode characters after decoding HTML entities, check for "
                "unmatched surrogate code units"
            ),
        ),
    ],
)
def test_html_that_cannot_be_read_is_refused_in_telegrams_words(text: str, words: str) -> None:
    assert refusal(lambda given_text: HtmlReader(given_text).read(), text) == words


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"])))
def test_escaped_text_is_read_back_exactly(text: str) -> None:
    plain, entities = HtmlReader(html.escape(text, quote=False)).read()
    assert plain == text
    assert entities == []


@given(st.text(alphabet="<>/&;#x=\"' ab-\x00🚀äE0"))
def test_any_text_is_read_or_refused_and_never_breaks(text: str) -> None:
    for reader in (HtmlReader(text).read, MarkdownV2Reader(text).read):
        with contextlib.suppress(ApiRefusal):
            plain, entities = reader()
            assert all(0 <= raw.offset < raw.end <= units(plain) for raw in entities)


pieces = st.deferred(
    lambda: st.one_of(
        st.text(alphabet="abc 🚀ä\n", max_size=5).map(lambda text: (html.escape(text), text)),
        st.tuples(st.sampled_from(["b", "i", "u", "s", "code", "pre", "blockquote"]), trees).map(
            lambda made: (f"<{made[0]}>{made[1][0]}</{made[0]}>", made[1][1])
        ),
    )
)
trees: st.SearchStrategy[tuple[str, str]] = st.lists(pieces, max_size=4).map(
    lambda parts: ("".join(part[0] for part in parts), "".join(part[1] for part in parts))
)


@given(trees)
def test_entities_of_well_formed_html_nest_and_stay_inside(tree: tuple[str, str]) -> None:
    marked, expected = tree
    plain, _ = HtmlReader(marked).read()
    assert plain == expected
    text, entities = read(marked)
    spans = [(mark["offset"], mark["offset"] + mark["length"], mark["type"]) for mark in entities]
    assert all(0 <= start < stop <= units(text) for start, stop, _ in spans)
    assert spans == sorted(spans, key=lambda span: (span[0], -span[1])) or len(spans) < 2
    for start, stop, kind in spans:
        for other_start, other_stop, other in spans:
            crossing = start < other_start < stop < other_stop
            assert not crossing, (kind, other)
            if kind in {"code", "pre"} and other in {"bold", "italic", "underline"}:
                assert (
                    other_stop <= start
                    or other_start >= stop
                    or (other_start <= start and stop <= other_stop)
                )


def test_the_table_of_tags_is_the_documented_one() -> None:
    assert set(TAGS) == {
        "a",
        "b",
        "blockquote",
        "code",
        "del",
        "em",
        "i",
        "ins",
        "pre",
        "s",
        "span",
        "strike",
        "strong",
        "tg-emoji",
        "tg-spoiler",
        "u",
    }


@pytest.mark.parametrize(
    ("text", "plain", "marks"),
    [
        ("*a* _b_ __c__ ~d~ ||e|| `f`", "a b c d e f", 6),
        ("```py\nx\n```", "x", 1),
        ("[a](https://example.org/\\))", "a", 1),
        (">a\n>b||\nc", "a\nb\nc", 1),
        ("\\*a\\.", "*a.", 0),
    ],
)
def test_markdown_v2_becomes_entities(text: str, plain: str, marks: int) -> None:
    got, entities = settle(*MarkdownV2Reader(text).read())
    assert (got, len(entities)) == (plain, marks)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a.", "Character '.' is reserved and must be escaped with the preceding '\\'"),
        ("ä*b", "Can't find end of Bold entity at byte offset 2"),
        ("[a](b", "Can't find end of a URL at byte offset 4"),
        ("```py\nx", "Can't find end of PreCode entity at byte offset 0"),
    ],
)
def test_markdown_v2_is_refused_in_telegrams_words(text: str, words: str) -> None:
    assert refusal(lambda given_text: MarkdownV2Reader(given_text).read(), text) == words


def test_the_old_markdown_has_four_marks() -> None:
    plain, entities = settle(*read_markdown("*a* _b_ `c` [d](example.org) \\*"))
    assert plain == "a b c d *"
    assert [mark["type"] for mark in entities] == ["bold", "italic", "code", "text_link"]
    words = refusal(read_markdown, "ä_b")
    assert words == "Can't find end of the entity starting at byte offset 2"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("/start", [("bot_command", 0, 6)]),
        ("/start@Some_bot now", [("bot_command", 0, 15)]),
        ("please /pause", [("bot_command", 7, 6)]),
        ("a/b //c /d/e", []),
        ("🚀 @ana_lima", [("mention", 3, 9)]),
        ("see https://example.org/a?b=c.", [("url", 4, 25)]),
        ("mail ana@example.org", [("email", 5, 15)]),
        ("#launch $ACME", [("hashtag", 0, 7), ("cashtag", 8, 5)]),
    ],
)
def test_unmarked_entities_are_found(text: str, found: list[tuple[str, int, int]]) -> None:
    assert sorted((raw.offset, raw.kind, raw.length) for raw in find(text)) == [
        (offset, kind, length) for kind, offset, length in found
    ]


def test_what_is_found_inside_code_is_left_alone() -> None:
    _, entities = settle("/a /b", [Raw(0, 2, {"type": "code"})])
    assert short(entities) == [("code", 0, 2), ("bot_command", 3, 2)]


@pytest.mark.parametrize(
    ("url", "kept"),
    [
        ("example.org", "http://example.org/"),
        ("HTTPS://example.org/X", "https://example.org/X"),
        ("tg://resolve?domain=x", "tg://resolve?domain=x"),
        ("http://127.0.0.1:8081/x", "http://127.0.0.1:8081/x"),
        ("http://localhost", ""),
        ("file:///etc/passwd", ""),
        ("", ""),
    ],
)
def test_links_are_kept_as_the_server_writes_them(url: str, kept: str) -> None:
    assert checked_link(url) == kept
