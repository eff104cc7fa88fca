"""File names of packs: safe, bounded, never empty, never shared."""

from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.content_pack.names import (
    READABLE_BYTES_MAX,
    RESERVED,
    file_name,
    folder_name,
    pack_key,
    readable,
)

NAMES = st.from_regex(r"\A[A-Za-z0-9_-]{1,64}\Z")


@given(title=st.text(max_size=400))
def test_a_name_is_safe_whatever_the_title(title: str) -> None:
    name = file_name(title, "job-1:command")
    assert name.endswith(f"-{pack_key('job-1:command')}.zip")
    assert not set(name) & set('/\\:*?"<>|\0\n\r\t ')
    assert name[0] not in ".-"
    assert len(name.encode()) <= READABLE_BYTES_MAX + 30
    assert not RESERVED.match(name.partition(".")[0])
    assert unicodedata.is_normalized("NFC", name)
    assert not any(unicodedata.category(char).startswith("C") for char in name)


@pytest.mark.parametrize(
    ("title", "shown"),
    [
        ("Launch: Бесплатно 🚀", "Launch-Бесплатно"),
        ("../../etc/passwd", "etc-passwd"),
        ("..", "pack"),
        ("", "pack"),
        ("🚀🚀", "pack"),
        ("con", "con"),
        ("a\u202eb", "a-b"),
        ("e\u0301te\u0301", "été"),
        ("ﬁne ①", "fine-1"),
        (" - spaced - ", "spaced"),
        ("日本語のタイトル", "日本語のタイトル"),
    ],
)
def test_a_title_stays_readable(title: str, shown: str) -> None:
    assert readable(title) == shown


def test_a_long_title_is_cut_between_characters() -> None:
    assert readable("ж" * 200) == "ж" * (READABLE_BYTES_MAX // 2)
    assert readable("a" + "ж" * 200) == "a" + "ж" * ((READABLE_BYTES_MAX - 1) // 2)


def test_two_commands_never_share_a_name_even_where_case_does_not_count() -> None:
    names = {file_name(title, id_).casefold() for title in ("A", "a") for id_ in ("c:1", "c:2")}
    assert len(names) == 2


@given(one=NAMES, two=NAMES)
def test_two_tenants_never_share_a_folder_even_where_case_does_not_count(
    one: str, two: str
) -> None:
    assert (folder_name(one).casefold() == folder_name(two).casefold()) is (one == two)


@given(name=NAMES)
def test_a_folder_has_a_safe_name(name: str) -> None:
    assert re.fullmatch(r"[a-z0-9_~-]{1,130}", folder_name(name))
    assert not RESERVED.match(folder_name(name))


@pytest.mark.parametrize("name", ["con", "NUL", "com1", "Lpt9", "aux", "prn"])
def test_a_reserved_name_is_no_folder(name: str) -> None:
    assert not RESERVED.match(folder_name(name))
    assert not RESERVED.match(readable(name) + "-x")


def test_a_plain_tenant_has_its_own_name_as_its_folder() -> None:
    assert folder_name("acme-2") == "acme-2"
