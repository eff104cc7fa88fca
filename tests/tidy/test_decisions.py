"""Decision records are numbered without gaps, listed in their index, and each has a state."""

from __future__ import annotations

import re

from tests.tidy.tree import ROOT

FOLDER = ROOT / "docs/decisions"
STATES = ("holds", "replaced by", "proposed")


def test_records_are_numbered_listed_and_have_a_state() -> None:
    index = (FOLDER / "README.md").read_text(encoding="utf-8")
    records = sorted(FOLDER.glob("[0-9]*.md"))
    assert records
    assert [record.name[:4] for record in records] == [
        f"{number:04}" for number in range(1, len(records) + 1)
    ]
    for record in records:
        text = record.read_text(encoding="utf-8")
        assert text.startswith(f"# {record.name[:4]}: "), record.name
        state = re.search(r"^State: (.+)\.$", text, re.MULTILINE)
        assert state, f"{record.name} says no state"
        assert state[1].startswith(STATES), record.name
        assert f"({record.name})" in index, f"{record.name} is not in the index"


def test_the_changelog_begins_with_what_is_unreleased() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.findall(r"^## (.+)$", text, re.MULTILINE)[0] == "Unreleased"
