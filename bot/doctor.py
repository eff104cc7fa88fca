"""The doctor: what is configured and what is missing, in a sentence each. Contacts nobody."""

from __future__ import annotations

import os
from pathlib import Path

from bot.agent.models import describe
from bot.settings import Settings
from runtime.errors import SettingsError


def examine(settings: Settings) -> tuple[list[str], bool]:
    """The sentences, and whether the bot can start as configured."""
    sentences = [f"Model: {describe(settings)}."]
    fine = True
    if settings.sandboxed:
        sentences.append(
            "Telegram: no TELEGRAM_BOT_TOKEN, so the sandbox and its chat page are served."
        )
    else:
        way = "a webhook" if settings.telegram_webhook_url else "long polling"
        sentences.append(f"Telegram: a token is set; updates come by {way}.")
    if settings.telegram_webhook_url:
        if not settings.telegram_webhook_url.startswith("https://"):
            sentences.append("TELEGRAM_WEBHOOK_URL must begin with https://.")
            fine = False
        try:
            _ = settings.hook_secret
        except SettingsError as error:
            sentences.append(f"{error.fields['setting']}: {error.fields['cause']}.")
            fine = False
    folder = _existing(settings.harmonia_data_dir)
    if not os.access(folder, os.W_OK | os.X_OK):
        sentences.append(f"Data: {folder} cannot be written; choose another HARMONIA_DATA_DIR.")
        fine = False
    else:
        sentences.append(f"Data: everything durable is kept in {settings.harmonia_data_dir}.")
    return sentences, fine


def _existing(path: Path) -> Path:
    """The path, or the nearest folder above it that exists."""
    current = path.absolute()
    while not current.exists() and current != current.parent:
        current = current.parent
    return current
