"""What is written beside the code: docstrings, reasons for exceptions, nothing left undone."""

from __future__ import annotations

import ast
import io
import re
import tokenize

import pytest

from tests.tidy.tree import Source, report, sample, sources, texts

DOCSTRING_WORDS_MIN = 5
# A suppression comment, then whatever follows it on the line, which must be the reason.
SUPPRESSION = re.compile(
    r"#\s*(?:(?:ruff:\s*|flake8:\s*)?noqa(?::\s*[A-Z]+[0-9]+(?:,\s*[A-Z]+[0-9]+)*)?"
    r"|type:\s*ignore(?:\[[^\]]*\])?|pyright:\s*ignore(?:\[[^\]]*\])?"
    r"|pragma:\s*no (?:cover|branch)|nosec|fmt:\s*(?:off|skip)|mypy:\s*[a-z-]+)"
    r"(?P<rest>.*)$"
)
REASON = re.compile(r"^\s*(?:-|#)\s*\S+(?:\s+\S+)+")
SKIPS = frozenset({"skip", "skipif", "xfail", "importorskip"})
UNDONE = re.compile(
    r"\b(" + "|".join(("TO" + "DO", "FIX" + "ME", "XX" + "X", "HA" + "CK")) + r")\b"
)
# The project stands alone: it names no place of the machine on which it was written.
ELSEWHERE = re.compile(r"(?<![\w.-])(/wo" + r"rk/|\.\./sha" + r"red\b|/ro" + r"ot/|/ho" + r"me/\w)")


def undocumented(source: Source) -> str | None:
    """Why a module's docstring does not say what the module is for, or None."""
    docstring = ast.get_docstring(source.tree)
    if docstring is None:
        return f"{source.path}: no module docstring"
    if len(docstring.split()) < DOCSTRING_WORDS_MIN:
        return f"{source.path}: a docstring of {len(docstring.split())} words says nothing"
    return None


def unreasoned(source: Source) -> list[str]:
    """Each suppression comment without a reason on its line, read from the tokens."""
    problems = []
    for token in tokenize.generate_tokens(io.StringIO(source.text).readline):
        if token.type != tokenize.COMMENT:
            continue
        match = SUPPRESSION.search(token.string)
        if match and not REASON.match(match["rest"]):
            problems.append(f"{source.path}:{token.start[0]}: {token.string}: say why")
    return problems


def silent_skips(source: Source) -> list[str]:
    """Each skip or expected failure that does not say why."""
    problems = []
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            named, call = node.func, node
            given = {word.arg: word.value for word in call.keywords}
            reason = given.get("reason", given.get("msg"))
            plain = named.attr in {"skip", "xfail"} and bool(call.args)
            if named.attr in SKIPS and _is_pytest(named) and not plain and _empty(reason):
                problems.append(f"{source.path}:{node.lineno}: {named.attr} without a reason")
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            problems += [
                f"{source.path}:{mark.lineno}: {mark.attr} without a reason"
                for mark in node.decorator_list
                if isinstance(mark, ast.Attribute) and mark.attr in SKIPS and _is_pytest(mark)
            ]
    return problems


def _is_pytest(node: ast.expr) -> bool:
    return ast.unparse(node).startswith("pytest.")


def _empty(reason: ast.expr | None) -> bool:
    return reason is None or (isinstance(reason, ast.Constant) and not str(reason.value).strip())


def test_the_docstring_rule_finds_silence() -> None:
    assert undocumented(sample("x = 1"))
    assert undocumented(sample('"""Helpers."""'))
    assert undocumented(sample('"""Claims operations under a bounded lease."""')) is None


@pytest.mark.parametrize(
    ("line", "accepted"),
    [
        ("x = 1  # noqa: S603", False),
        ("x = 1  # noqa", False),
        ("x = 1  # noqa: S603, S607", False),
        ("x = 1  # noqa: S603 - ok", False),
        ("x = 1  # noqa: S603, S607 - our own fixed command", True),
        ("x = 1  # type: ignore[arg-type]", False),
        ("x = 1  # type: ignore[arg-type]  # the stub is wrong", True),
        ("x = 1  # pragma: no cover", False),
        ("x = 1  # pragma: no cover - only on Windows", True),
        ("# ruff: noqa: INP001", False),
        ("# ruff: noqa: INP001 - a script, not a package", True),
        ("x = '# noqa: S603'", True),
    ],
)
def test_a_suppression_says_why(line: str, *, accepted: bool) -> None:
    assert (unreasoned(sample(f"{line}\n")) == []) is accepted


@pytest.mark.parametrize(
    ("text", "accepted"),
    [
        ("import pytest\n@pytest.mark.skip\ndef test(): ...", False),
        ("import pytest\n@pytest.mark.skipif(True)\ndef test(): ...", False),
        ("import pytest\n@pytest.mark.skipif(True, reason='')\ndef test(): ...", False),
        ("import pytest\n@pytest.mark.skipif(True, reason='no Chromium')\ndef test(): ...", True),
        ("import pytest\npytest.skip()", False),
        ("import pytest\npytest.skip('no Chromium')", True),
        ("shelf.skip()", True),
    ],
)
def test_a_skip_says_why(text: str, *, accepted: bool) -> None:
    assert (silent_skips(sample(text)) == []) is accepted


def test_every_module_says_what_it_is_for() -> None:
    problems = [problem for source in sources() if (problem := undocumented(source))]
    assert not problems, report(problems)


def test_every_test_file_says_what_it_holds() -> None:
    problems = [problem for source in sources("tests") if (problem := undocumented(source))]
    assert not problems, report(problems)


def test_every_exception_to_a_rule_has_its_reason() -> None:
    scanned = [*sources(), *sources("tests", ".ci")]
    problems = [line for source in scanned for line in [*unreasoned(source), *silent_skips(source)]]
    assert not problems, report(problems)


def test_nothing_is_left_for_later() -> None:
    assert UNDONE.search("x = 1  # TO" + "DO: later")
    problems = [
        f"{path}:{number}: {line.strip()}"
        for path, text in texts()
        for number, line in enumerate(text.splitlines(), 1)
        if UNDONE.search(line)
    ]
    assert not problems, report(problems)


def test_the_project_names_no_place_outside_itself() -> None:
    assert ELSEWHERE.search("see /wo" + "rk/notes")
    assert not ELSEWHERE.search("https://example.org/wo" + "rk/notes")
    problems = [
        f"{path}:{number}: {line.strip()}"
        for path, text in texts()
        for number, line in enumerate(text.splitlines(), 1)
        if ELSEWHERE.search(line)
    ]
    assert not problems, report(problems)
