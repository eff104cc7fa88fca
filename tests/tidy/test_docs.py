"""The documentation is true: its links lead somewhere, its examples run, its tables are generated.

Python blocks are executed, each in an empty namespace of its own. A console block marked
`console run` is executed from the root; every line after a `$` line must appear in what it prints.
"""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass

import pytest

from tests.tidy.tree import FOLDERS, ROOT, report, texts

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
# `runtime/domain/effect.py` or `docs/decisions/`: a path of ours, not a pattern or an API route.
NAMED_PATH = re.compile(r"`((?:" + "|".join(map(re.escape, FOLDERS)) + r")/[\w./-]*[\w/])`")
FENCE = re.compile(r"^```(\S*)[ \t]*([^\n]*)\n(.*?)^```[ \t]*$", re.MULTILINE | re.DOTALL)
SECONDS_MAX = 30


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block: where it stands, its language, the words after it, its body."""

    path: str
    number: int
    language: str
    marks: str
    body: str

    @property
    def name(self) -> str:
        """What pytest shows."""
        return f"{self.path}#{self.number}"


def documents() -> list[tuple[str, str]]:
    """(path, text) of every Markdown file that belongs to the documentation."""
    found = [
        (path, text)
        for path, text in texts()
        if path.endswith(".md") and not path.startswith("tests/")
    ]
    assert any(path == "README.md" for path, _ in found)
    return found


def blocks() -> list[Block]:
    """Every fenced block of the documentation."""
    return [
        Block(path, number, match[1], match[2].strip(), match[3])
        for path, text in documents()
        for number, match in enumerate(FENCE.finditer(text), 1)
    ]


PYTHON = [block for block in blocks() if block.language == "python"]
CONSOLE = [block for block in blocks() if block.language == "console" and block.marks == "run"]


def anchors(text: str) -> set[str]:
    """The anchors a renderer makes from the headings of a document."""
    headings = re.findall(r"^#+ (.+)$", FENCE.sub("", text), re.MULTILINE)
    plain = [re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings]
    return {heading.replace(" ", "-") for heading in plain}


def broken_links(path: str, text: str) -> list[str]:
    """Each relative link, anchor or named path that leads nowhere."""
    prose = FENCE.sub("", text)
    problems = []
    for target in LINK.findall(prose):
        if re.match(r"[a-z]+:", target):
            continue
        file, _, anchor = target.partition("#")
        found = (ROOT / path).parent / file if file else ROOT / path
        if not found.exists():
            problems.append(f"{path}: {target} does not exist")
        elif anchor and anchor not in anchors(found.read_text(encoding="utf-8") if file else text):
            problems.append(f"{path}: {target} names no heading")
    problems += [
        f"{path}: {named} does not exist"
        for named in NAMED_PATH.findall(prose)
        if not (ROOT / named).exists()
    ]
    return problems


def test_a_link_to_nowhere_is_found() -> None:
    text = "# Title\n[a](missing.md) [b](#title) [c](#none) `runtime/none.py` `runtime/errors.py`"
    assert broken_links("README.md", text) == [
        "README.md: missing.md does not exist",
        "README.md: #none names no heading",
        "README.md: runtime/none.py does not exist",
    ]


def test_every_link_and_path_leads_somewhere() -> None:
    assert any(LINK.search(text) for _, text in documents())
    problems = [line for path, text in documents() for line in broken_links(path, text)]
    assert not problems, report(problems)


def test_every_document_has_one_title_that_comes_first() -> None:
    for path, text in documents():
        titles = re.findall(r"^# .+$", FENCE.sub("", text), re.MULTILINE)
        assert len(titles) == 1, f"{path} has {len(titles)} titles"
        assert text.startswith("# "), f"{path} does not begin with its title"


def test_every_document_can_be_reached_from_the_readme() -> None:
    known = dict(documents())
    reached: set[str] = set()
    waiting = ["README.md"]
    while waiting:
        path = waiting.pop()
        if path in reached:
            continue
        reached.add(path)
        for target in LINK.findall(FENCE.sub("", known[path])):
            found = os.path.normpath((ROOT / path).parent / target.partition("#")[0])
            relative = os.path.relpath(found, ROOT)
            if relative in known:
                waiting.append(relative)
    assert set(known) - reached == set()


def test_there_are_examples_to_run() -> None:
    assert PYTHON
    assert CONSOLE


@pytest.mark.parametrize("block", PYTHON, ids=lambda block: block.name)
def test_a_python_example_runs(block: Block) -> None:
    code = compile(block.body, block.name, "exec")
    exec(code, {"__name__": "example"})  # noqa: S102 - our own documentation is what is tested


@pytest.mark.parametrize("block", CONSOLE, ids=lambda block: block.name)
def test_a_console_example_prints_what_it_shows(block: Block) -> None:
    steps = re.split(r"^\$ ", block.body, flags=re.MULTILINE)[1:]
    assert steps, f"{block.name} has no $ line"
    environment = {key: value for key, value in os.environ.items() if not key.startswith("MAKE")}
    for step in steps:
        command, *shown = step.splitlines()
        done = subprocess.run(  # noqa: S602 - a line of our own documentation, as a reader types it
            command,
            shell=True,
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            timeout=SECONDS_MAX,
            check=True,
        )
        missing = [line for line in shown if line.strip() and line not in done.stdout]
        assert missing == [], done.stdout
