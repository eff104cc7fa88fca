"""What holds for every test: no network, no settings from outside, the same examples each time."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tests import network

ROOT = Path(__file__).resolve().parent.parent

# The same examples on every run and machine: a red build is about the change. For a search, run
# `make test ARGS=--hypothesis-profile=search`.
settings.register_profile("default", derandomize=True, deadline=None, database=None)
settings.register_profile("search", derandomize=False, deadline=None, max_examples=2_000)
settings.load_profile("default")

FOREIGN = re.compile(
    r"^(GOOGLE_|GEMINI_|VERTEX|OPENAI_|TELEGRAM_|OTEL_|[A-Z]+_EMULATOR_HOST$"
    r"|(HTTP|HTTPS|ALL|NO)_PROXY$|(http|https|all|no)_proxy$)"
)


def documented_settings() -> frozenset[str]:
    """The names in .env.example: every setting that a shell could leak into a test."""
    text = (ROOT / ".env.example").read_text(encoding="utf-8")
    return frozenset(re.findall(r"^#?\s?([A-Z][A-Z0-9_]*)=", text, re.MULTILINE))


def pytest_configure(config: pytest.Config) -> None:
    """Refuse what would make the results mean something else."""
    if sys.flags.optimize:
        message = "python -O removes the assertions that keep invariants; run the tests without it"
        raise pytest.UsageError(message)
    leaked = documented_settings()
    for name in list(os.environ):
        if name in leaked or FOREIGN.match(name):
            del os.environ[name]
    network.refuse_network()


@pytest.fixture(autouse=True)
def _no_network() -> Iterator[None]:
    """Fail a test that reached for the network, even if its code swallowed the refusal."""
    before = len(network.attempts)
    yield
    tried = network.attempts[before:]
    if tried:
        pytest.fail(f"reached for the network: {', '.join(tried)}")
