"""The layers hold: runtime below connectors below bot, and a domain that only decides.

`.importlinter` states the package contracts (`make check` runs it too); the domain's rules are an
allow-list, which import-linter cannot express, so they stand here.
"""

from __future__ import annotations

import ast
import sys

import pytest
from importlinter.cli import EXIT_STATUS_SUCCESS, lint_imports

from tests.tidy.names import references
from tests.tidy.tree import ROOT, Source, report, sample, sources

DOMAIN = "runtime/domain/"
# Beyond the standard library, pydantic and itself. (module, import) -> why.
DOMAIN_MAY = {
    ("*", "runtime.errors"): "a decision that finds an impossible state raises the project's fault",
    ("runtime/domain/canonical.py", "orjson"): "writes RFC 8785 bytes at a hundredth of the cost",
    ("runtime/domain/values.py", "pydantic_core"): "pydantic's own words for how a time is read",
}
# Parts of the standard library that reach outside the process: never in a pure decision.
IMPURE = frozenset(
    {
        "asyncio",
        "concurrent",
        "contextvars",
        "http",
        "io",
        "logging",
        "multiprocessing",
        "os",
        "pathlib",
        "random",
        "secrets",
        "selectors",
        "shutil",
        "signal",
        "socket",
        "sqlite3",
        "subprocess",
        "tempfile",
        "threading",
        "time",
        "urllib",
    }
)


def imports(source: Source) -> list[tuple[int, str]]:
    """(line, dotted module) of every import statement of a file."""
    found: list[tuple[int, str]] = []
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Import):
            found += [(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            found.append((node.lineno, node.module or "."))
    return found


def domain_may(path: str, module: str) -> bool:
    """Whether a file of the domain may import a module."""
    root = module.partition(".")[0]
    if root == "pydantic" or module == "runtime.domain" or module.startswith("runtime.domain."):
        return True
    if ("*", module) in DOMAIN_MAY or (path, module) in DOMAIN_MAY:
        return True
    return root in sys.stdlib_module_names and root not in IMPURE


def impurities(source: Source) -> list[str]:
    """What makes a file of the domain more than a decision."""
    problems = [
        f"{source.path}:{line}: imports {module}"
        for line, module in imports(source)
        if not domain_may(source.path, module)
    ]
    waits = (ast.AsyncFunctionDef, ast.AsyncFor, ast.AsyncWith, ast.Await)
    problems += [
        f"{source.path}:{node.lineno}: a pure decision does not wait"
        for node in ast.walk(source.tree)
        if isinstance(node, waits)
    ]
    problems += [
        f"{source.path}:{node.lineno}: keeps module state with global"
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Global | ast.Nonlocal)
    ]
    problems += [
        f"{source.path}:{node.lineno}: {node.func.id}() reaches outside"
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in {"open", "print", "input", "exec", "eval", "__import__"}
    ]
    return problems


@pytest.mark.parametrize(
    "text",
    [
        "async def decide(): ...",
        "import httpx",
        "import orjson",
        "import os",
        "from pathlib import Path",
        "from runtime.ports import Clock",
        "from runtime.engine import worker",
        "from . import values",
        "seen = 0\ndef decide():\n    global seen\n    seen += 1",
        "def decide(): print('x')",
        "def decide():\n    import sqlite3",
    ],
)
def test_an_impure_domain_module_is_found(text: str) -> None:
    assert impurities(sample(text, "runtime/domain/sample.py"))


def test_a_pure_domain_module_passes() -> None:
    text = (
        "from datetime import timedelta\nfrom pydantic import BaseModel\n"
        "from runtime.domain.values import Record\nfrom runtime.errors import InvariantBroken\n"
        "def decide(state, request, now): return state"
    )
    assert impurities(sample(text, "runtime/domain/sample.py")) == []
    assert impurities(sample("import orjson", "runtime/domain/canonical.py")) == []


def test_the_domain_only_decides() -> None:
    problems = [line for source in sources("runtime/domain") for line in impurities(source)]
    assert not problems, report(problems)


def test_the_contracts_of_importlinter_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.syspath_prepend(str(ROOT))
    status = lint_imports(config_filename=".importlinter", cache_dir=None, is_debug_mode=False)
    assert status == EXIT_STATUS_SUCCESS


def upward(source: Source) -> list[str]:
    """Imports against the layers, read from the syntax: also lazy ones inside functions."""
    package = source.path.partition("/")[0]
    above = {"runtime": ("connectors", "bot", "tests"), "connectors": ("bot", "tests")}
    return [
        f"{source.path}:{reference.line}: {reference.name}"
        for reference in references(source)
        if reference.name.partition(".")[0] in above.get(package, ("tests",))
    ]


def test_a_lazy_import_against_the_layers_is_found() -> None:
    assert upward(sample("def f():\n    from bot.settings import Settings"))
    assert upward(sample("import connectors.outcomes", "runtime/engine/x.py"))
    assert upward(sample("from bot import app", "connectors/x.py"))
    assert upward(sample("import tests.network", "bot/x.py"))
    assert not upward(sample("from runtime import ports", "connectors/x.py"))


def test_no_import_goes_up() -> None:
    problems = [line for source in sources() for line in upward(source)]
    assert not problems, report(problems)
