"""Canonical JSON: the only bytes of structured values that are hashed.

Keys are ASCII, there are no floats, integers stay inside ±(2**53 - 1); decimals and times are
strings. On that subset `orjson` with sorted keys writes exactly the bytes of RFC 8785 (JSON
Canonicalization Scheme): a property test holds it against the package `rfc8785`.

Keeps INV-8: same value, same bytes, same digest.
"""

from __future__ import annotations

from typing import Final

import orjson
from pydantic import BaseModel

from runtime.domain.values import sha256
from runtime.errors import NotCanonical

INTEGER_MAX: Final = 2**53 - 1
DEPTH_MAX: Final = 64

Json = None | bool | int | str | list["Json"] | dict[str, "Json"]


_Path = tuple["_Path", str | int] | None
"""Where a value lies: made into text only for a refusal."""


def _check(value: object, path: _Path, depth: int) -> None:
    if depth > DEPTH_MAX:
        raise NotCanonical(path=_shown(path), cause=f"nested deeper than {DEPTH_MAX}")
    match value:
        case str():
            if not value.isascii() and any("\ud800" <= char <= "\udfff" for char in value):
                raise NotCanonical(path=_shown(path), cause="lone surrogate")
        case None | bool():
            return
        case int():
            if not -INTEGER_MAX <= value <= INTEGER_MAX:
                raise NotCanonical(path=_shown(path), cause="integer outside ±(2**53 - 1)")
        case list() | tuple():
            for index, item in enumerate(value):
                _check(item, (path, index), depth + 1)
        case dict():
            for key, item in value.items():
                if not isinstance(key, str) or not key.isascii():
                    raise NotCanonical(path=_shown(path), cause="a key that is not ASCII text")
                _check(item, (path, key), depth + 1)
        case _:
            cause = f"{type(value).__name__} has no canonical bytes"
            raise NotCanonical(path=_shown(path), cause=cause)


def _shown(path: _Path) -> str:
    if path is None:
        return "$"
    above, part = path
    return _shown(above) + (f"[{part}]" if isinstance(part, int) else f".{part}")


def canonical_bytes(value: object) -> bytes:
    """The canonical bytes of a record or of plain JSON data.

    Raises:
        NotCanonical: a float, a large integer, an odd key or another type; names the path.
    """
    plain = value.model_dump(mode="json") if isinstance(value, BaseModel) else value
    _check(plain, None, 0)
    return orjson.dumps(plain, option=orjson.OPT_SORT_KEYS)


def canonical_text(value: object) -> str:
    """As `canonical_bytes`, as text."""
    return canonical_bytes(value).decode()


def canonical_digest(value: object) -> str:
    """SHA-256 of the canonical bytes."""
    return sha256(canonical_bytes(value))
