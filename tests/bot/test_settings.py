"""Settings: read once, understood or refused by name, secrets never shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.settings import Settings, load_settings
from runtime.errors import SettingsError

SECRET = "123:very-secret-token"


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No setting of the developer's own shell or folder."""
    monkeypatch.chdir(tmp_path)
    for name in Settings.model_fields:
        monkeypatch.delenv(name.upper(), raising=False)


def test_everything_has_a_default_that_needs_no_account() -> None:
    settings = load_settings()
    assert settings.sandboxed
    assert settings.gemini_api_key is None
    assert settings.harmonia_listen_host == "127.0.0.1"


def test_an_empty_value_is_no_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TELEGRAM_BOT_TOKEN", "")
    assert load_settings().sandboxed


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("HARMONIA_LISTEN_PORT", "65536"),
        ("HARMONIA_CONCURRENCY", "-7777"),
        ("HARMONIA_WORKSPACE", "../etc"),
        ("HARMONIA_LEASE_SECONDS", "-7777"),
        ("HARMONIA_LINK_ALLOW", "10.0.0.0/8,nonsense"),
        ("HARMONIA_LOG_LEVEL", "loud"),
    ],
)
def test_a_setting_that_is_not_understood_is_named_and_not_quoted(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(SettingsError) as refused:
        load_settings()
    assert refused.value.fields["setting"] == name
    assert value not in str(refused.value)


@pytest.mark.parametrize(("value", "fine"), [("0", True), ("65535", True), ("65536", False)])
def test_ports_end_where_they_end(monkeypatch: pytest.MonkeyPatch, value: str, fine: bool) -> None:
    monkeypatch.setenv("HARMONIA_LISTEN_PORT", value)
    if fine:
        assert load_settings().harmonia_listen_port == int(value)
    else:
        with pytest.raises(SettingsError):
            load_settings()


def test_secrets_are_not_in_a_representation(monkeypatch: pytest.MonkeyPatch) -> None:
    """INV-20."""
    for name in ("TELEGRAM_BOT_TOKEN", "GEMINI_API_KEY", "TELEGRAM_WEBHOOK_SECRET"):
        monkeypatch.setenv(name, SECRET)
    settings = load_settings()
    assert SECRET not in repr(settings)
    assert SECRET not in settings.model_dump_json()
