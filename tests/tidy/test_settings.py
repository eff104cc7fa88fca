"""`.env.example` documents every setting, and nothing that is not one."""

from __future__ import annotations

import re

from pydantic_settings import BaseSettings

from tests.tidy.tree import ROOT

LINE = re.compile(r"^(?:# ?)?([A-Z][A-Z0-9_]*)=(.*)$")
WORDS_MIN = 4


def documented(text: str) -> dict[str, str]:
    """Setting -> the comment right above it."""
    found: dict[str, str] = {}
    comment: list[str] = []
    for line in text.splitlines():
        match = LINE.match(line)
        if match:
            found[match[1]] = " ".join(comment)
            comment = []
        elif line.startswith("#"):
            comment.append(line.lstrip("# "))
        else:
            comment = []
    return found


def declared() -> set[str]:
    """The environment names of every field of the settings object."""
    from bot.settings import Settings

    assert issubclass(Settings, BaseSettings)
    assert Settings.model_config.get("env_prefix", "") == ""
    names: set[str] = set()
    for name, field in Settings.model_fields.items():
        alias = field.validation_alias
        names.add(alias if isinstance(alias, str) else name.upper())
    return names


def test_the_reader_takes_the_comment_right_above() -> None:
    text = "# Head of the file.\n\n# Where the data lives.\nDATA_DIR=data\n# TOKEN=\nBARE=1\n"
    assert documented(text) == {"DATA_DIR": "Where the data lives.", "TOKEN": "", "BARE": ""}


def test_every_setting_is_documented_and_nothing_else() -> None:
    text = (ROOT / ".env.example").read_text(encoding="utf-8")
    names = declared()
    assert names
    assert set(documented(text)) == names


def test_every_setting_says_what_it_does() -> None:
    text = (ROOT / ".env.example").read_text(encoding="utf-8")
    found = documented(text)
    assert found
    short = [name for name, comment in found.items() if len(comment.split()) < WORDS_MIN]
    assert short == []
