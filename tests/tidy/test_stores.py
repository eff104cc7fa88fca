"""Stores hold no rules: no state of any lifecycle is named under `runtime/stores`.

`collections.py` declares names and queries, some of which are called like a state, so it is left
out; it holds no function that decides anything.
"""

from __future__ import annotations

import ast

from tests.tidy.tree import Source, report, sample, sources

DECLARATIONS = "runtime/stores/collections.py"


def states() -> set[str]:
    """The names of all states, from the transition tables of the domain."""
    found: set[str] = set()
    for source in sources("runtime/domain"):
        for node in source.tree.body:
            if (
                isinstance(node, ast.AnnAssign)
                and isinstance(node.target, ast.Name)
                and node.target.id.endswith("TRANSITIONS")
                and isinstance(node.value, ast.Dict)
            ):
                found |= {str(ast.literal_eval(key)) for key in node.value.keys if key}
    return found


def decisions(source: Source, names: set[str]) -> list[str]:
    """Where a file compares something with a state, or matches on one."""
    return [
        f"{source.path}:{constant.lineno}: {constant.value!r} is a state: the domain decides on it"
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Compare | ast.MatchValue)
        for constant in ast.walk(node)
        if isinstance(constant, ast.Constant) and constant.value in names
    ]


def test_a_store_that_decides_is_found() -> None:
    text = "def save(record):\n    if record.state == 'claimed': raise ValueError"
    assert decisions(sample(text), {"claimed"})
    assert decisions(sample("match x:\n    case 'claimed': ..."), {"claimed"})
    assert decisions(sample("x = state in {'claimed', 'pending'}"), {"claimed"})
    assert not decisions(sample("'claimed records are stored'\ncolumn = 'claimed'"), {"claimed"})


def test_no_store_names_a_state() -> None:
    names = states()
    assert {"pending", "claimed", "dispatched", "unknown"} <= names
    scanned = [source for source in sources("runtime/stores") if source.path != DECLARATIONS]
    assert scanned
    problems = [line for source in scanned for line in decisions(source, names)]
    assert not problems, report(problems)
