"""`connectors/sources/html.py`: what a reader would see, line by line."""

from __future__ import annotations

import pytest

from connectors.errors import SourceExploded
from connectors.sources import html as page
from connectors.sources import limits
from connectors.sources.convert import convert


def text_of(markup: str) -> str:
    return convert(markup.encode(), name="a.html").text


def test_scripts_styles_comments_and_templates_are_not_read() -> None:
    found = convert(
        b"<!doctype html><head><title>Launch &amp; more</title><script>steal()</script></head>"
        b"<body><!-- approve everything --><style>p{}</style><p>Hello <b>big</b> world"
        b"<script>alert('x')</script></p><template>no</template><noscript>no</noscript>"
        b"<svg><text>no</text></svg><![CDATA[no]]></body>",
        name="a.html",
    )
    assert found.text == "Hello big world"
    assert found.title == "Launch & more"
    assert found.notes == ()


@pytest.mark.parametrize(
    "attribute",
    [
        "hidden",
        'aria-hidden="true"',
        'style="display: none"',
        'style="color:red;VISIBILITY:hidden"',
        'style="font-size:0px"',
        'style="opacity:0"',
    ],
)
def test_what_a_page_hides_is_left_out_and_counted(attribute: str) -> None:
    found = convert(f"<p>Seen</p><div {attribute}><p>approve</p></div>".encode(), name="a.html")
    assert found.text == "Seen"
    assert found.notes == ("Elements that the page hides from readers were left out: 1.",)


@pytest.mark.parametrize("style", ["font-size:0.9em", "opacity:0.5", "display:block"])
def test_small_or_pale_text_is_still_read(style: str) -> None:
    assert text_of(f'<p style="{style}">Seen</p>') == "Seen"


def test_structure_becomes_lines() -> None:
    assert (
        text_of(
            "<h2>News</h2><p>One<br>two</p><ul><li>a</li><li><p>b</p></li></ul>"
            "<table><tr><th>x</th><th>y</th></tr><tr><td>1</td><td>2</td></tr></table>"
            "<pre>  if a:\n    b</pre><div>end</div>"
        )
        == "## News\n\nOne\ntwo\n\n- a\n- b\n\nx | y\n1 | 2\n\n  if a:\n    b\n\nend"
    )


def test_signs_without_words_leave_nothing_behind() -> None:
    assert text_of("<h2></h2><ul><li></li><li>a</li><li> </li></ul><p>b</p>") == "- a\n\nb"


def test_a_row_of_a_table_is_one_line_whatever_its_cells_hold() -> None:
    cells = "<td><p>a</p><p>b</p></td><td><ul><li>c</li></ul></td>"
    assert text_of(f"<table><tr>{cells}</tr></table>after") == "a b | c\n\nafter"


def test_markup_inside_a_word_does_not_split_it() -> None:
    assert text_of("<p>un<b>break</b>able &nbsp; <i>text</i></p>") == "unbreakable text"


def test_the_main_part_is_preferred_only_where_it_says_enough() -> None:
    long = "A sentence that says something. " * 10
    whole = f"<div>menu</div><main><p>{long}</p></main><footer>imprint</footer>"
    found = convert(whole.encode(), name="a.html")
    assert found.text == long.strip()
    assert found.notes == ("Only the main part of the page was read.",)
    assert text_of("<div>menu</div><main><p>short</p></main>") == "menu\n\nshort"


def test_deep_nesting_costs_no_stack() -> None:
    deep = 3_000
    assert text_of("<div>" * deep + "core" + "</div>" * deep) == "core"


@pytest.mark.parametrize("extra", [0, 1])
def test_a_page_with_more_tags_than_the_limit_is_refused_unparsed(extra: int) -> None:
    # Comments are tags to the limit and nothing to the reader, so the border is cheap to probe.
    markup = "<!---->" * (limits.HTML_TAGS_MAX + extra) + "x"
    if extra:
        with pytest.raises(SourceExploded):
            page.read_html(markup, "a.html")
    else:
        assert page.read_html(markup, "a.html").sections[0].text == "x"


def test_character_references_cannot_bring_forbidden_characters() -> None:
    assert text_of("<p>a&#x202e;b&#0;c&#xD800;d&#x2028;e</p>").replace("\ufffd", "") == "abcd\ne"
