"""The page of lifecycles is what the transition tables in the code say."""

from __future__ import annotations

from tests.tidy.tree import ROOT


def test_the_states_page_is_generated_from_the_tables() -> None:
    from runtime.domain import states

    written = (ROOT / "docs/states.md").read_text(encoding="utf-8")
    assert written == states.render(), "write docs/states.md again, see CONTRIBUTING.md"
