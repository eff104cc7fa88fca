"""Entities given by the caller: which count, and the words for those that lie outside."""

from __future__ import annotations

import pytest

from bot.sandbox.errors import ApiRefusal
from bot.sandbox.markup_given import read_given


def test_marks_count_and_found_kinds_are_ignored() -> None:
    given = [
        {"type": "bold", "offset": 0, "length": 2},
        {"type": "bot_command", "offset": 0, "length": 2},
        {"type": "pre", "offset": 2, "length": 1, "language": "py"},
        {"type": "text_link", "offset": 2, "length": 1, "url": "javascript:x"},
        {"type": "italic", "offset": 0, "length": 0},
    ]
    assert [raw.data for raw in read_given("🚀a", given)] == [
        {"type": "bold"},
        {"type": "pre", "language": "py"},
    ]
    assert read_given("a", {"no": "list"}) == []


@pytest.mark.parametrize(
    ("entity", "words"),
    [
        ({"type": "bold", "length": 1}, "can't parse MessageEntity: Can't find field \"offset\""),
        (
            {"type": "bold", "offset": "0", "length": 1},
            'can\'t parse MessageEntity: Field "offset" must be of type Number',
        ),
        ("x", "can't parse MessageEntity: expected an Object"),
        (
            {"type": "bold", "offset": -1, "length": 1},
            "receive an entity with incorrect offset -1",
        ),
        (
            {"type": "bold", "offset": 3, "length": 1},
            "entity begins after the end of the text at UTF-16 offset 3",
        ),
        (
            {"type": "bold", "offset": 0, "length": 4},
            "entity beginning at UTF-16 offset 0 ends after the end of the text at UTF-16 offset 4",
        ),
        (
            {"type": "bold", "offset": 1, "length": 2},
            "entity begins in a middle of a UTF-16 symbol at byte offset 4",
        ),
        (
            {"type": "bold", "offset": 0, "length": 1},
            (
                "entity beginning at UTF-16 offset 0 ends in a middle of a UTF-16 symbol "
                "at byte offset 4"
            ),
        ),
    ],
)
def test_entities_outside_the_text_are_refused(entity: object, words: str) -> None:
    with pytest.raises(ApiRefusal) as refused:
        read_given("🚀a", [entity])
    assert refused.value.description == f"Bad Request: {words}"
