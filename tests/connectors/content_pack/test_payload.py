"""The payload: the approval's digest covers everything that goes into the pack. INV-5."""

from __future__ import annotations

import json
from typing import Any

import pytest

from connectors.content_pack.errors import PackRefused
from connectors.content_pack.pack import entries, pack_bytes
from connectors.content_pack.payload import (
    PAYLOAD_CHARS_MAX,
    Origin,
    build_payload,
    plain_link,
    read_payload,
)
from runtime.domain.canonical import canonical_text
from runtime.domain.proposal import Analysis, Draft, Quote, Section
from tests.effects_made import ANA, analysis, command, draft, export
from tests.world import ACME, OTHER

ORIGIN = Origin(ACME, export().job, ())


def test_the_payload_is_canonical_and_reads_back_as_what_it_was_made_from() -> None:
    text = build_payload(draft(), analysis(), ORIGIN)
    payload = read_payload(text)
    assert payload.sections == draft().sections
    assert [quote.id for quote in payload.quotes if quote.cited] == ["F1", "F3"]
    assert canonical_text(payload) == text
    assert build_payload(draft(), analysis(), ORIGIN) == text


def test_each_quote_keeps_its_place_in_the_source() -> None:
    payload = read_payload(build_payload(draft(), analysis(), ORIGIN))
    for packed, quote in zip(payload.quotes, analysis().quotes, strict=True):
        assert (packed.start, packed.end, packed.text) == (quote.start, quote.end, quote.text)


def test_who_approves_and_where_secrets_are_is_not_in_it() -> None:
    text = build_payload(draft(), analysis(), ORIGIN)
    for secret in (ANA, "Ana", "secret", "token", "telegram"):
        assert secret not in text


def changed(path: tuple[str | int, ...], value: object) -> str:
    """The canonical payload of the made export with one value changed."""
    plain: Any = json.loads(export().terms.payload)
    place = plain
    for part in path[:-1]:
        place = place[part]
    place[path[-1]] = value
    return canonical_text(plain)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("title",), "Launch"),
        (("sections", 0, "text"), "Launch is on Monday."),
        (("sections", 1, "heading"), "More"),
        (("quotes", 0, "text"), "Launch is on Friday!"),
        (("quotes", 2, "start"), 44),
        (("quotes", 1, "cited"), True),
        (("source", "name"), "other.md"),
        (("source", "text_sha256"), "f" * 64),
        (("revisions", 0, "digest"), "f" * 64),
        (("job_number",), 18),
        (("brand",), "other"),
    ],
)
def test_whatever_changes_in_a_pack_changes_what_is_approved(
    path: tuple[str | int, ...], value: object
) -> None:
    """INV-5: no byte of a pack escapes the approval's digest."""
    stored = command()
    text = changed(path, value)
    terms = stored.terms.model_copy(update={"payload": text})
    assert terms.digest != stored.terms.digest
    other = stored.model_copy(update={"terms": terms, "terms_digest": terms.digest})
    before = pack_bytes(entries(stored, read_payload(stored.terms.payload)))
    assert pack_bytes(entries(other, read_payload(text))) != before


def test_a_draft_that_names_a_quote_that_is_not_there_is_refused() -> None:
    section = Section(text="Launch is on Friday.", quotes=("F1", "F9"))
    with pytest.raises(PackRefused, match="F9"):
        build_payload(Draft(title="t", sections=(section,)), analysis(), ORIGIN)
    text = changed(("sections", 0, "quotes"), ["F9"])
    with pytest.raises(PackRefused, match="not there"):
        read_payload(text)


def test_a_source_that_was_never_read_makes_no_pack() -> None:
    job = export().job
    unread = job.model_copy(update={"source": job.source.model_copy(update={"text_digest": None})})
    with pytest.raises(PackRefused, match="never read"):
        build_payload(draft(), analysis(), Origin(ACME, unread, ()))


def long_analysis() -> Analysis:
    quotes = tuple(
        Quote(id=f"F{index}", text=chr(97 + index % 26) * 2_000, start=index * 2_000)
        for index in range(1, 81)
    )
    return Analysis(title="Long", topics=(), summary=("F1",), quotes=quotes)


def sized(chars: int, quotes: tuple[str, ...] = ("F1",)) -> Draft:
    """A draft of about `chars` characters in full sections."""
    whole, rest = divmod(chars, 8_000)
    texts = ["x" * 8_000] * whole + (["x" * rest] if rest else [])
    return Draft(title="t", sections=tuple(Section(text=text, quotes=quotes) for text in texts))


def test_uncited_quotes_are_left_out_of_a_payload_that_would_be_too_large_and_counted() -> None:
    payload = read_payload(build_payload(sized(80_000), long_analysis(), ORIGIN))
    assert [quote.id for quote in payload.quotes] == ["F1"]
    assert payload.quotes_omitted == 79


def test_a_draft_that_does_not_fit_is_refused_in_words() -> None:
    every = tuple(f"F{index}" for index in range(1, 21))
    with pytest.raises(PackRefused, match="at most 190,000 fit"):
        build_payload(sized(160_000, every), long_analysis(), ORIGIN)


@pytest.mark.parametrize(("over", "accepted"), [(-1, True), (0, True), (1, False)])
def test_the_limit_of_a_payload_is_exact(over: int, *, accepted: bool) -> None:
    cited = long_analysis().model_copy(update={"quotes": long_analysis().quotes[:15]})
    every = tuple(f"F{index}" for index in range(1, 16))
    short = len(build_payload(sized(152_000 + 1, every), cited, ORIGIN))
    fitting = sized(152_000 + 1 + PAYLOAD_CHARS_MAX - short + over, every)
    if accepted:
        assert len(build_payload(fitting, cited, ORIGIN)) == PAYLOAD_CHARS_MAX + over
    else:
        with pytest.raises(PackRefused):
            build_payload(fitting, cited, ORIGIN)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "[1]",
        '{"format":"harmonia-pack/2"}',
        export().terms.payload + " ",
        export().terms.payload.replace('"brand":"main"', '"brand":"../main"'),
        export().terms.payload.replace("{", '{"extra":1,', 1),
    ],
)
def test_anything_but_the_canonical_payload_is_refused_without_quoting_it(text: str) -> None:
    with pytest.raises(PackRefused) as caught:
        read_payload(text)
    assert "Launch" not in caught.value.sentence


def test_the_tenant_and_the_revisions_are_part_of_what_is_approved() -> None:
    one = build_payload(draft(), analysis(), ORIGIN)
    heads = tuple(export().job.heads.values())
    assert build_payload(draft(), analysis(), Origin(OTHER, export().job, ())) != one
    assert build_payload(draft(), analysis(), Origin(ACME, export().job, heads)) != one


@pytest.mark.parametrize(
    ("link", "shown"),
    [
        ("https://example.org/a/b", "https://example.org/a/b"),
        ("https://u:p@example.org/a?key=1#x", "https://example.org/a"),
        ("https://example.org?key=1", "https://example.org"),
        ("https://a@b@example.org/", "https://example.org/"),
        ("https:///path", ""),
        ("mailto:ana@example.org", ""),
        ("", ""),
    ],
)
def test_a_link_is_given_away_without_what_may_be_secret(link: str, shown: str) -> None:
    assert plain_link(link) == shown
