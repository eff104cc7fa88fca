"""Time, randomness, ids and sleeping come from ports, whatever they are called in a module.

One seeded world must be able to own all of them, so a single hidden `time.time` makes simulation
worthless. Ruff bans the usual spellings; this test follows aliases, look-ups by name and defaults.
"""

from __future__ import annotations

import pytest

from tests.tidy.names import references
from tests.tidy.tree import ROOT, Source, report, sample, sources

BANNED = {
    "datetime.datetime.now": "time comes from the Clock port",
    "datetime.datetime.utcnow": "time comes from the Clock port",
    "datetime.datetime.today": "time comes from the Clock port",
    "datetime.date.today": "time comes from the Clock port",
    "time": "time comes from the Clock port",
    "asyncio.sleep": "sleeping goes through the Clock port",
    "asyncio.get_running_loop().time": "time comes from the Clock port",
    "asyncio.get_event_loop().time": "time comes from the Clock port",
    "anyio.sleep": "sleeping goes through the Clock port",
    "anyio.current_time": "time comes from the Clock port",
    "threading.Timer": "sleeping goes through the Clock port",
    "uuid.uuid1": "ids come from the Ids port",
    "uuid.uuid4": "ids come from the Ids port",
    "random": "randomness comes from the Ids port",
    "secrets": "randomness comes from the Ids port",
    "os.urandom": "randomness comes from the Ids port",
    "os.getrandom": "randomness comes from the Ids port",
}

# (file, banned name) -> why this module may. Only adapters of a port stand here.
ALLOWED: dict[tuple[str, str], str] = {
    ("runtime/system.py", "datetime.datetime.now"): "the Clock port's real adapter",
    ("runtime/system.py", "time"): "the Clock port's real adapter: monotonic time",
    ("runtime/system.py", "asyncio.sleep"): "the Clock port's real adapter: sleeping",
    ("runtime/system.py", "secrets"): "the Ids port's real adapter: ids, tokens, jitter",
}

# A test may read a clock (a benchmark measures), but nobody waits by it, and nothing is mocked.
BANNED_IN_TESTS = {
    "time.sleep": "no wall-clock sleeps in tests: wait for the thing itself",
    "unittest.mock": "write a fake that passes the conformance suite",
}


def violations(source: Source, banned: dict[str, str]) -> list[tuple[int, str, str]]:
    """(line, banned name, what to do instead), one for each line that names one."""
    found = {
        (reference.line, name, banned[name])
        for reference in references(source)
        for name in banned
        if reference.within(name)
    }
    return sorted(found)


@pytest.mark.parametrize(
    "text",
    [
        "from datetime import datetime\nx = datetime.now()",
        "from datetime import datetime as dt\nx = dt.now()",
        "import datetime as d\nx = d.datetime.utcnow()",
        "from time import time",
        "import time as t\nx = t.monotonic()",
        "import time\nx = getattr(time, 'time')()",
        "import importlib\nx = importlib.import_module('random').random()",
        "x = __import__('time').time()",
        "from datetime import date\ntoday = date.today\nx = today()",
        "from datetime import datetime\nclock = datetime\nx = clock.now()",
        "import asyncio\nasync def f(): await asyncio.sleep(1)",
        "from asyncio import sleep as pause",
        "import asyncio\nx = asyncio.get_running_loop().time()",
        "from asyncio import get_running_loop as loop\nx = loop().time()",
        "from uuid import uuid4 as fresh",
        "import random",
        "from random import Random as R",
        "import secrets",
        "import os\nx = os.urandom(8)",
        "from dataclasses import field\nimport time\nx = field(default_factory=time.time)",
    ],
)
def test_a_hidden_clock_or_die_is_found(text: str) -> None:
    assert violations(sample(text), BANNED)


@pytest.mark.parametrize(
    "text",
    [
        "from datetime import datetime, UTC\nx = datetime.fromtimestamp(0, UTC)",
        "async def f(clock): await clock.sleep(1); return clock.now()",
        "import uuid\nx = uuid.uuid5(uuid.NAMESPACE_URL, 'a')",
        "def f(time): return time.time",
        "import asyncio\nasync def f(): await asyncio.wait([])",
        "text = 'time.time'  # datetime.now",
    ],
)
def test_what_only_looks_like_one_is_left_alone(text: str) -> None:
    assert violations(sample(text), BANNED) == []


def test_only_port_adapters_touch_clocks_and_dice() -> None:
    problems = [
        f"{source.path}:{line}: {name}: {instead}"
        for source in sources()
        for line, name, instead in violations(source, BANNED)
        if (source.path, name) not in ALLOWED
    ]
    assert not problems, report(problems)


def test_every_allowance_has_a_reason_and_is_used() -> None:
    for (path, name), reason in ALLOWED.items():
        assert len(reason.split()) > 2, f"{path} {name}: say why"
        source = next((item for item in sources() if item.path == path), None)
        assert source is not None, f"{path} does not exist under {ROOT.name}"
        assert any(found == name for _, found, _ in violations(source, BANNED)), (
            f"{path} does not use {name} any more: remove its allowance"
        )


def test_tests_neither_sleep_nor_mock() -> None:
    scanned = [source for source in sources("tests") if source.path != "tests/tidy/names.py"]
    assert scanned
    problems = [
        f"{source.path}:{line}: {name}: {instead}"
        for source in scanned
        for line, name, instead in violations(source, BANNED_IN_TESTS)
    ]
    assert not problems, report(problems)
