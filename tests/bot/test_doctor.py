"""The doctor tells the truth about settings, and contacts nobody."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.doctor import examine
from bot.settings import Settings


def settings(folder: Path, **changes: object) -> Settings:
    return Settings(_env_file=None, harmonia_data_dir=folder, **changes)  # type: ignore[arg-type] # test values


def test_without_any_account_everything_stands_on_this_machine(tmp_path: Path) -> None:
    sentences, fine = examine(settings(tmp_path / "new" / "data"))
    assert fine
    text = "\n".join(sentences)
    assert "offline model" in text
    assert "sandbox" in text


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"telegram_webhook_url": "http://bot.example"}, "https"),
        ({"telegram_webhook_url": "https://bot.example"}, "TELEGRAM_WEBHOOK_SECRET"),
    ],
)
def test_a_half_set_webhook_is_named(tmp_path: Path, changes: dict[str, object], word: str) -> None:
    sentences, fine = examine(settings(tmp_path, telegram_bot_token="1:t", **changes))
    assert not fine
    assert word in "\n".join(sentences)


def test_no_secret_is_in_its_sentences(tmp_path: Path) -> None:
    sentences, _ = examine(
        settings(tmp_path, telegram_bot_token="1:hush", gemini_api_key="hush-key")
    )
    text = "\n".join(sentences)
    assert "hush" not in text
    assert "Gemini" in text
