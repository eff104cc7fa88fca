"""Words that every record shares: record base, scopes, times, digests, trust.

Keeps INV-18's vocabulary: a scope is either one tenant or the directory, and a tenant's names
are so narrow that no path or key can be forged from them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from enum import StrEnum
from functools import cache, lru_cache
from typing import Annotated, Any, Final, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    GetCoreSchemaHandler,
    StringConstraints,
    TypeAdapter,
    ValidationError,
)
from pydantic_core import CoreSchema, core_schema

from runtime.errors import BadInput


class Record(BaseModel):
    """A frozen value that may be stored. Unknown fields are refused, never dropped.

    A record is valid from the moment it is made: the constructor validates all fields, a copy those
    that it changes. So whatever a decision returns can be stored and will come back the same.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """A copy with some fields changed; each changed value is validated as in a constructor.

        Raises:
            BadInput: a value that its field does not take, or a field that is not there.
        """
        if deep or not update:
            return super().model_copy(update=update, deep=deep)
        checks, changed = _checks(type(self)), {}
        for name, value in update.items():
            try:
                changed[name] = checks[name](value)
            except (KeyError, ValidationError) as error:
                cause = error.errors()[0]["type"] if isinstance(error, ValidationError) else "extra"
                raise BadInput(record=type(self).__name__, field=name, cause=cause) from None
        copy = self.__class__.__new__(self.__class__)
        object.__setattr__(copy, "__dict__", {**self.__dict__, **changed})
        named = self.__pydantic_fields_set__ | changed.keys()
        object.__setattr__(copy, "__pydantic_fields_set__", named)
        object.__setattr__(copy, "__pydantic_extra__", None)
        object.__setattr__(copy, "__pydantic_private__", None)
        return copy


@cache
def _checks(kind: type[Record]) -> dict[str, Callable[[Any], Any]]:
    """One validator for each field of a record type."""
    made: dict[str, Callable[[Any], Any]] = {}
    for name, field in kind.model_fields.items():
        declared: Any = Annotated[field.annotation, field]
        made[name] = TypeAdapter(declared).validator.validate_python
    return made


@lru_cache(maxsize=4096)
def time_text(value: datetime) -> str:
    """UTC with exactly six fraction digits, so that text order is time order."""
    if value.tzinfo is not UTC:
        value = value.astimezone(UTC)
    return value.isoformat(timespec="microseconds")[:-6] + "Z"


def _utc(value: datetime) -> datetime:
    if value.tzinfo is UTC:
        return value
    if value.tzinfo is None:
        message = "a stored time needs a zone"
        raise ValueError(message)
    return value.astimezone(UTC)


class _InUtc:
    """Times with another offset are brought to UTC; stored ones have none and are read natively."""

    @staticmethod
    def __get_pydantic_core_schema__(source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        del source, handler
        converted = core_schema.no_info_after_validator_function(
            _utc, core_schema.datetime_schema()
        )
        stored = core_schema.datetime_schema(tz_constraint=0)
        return core_schema.json_or_python_schema(
            json_schema=core_schema.union_schema([stored, converted], mode="left_to_right"),
            python_schema=converted,
            serialization=core_schema.plain_serializer_function_ser_schema(
                time_text, return_schema=core_schema.str_schema(), when_used="json"
            ),
        )


UtcTime = Annotated[datetime, _InUtc]
"""A UTC instant with microseconds."""

Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{1,64}$")]
"""A workspace or brand name."""

Id = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.:~@+=-]{1,300}$")]
"""A record's ID: safe as a key segment on every store."""

Digest = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
"""Lowercase hexadecimal SHA-256."""

Text = Annotated[str, StringConstraints(max_length=200_000)]
"""Text that fits a record. Anything longer is an artifact."""

DIGEST_SHOWN_CHARS: Final = 6


class Tenant(Record):
    """Whose data this is. Nothing crosses it."""

    workspace: Name
    brand: Name

    @property
    def path(self) -> str:
        """The key prefix of this tenant's records."""
        return f"workspaces/{self.workspace}/brands/{self.brand}"


class Directory(Record):
    """What stands above tenants: people, chat bindings, leases, updates of unbound chats."""

    kind: Literal["directory"] = "directory"

    @property
    def path(self) -> str:
        """The key prefix of directory records."""
        return "directory"


Scope = Tenant | Directory
DIRECTORY: Final = Directory()


class Trust(StrEnum):
    """How far a text may be believed. It never rises on its way."""

    SYSTEM = "system"
    OPERATOR = "operator"
    PROVIDER = "provider"
    MODEL = "model_inference"
    EXTERNAL = "external_untrusted"


class Fence(Record):
    """The right to write for one claim of one operation."""

    operation: Id
    epoch: int


def sha256(data: bytes) -> str:
    """Lowercase hexadecimal SHA-256 of `data`."""
    return hashlib.sha256(data).hexdigest()


def identity(*parts: str) -> str:
    """One digest of several strings, length-prefixed so that borders cannot be shifted."""
    hasher = hashlib.sha256()
    for part in parts:
        data = part.encode()
        hasher.update(len(data).to_bytes(8, "big"))
        hasher.update(data)
    return hasher.hexdigest()


def short(digest: str) -> str:
    """The part of a digest that a person compares."""
    return digest[:DIGEST_SHOWN_CHARS]
