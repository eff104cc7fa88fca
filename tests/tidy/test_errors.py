"""Faults are typed: the tree in the docstring is the tree in the code, and none is anonymous."""

from __future__ import annotations

import ast
import re

import pytest

from tests.tidy.tree import Source, report, sample, sources

ANONYMOUS = frozenset({"Exception", "BaseException", "RuntimeError", "AssertionError", "OSError"})


def classes(source: Source) -> dict[str, list[str]]:
    """Class name -> names of its bases, in a file."""
    return {
        node.name: [ast.unparse(base) for base in node.bases]
        for node in source.tree.body
        if isinstance(node, ast.ClassDef)
    }


def project_faults(source: Source) -> set[str]:
    """Names that a file takes from another error tree of the project."""
    return {
        alias.asname or alias.name
        for node in source.tree.body
        if isinstance(node, ast.ImportFrom) and (node.module or "").endswith("errors")
        for alias in node.names
    }


def drawn(source: Source) -> set[str]:
    """The class names in the tree that the module's docstring draws, its indentation kept."""
    docstring = ast.get_docstring(source.tree, clean=False) or ""
    names: set[str] = set()
    for line in docstring.splitlines():
        root = re.match(r"^\s*(?:[a-z_]+\.)*([A-Z]\w*)$", line)
        if root:
            names.add(root[1])
        elif re.match(r"^\s*[│├└]", line):
            names.update(re.findall(r"(?:[├└]── |· )([A-Z]\w*)", line))
    return names


def anonymous(source: Source) -> list[str]:
    """Each `raise` of a built-in that carries no field a reader could act on.

    An `OSError` with a number from `errno` has one, and is what callers of the system expect.
    """
    problems = []
    for node in ast.walk(source.tree):
        if not isinstance(node, ast.Raise) or node.exc is None:
            continue
        raised = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
        given = node.exc.args if isinstance(node.exc, ast.Call) else []
        numbered = bool(given) and ast.unparse(given[0]).startswith("errno.")
        if isinstance(raised, ast.Name) and raised.id in ANONYMOUS and not numbered:
            problems.append(f"{source.path}:{node.lineno}: raise {raised.id}: use a typed fault")
    return problems


def error_files() -> list[Source]:
    """Every `errors.py` of the packages."""
    found = [source for source in sources() if source.path.endswith("errors.py")]
    assert any(source.path == "runtime/errors.py" for source in found)
    return found


def test_the_rule_sees_a_class_missing_from_the_tree() -> None:
    text = '"""Tree.\n\n    RootError\n    ├── Left   one\n    │   └── Deep\n    ├── Ann · Bob\n"""'
    assert drawn(sample(text)) == {"RootError", "Left", "Deep", "Ann", "Bob"}
    flat = '"""Tree.\n\nother.errors.Root\n└── Leaf   one\n\nProse about Root.\n"""'
    assert drawn(sample(flat)) == {"Root", "Leaf"}


@pytest.mark.parametrize("path", [source.path for source in error_files()])
def test_the_docstring_draws_every_error_and_no_other(path: str) -> None:
    source = next(item for item in error_files() if item.path == path)
    assert classes(source)
    assert drawn(source) - project_faults(source) == set(classes(source))


def test_every_error_descends_from_the_root() -> None:
    scanned = 0
    for source in error_files():
        own = classes(source)
        known = own.keys() | project_faults(source)
        for name, bases in own.items():
            scanned += 1
            if name != "HarmoniaError":
                assert known.intersection(bases), f"{source.path}: {name} is outside the tree"
    assert scanned


def test_no_fault_is_anonymous() -> None:
    assert anonymous(sample("raise RuntimeError('bad')"))
    assert anonymous(sample("raise Exception"))
    assert anonymous(sample("raise OSError('bad')"))
    assert not anonymous(sample("raise OSError(errno.EIO, 'damaged')"))
    assert not anonymous(sample("raise Contention(attempts=3)"))
    problems = [line for source in sources() for line in anonymous(source)]
    assert not problems, report(problems)
