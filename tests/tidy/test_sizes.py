"""Ceilings: a file of at most 400 lines, a function of at most 50. No list of exceptions.

A function's length is from its `def` line to its last line, without its docstring and decorators.
Five positional parameters and the line width are ruff's to check.
"""

from __future__ import annotations

import ast

from tests.tidy.tree import ROOT, Source, files, functions, report, sample, sources

FILE_LINES_MAX = 400
FUNCTION_LINES_MAX = 50
HAND_WRITTEN = frozenset({".py", ".html", ".css", ".js", ".sh"})


def length(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of a function, docstring and decorators not counted."""
    lines = (function.end_lineno or function.lineno) - function.lineno + 1
    first = function.body[0]
    if ast.get_docstring(function) is not None:
        lines -= (first.end_lineno or first.lineno) - first.lineno + 1
    return lines


def long_functions(source: Source) -> list[str]:
    """Each function above the ceiling."""
    return [
        f"{source.path}:{function.lineno}: {function.name} has {length(function)} lines"
        for function in functions(source)
        if length(function) > FUNCTION_LINES_MAX
    ]


def test_the_ceiling_is_exact() -> None:
    for lines, accepted in ((49, True), (50, True), (51, False)):
        body = "\n".join(["    x = 1"] * (lines - 1))
        assert (long_functions(sample(f"def f():\n{body}")) == []) is accepted
    documented = 'def f():\n    """One.\n\n    Two.\n    """\n' + "    x = 1\n" * 49
    assert long_functions(sample(documented)) == []
    assert long_functions(sample(documented + "    x = 1\n"))
    assert long_functions(sample("class A:\n  async def f(self):\n" + "    x = 1\n" * 50))


def test_no_function_is_longer_than_fifty_lines() -> None:
    scanned = [*sources(), *sources("tests", ".ci")]
    assert any(functions(source) for source in scanned)
    problems = [line for source in scanned for line in long_functions(source)]
    assert not problems, report(problems)


def test_no_file_is_longer_than_four_hundred_lines() -> None:
    scanned = [path for path in files() if path.suffix in HAND_WRITTEN]
    assert scanned
    counted = [(path, len(path.read_text(encoding="utf-8").splitlines())) for path in scanned]
    problems = [
        f"{path.relative_to(ROOT)}: {lines} lines"
        for path, lines in counted
        if lines > FILE_LINES_MAX
    ]
    assert not problems, report(problems)
