"""Which model answers is chosen by settings alone, and choosing costs nothing."""

from __future__ import annotations

import subprocess
import sys

import pytest
from pydantic import SecretStr

from bot.agent import offline
from bot.agent.models import OFFLINE, choose, describe
from bot.settings import Settings


def settings(key: str | None, model: str = "gemini-2.5-flash") -> Settings:
    """Settings with this key."""
    return Settings(
        _env_file=None, gemini_api_key=None if key is None else SecretStr(key), gemini_model=model
    )


@pytest.mark.parametrize("key", [None, "", "  "])
def test_without_a_key_the_offline_model_answers_and_says_so(key: str | None) -> None:
    chosen = choose(settings(key))
    assert chosen.model == OFFLINE == offline.NAME
    assert describe(settings(key)) == "offline model: extractive, no AI service is contacted"


def test_with_a_key_gemini_answers_and_the_sentence_says_where_text_goes() -> None:
    chosen = choose(settings("k-123", "gemini-2.5-pro"))
    assert chosen.model == "gemini-2.5-pro"
    assert chosen.describe() == "Gemini gemini-2.5-pro: projections are sent to Google's Gemini API"
    assert "k-123" not in f"{chosen.describe()} {chosen.model} {chosen!r}"


def test_choosing_a_model_imports_no_model_library() -> None:
    code = (
        "import sys\n"
        "from bot.agent.models import choose\n"
        "from bot.settings import Settings\n"
        "choose(Settings(_env_file=None, gemini_api_key='k'))\n"
        "print([name for name in sys.modules if name.startswith('google.')])"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"
