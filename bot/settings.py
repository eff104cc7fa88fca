"""Settings: the environment (and `.env`) as one frozen object, read once at start.

Every field is documented in `.env.example`, which a test holds against this class. Secrets are
`SecretStr`: they never appear in a representation, a log or an error (INV-20).
"""

from __future__ import annotations

import re
from datetime import timedelta
from ipaddress import ip_network
from pathlib import Path
from typing import Annotated, Final

from pydantic import Field, SecretStr, ValidationError, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from runtime.domain.values import Name, Tenant
from runtime.errors import SettingsError

_SECRET: Final = re.compile(r"[A-Za-z0-9_-]{1,256}")
"""What Telegram takes as a webhook's secret."""


class Settings(BaseSettings):
    """What can be chosen. Everything has a default that needs no account."""

    model_config = SettingsConfigDict(
        env_prefix="", env_file=".env", extra="ignore", frozen=True, env_ignore_empty=True
    )

    harmonia_data_dir: Path = Path("data")
    harmonia_workspace: Name = "main"
    harmonia_brand: Name = "main"
    harmonia_listen_host: str = "127.0.0.1"
    harmonia_listen_port: Annotated[int, Field(ge=0, le=65535)] = 8080
    harmonia_concurrency: Annotated[int, Field(ge=1, le=256)] = 8
    harmonia_lease_seconds: Annotated[float, Field(gt=0, le=3600)] = 60.0
    harmonia_decide_within_hours: Annotated[float, Field(gt=0, le=24 * 365)] = 24.0 * 7
    harmonia_link_allow: str = ""
    harmonia_log_level: str = "info"
    telegram_bot_token: SecretStr | None = None
    telegram_api_url: str = "https://api.telegram.org"
    telegram_webhook_url: str = ""
    telegram_webhook_secret: SecretStr | None = None
    gemini_api_key: SecretStr | None = None
    gemini_model: str = "gemini-2.5-flash"
    gemini_base_url: str = ""

    @field_validator("harmonia_link_allow")
    @classmethod
    def _networks(cls, value: str) -> str:
        for part in value.split(","):
            if part.strip():
                ip_network(part.strip())
        return value

    @field_validator("harmonia_log_level")
    @classmethod
    def _level(cls, value: str) -> str:
        if value.lower() not in {"debug", "info", "warning", "error"}:
            message = "one of debug, info, warning, error"
            raise ValueError(message)
        return value.lower()

    @property
    def tenant(self) -> Tenant:
        """The tenant that this process serves."""
        return Tenant(workspace=self.harmonia_workspace, brand=self.harmonia_brand)

    @property
    def lease(self) -> timedelta:
        """How long a claim lasts without renewal."""
        return timedelta(seconds=self.harmonia_lease_seconds)

    @property
    def hook_secret(self) -> str | None:
        """The webhook's secret, or None where updates are polled.

        Raises:
            SettingsError: a webhook that could never bring an update.
        """
        if not self.telegram_webhook_url:
            return None
        if self.sandboxed:
            cause = "it needs TELEGRAM_BOT_TOKEN; without one the sandbox stands in for Telegram"
            raise SettingsError(setting="TELEGRAM_WEBHOOK_URL", cause=cause)
        secret = self.telegram_webhook_secret
        shown = "" if secret is None else secret.get_secret_value()
        if not _SECRET.fullmatch(shown):
            cause = "a webhook needs one, of 1 to 256 letters, digits, _ and -"
            raise SettingsError(setting="TELEGRAM_WEBHOOK_SECRET", cause=cause)
        return shown

    @property
    def sandboxed(self) -> bool:
        """Whether the Telegram sandbox stands in for Telegram."""
        return self.telegram_bot_token is None


def load_settings() -> Settings:
    """Read the settings.

    Raises:
        SettingsError: a setting that is not understood; it names the setting, never its value.
    """
    try:
        return Settings()
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        setting = ".".join(str(part) for part in first["loc"]).upper()
        raise SettingsError(setting=setting, cause=first["msg"]) from None
