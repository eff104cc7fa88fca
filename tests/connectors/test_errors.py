"""`connectors/errors.py`, source part: sentences that an operator can act on."""

from __future__ import annotations

import pytest

from connectors import errors
from connectors.errors import UNNAMED, SourceError, source_errors
from runtime.errors import BadInput

FIELDS: dict[str, object] = {
    "name": "a.pdf",
    "found": 2,
    "limit": 1,
    "unit": "bytes",
    "looks_like": "a PNG picture",
    "declared": "",
    "supported": "plain text",
    "format": "a PDF document",
    "pages": 0,
    "encoding": "UTF-8",
    "offset": 3,
    "what": "unpacked bytes",
    "cause": "ParseError",
    "link": "http://a.test/",
    "reason": "it is private",
}


def test_the_tree_in_the_docstring_names_every_source_error() -> None:
    found = source_errors()
    assert len(found) > 10
    for name, cls in found.items():
        assert issubclass(cls, BadInput)
        assert f"── {name}" in (errors.__doc__ or "")


@pytest.mark.parametrize("cls", source_errors().values(), ids=lambda cls: cls.__name__)
def test_each_sentence_is_made_of_its_fields_and_ends_with_what_to_do(
    cls: type[SourceError],
) -> None:
    sentence = cls(**FIELDS).sentence
    assert "{" not in sentence
    assert "“a.pdf”" in sentence or "http://a.test/" in sentence
    assert sentence.endswith(f"{cls.remedy}.")
    assert cls.__name__ not in sentence


def test_a_source_without_a_name_is_called_the_source() -> None:
    assert errors.EmptySource(name=UNNAMED).sentence.startswith("The source is empty; ")
    assert errors.EmptySource().sentence.startswith("The source is empty; ")


def test_a_file_name_with_braces_is_shown_as_it_is() -> None:
    assert "“{limit}”" in errors.EmptySource(name="{limit}").sentence
