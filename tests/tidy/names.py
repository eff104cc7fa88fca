"""Finds what a module refers to, whatever it is called there.

`from datetime import datetime as dt; dt.now`, `clock = time.time`, `getattr(time, "time")` and
`importlib.import_module("time").time` all come out as the dotted name they stand for.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

from tests.tidy.tree import Source


@dataclass(frozen=True, slots=True)
class Reference:
    """A use of something imported: where, and its full dotted name."""

    line: int
    name: str

    def within(self, prefix: str) -> bool:
        """Whether this is `prefix` itself or something inside it."""
        return self.name == prefix or self.name.startswith(f"{prefix}.")


class _Finder(ast.NodeVisitor):
    """Walks a module in source order, learning aliases as it goes."""

    def __init__(self, package: str) -> None:
        self.package = package
        self.aliases: dict[str, str] = {}
        self.found: list[Reference] = []
        self.called: list[Reference] = []

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            self.found.append(Reference(node.lineno, alias.name))
            if alias.asname:
                self.aliases[alias.asname] = alias.name
            else:
                root = alias.name.partition(".")[0]
                self.aliases[root] = root

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        base = node.module or ""
        if node.level:
            parents = self.package.split(".")
            kept = parents[: len(parents) - node.level + 1]
            base = ".".join([*kept, base] if base else kept)
        for alias in node.names:
            full = f"{base}.{alias.name}"
            self.found.append(Reference(node.lineno, full))
            self.aliases[alias.asname or alias.name] = full

    def visit_Assign(self, node: ast.Assign) -> None:
        self.generic_visit(node)
        full = self.resolve(node.value)
        for target in node.targets:
            if isinstance(target, ast.Name) and full and not isinstance(node.value, ast.Call):
                self.aliases[target.id] = full

    def visit_Attribute(self, node: ast.Attribute) -> None:
        self._note(node)

    def visit_Name(self, node: ast.Name) -> None:
        self._note(node)

    def visit_Call(self, node: ast.Call) -> None:
        if _named_lookup(node) is not None:
            self._note(node)
        called = self.resolve(node.func)
        if called:
            self.called.append(Reference(node.lineno, called))
        self.generic_visit(node)

    def _note(self, node: ast.Attribute | ast.Name | ast.Call) -> None:
        full = self.resolve(node)
        if full:
            self.found.append(Reference(node.lineno, full))
        if isinstance(node, ast.Attribute):
            inner: ast.expr = node.value
            while isinstance(inner, ast.Attribute):
                inner = inner.value
            if not isinstance(inner, ast.Name):
                self.visit(inner)

    def resolve(self, node: ast.expr) -> str | None:
        """The dotted name an expression stands for, if it begins at an import."""
        if isinstance(node, ast.Name):
            return self.aliases.get(node.id)
        if isinstance(node, ast.Attribute):
            base = self.resolve(node.value)
            return f"{base}.{node.attr}" if base else None
        if isinstance(node, ast.Call):
            return self._resolve_call(node)
        return None

    def _resolve_call(self, node: ast.Call) -> str | None:
        lookup = _named_lookup(node)
        if lookup is not None:
            owner, attribute = lookup
            base = self.resolve(owner) if owner is not None else None
            if owner is None:
                return attribute
            return f"{base}.{attribute}" if base else None
        called = self.resolve(node.func)
        return f"{called}()" if called else None


def _named_lookup(node: ast.Call) -> tuple[ast.expr | None, str] | None:
    """Read `getattr(x, "name")` and `import_module("name")`: the owner, if any, and the name."""
    function = node.func
    name = function.id if isinstance(function, ast.Name) else getattr(function, "attr", "")
    arguments = node.args
    if name == "getattr" and len(arguments) > 1:
        constant: ast.expr = arguments[1]
        owner: ast.expr | None = arguments[0]
    elif name in {"__import__", "import_module"} and arguments:
        constant, owner = arguments[0], None
    else:
        return None
    if isinstance(constant, ast.Constant) and isinstance(constant.value, str):
        return owner, constant.value
    return None


def _walked(source: Source) -> _Finder:
    is_package = source.path.endswith("/__init__.py")
    package = source.module if is_package else source.module.rpartition(".")[0]
    finder = _Finder(package)
    finder.visit(source.tree)
    return finder


def references(source: Source) -> list[Reference]:
    """Every imported thing that a module names, in source order."""
    return _walked(source).found


def calls(source: Source) -> list[Reference]:
    """Every imported thing that a module calls; a type in an annotation is not called."""
    return _walked(source).called
