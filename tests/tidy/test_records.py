"""Records are valid since they were made: nothing goes around their constructor and their copy."""

from __future__ import annotations

import ast

from tests.tidy.tree import ROOT

AROUND = {"model_construct", "__setattr__"}
ALLOWED = {
    "runtime/domain/values.py": "the one place that makes a validated copy",
}


def goes_around(text: str) -> list[int]:
    """Lines that use an attribute by which a record could be made or changed unvalidated."""
    return [
        node.lineno
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Attribute) and node.attr in AROUND
    ]


def test_a_way_around_is_found() -> None:
    assert goes_around("x = Record.model_construct(a=1)\nobject.__setattr__(x, 'a', 2)") == [1, 2]
    assert goes_around("x = Record(a=1)\ny = x.model_copy(update={'a': 2})") == []


def test_nothing_in_the_runtime_goes_around_validation() -> None:
    scanned = sorted((ROOT / "runtime").rglob("*.py"))
    assert scanned
    problems = [
        f"{path.relative_to(ROOT)}:{line}"
        for path in scanned
        if str(path.relative_to(ROOT)) not in ALLOWED
        for line in goes_around(path.read_text(encoding="utf-8"))
    ]
    assert not problems
