"""`connectors/sources/links.py`: what a link must look like."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.errors import LinkRefused
from connectors.sources.limits import LINK_CHARS_MAX
from connectors.sources.links import link_name, parse_link


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        ("ftp://example.com/", "only http and https"),
        ("file:///etc/passwd", "only http and https"),
        ("javascript:alert(1)", "only http and https"),
        ("example.com/page", "only http and https"),
        ("//example.com/", "only http and https"),
        ("http://", "not a valid name"),
        ("http:///path", "not a valid name"),
        ("http://user@example.com/", "user name"),
        ("http://user:pass@example.com/", "user name"),
        ("http://8.8.8.8@127.0.0.1/", "user name"),
        ("http://example.com:22/", "port 22"),
        ("https://example.com:8443/", "port 8443"),
        ("http://example.com:99999/", "port 99999"),
        ("http://exa mple.com/", "characters"),
        ("http://example.com/\r\nHost: x", "characters"),
        ("http://a.com\\@b.com/", "characters"),
        ("http://2130706433/", "unusual spelling"),
        ("http://0x7f000001/", "unusual spelling"),
        ("http://127.1/", "unusual spelling"),
        ("http://0177.0.0.1/", "not a complete"),
        ("http://127.0.0.0x1/", "unusual spelling"),
        ("http://a..b/", "not a"),
        ("http://" + "a" * 64 + ".com/", "not a"),
        ("http://[fe80::1%25eth0]/", "unusual spelling"),
    ],
)
def test_a_link_that_is_never_followed_says_why(raw: str, reason: str) -> None:
    with pytest.raises(LinkRefused) as refused:
        parse_link(raw)
    assert reason in str(refused.value.fields["reason"])


@pytest.mark.parametrize(
    ("raw", "host", "port", "shown"),
    [
        ("HTTPS://Example.COM/a?token=s#f", "example.com", 443, "https://example.com/a"),
        (" http://example.com ", "example.com", 80, "http://example.com/"),
        ("http://example.com.:80/", "example.com", 80, "http://example.com/"),
        (
            "https://bücher.example/ü",
            "xn--bcher-kva.example",
            443,
            "https://xn--bcher-kva.example/%C3%BC",
        ),
        ("https://example.com:80/", "example.com", 80, "https://example.com:80/"),
        ("http://[2606:4700::1]/", "2606:4700::1", 80, "http://[2606:4700::1]/"),
        ("http://my_host.example/", "my_host.example", 80, "http://my_host.example/"),
    ],
)
def test_a_link_is_normalised_and_shown_without_its_query(
    raw: str, host: str, port: int, shown: str
) -> None:
    link = parse_link(raw)
    assert (link.host, link.port, link.shown) == (host, port, shown)


def test_a_shown_link_is_bounded() -> None:
    assert len(parse_link("http://example.com/" + "a" * 1000).shown) < 120


@pytest.mark.parametrize("extra", [0, 1])
def test_the_limit_in_characters_is_exact(extra: int) -> None:
    start = "http://example.com/"
    raw = start + "a" * (LINK_CHARS_MAX - len(start) + extra)
    if extra:
        with pytest.raises(LinkRefused):
            parse_link(raw)
    else:
        assert parse_link(raw).host == "example.com"


@pytest.mark.parametrize(
    ("raw", "name"),
    [
        ("https://example.com/", "example.com (page)"),
        ("https://example.zip/", "example.zip (page)"),
        ("https://example.com/docs/notes.md?x=1", "notes.md"),
        ("https://example.com/docs/", "docs"),
        ("https://example.com/a%2Fb%E2%80%AE.pdf", "b.pdf"),
    ],
)
def test_a_source_is_named_by_the_end_of_its_path(raw: str, name: str) -> None:
    assert parse_link(raw).file_name == name


@given(st.text(max_size=80) | st.text(max_size=40).map(lambda t: "http://" + t))
def test_no_text_makes_parsing_raise_anything_but_a_refusal(raw: str) -> None:
    with contextlib.suppress(LinkRefused):
        link = parse_link(raw)
        assert "?" not in link.shown
        assert "@" not in link.shown.split("/")[2]


@pytest.mark.parametrize(
    ("link", "name"),
    [
        ("https://example.org/a/b.md?token=hush#part", "https://example.org/a/b.md"),
        ("https://user:hush@example.org/b", "https://example.org/b"),
        ("ftp://example.org/hush", "that link"),
        ("not a link hush", "that link"),
    ],
)
def test_a_link_is_called_by_what_may_be_shown_of_it(link: str, name: str) -> None:
    assert link_name(link) == name
    assert "hush" not in link_name(link)
