"""Codec: a record to stored bytes and back, one rule for every store.

A stored body is JSON under a codec version. Older versions are lifted by upgrade functions; a
newer version, broken JSON or a wrong shape is `RecordUnreadable`, which names the key and the cause
but never the content (INV-20). What is written is read back before it leaves: a record that would
not come back is refused at entry with its field named, so nothing unreadable is ever committed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime
from enum import Enum
from functools import lru_cache
from typing import Any, Final, Generic, TypeVar, cast, get_args, get_origin

import orjson
from pydantic import BaseModel, ValidationError
from pydantic_core import PydanticSerializationError

from runtime.domain.values import Record, time_text
from runtime.errors import BadInput, RecordTooLarge, RecordUnreadable
from runtime.ports import Collection, Key, Value

RECORD_BYTES_MAX: Final = 1_048_576
INTEGER_MAX: Final = 2**53 - 1

Upgrade = Callable[[dict[str, Any]], dict[str, Any]]
"""Lifts the plain object of one codec version to the next."""

Upgrades = Mapping[str, Mapping[int, Upgrade]]
"""By collection name, then by the version that is lifted."""

NO_UPGRADES: Final[Upgrades] = {}

R = TypeVar("R", bound=Record)

# The ID pattern of runtime.domain.values, without what Firestore keeps for itself.
_ID: Final = re.compile(r"(?!\.{1,2}\Z)(?!__.*__\Z)[A-Za-z0-9_.:~@+=-]{1,300}\Z")


@lru_cache(maxsize=4096)
def _storable(id_: str) -> bool:
    return _ID.match(id_) is not None


def check_id(key: Key[Any]) -> None:
    """Refuse an ID that some store could not hold or could read as a path."""
    if not _storable(key.id):
        raise BadInput(collection=key.collection.name, field="id", cause="not a record ID")


def plain(value: Value) -> str | int | None:
    """A query value as every store compares it: times as text whose order is time order."""
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise BadInput(field="query value", cause="a time without a zone")
        return time_text(value)
    if isinstance(value, bool):
        return int(value)
    return value


class Field:
    """One dotted path into a record: what a declared query compares."""

    __slots__ = ("_head", "_rest", "path")

    def __init__(self, path: str) -> None:
        self.path = path
        self._head, *self._rest = path.split(".")

    def read(self, record: Record) -> str | int | None:
        """The field's value, or None where this record's state has no such field."""
        value: Any = record.__dict__.get(self._head)
        for part in self._rest:
            # Another state of the record has no such field; a text or None has no fields at all.
            value = value.__dict__.get(part) if hasattr(value, "__dict__") else None
        kind = type(value)
        if kind is str or value is None:
            return cast("str | None", value)
        if kind is datetime:
            return time_text(value)
        if isinstance(value, Enum):
            value = value.value
        if isinstance(value, str):
            return value
        if isinstance(value, int) and abs(value) <= INTEGER_MAX:
            return int(value)
        raise BadInput(field=self.path, cause="a queried field holds a text, integer or time")


class Codec(Generic[R]):
    """Encodes and decodes the records of one collection."""

    __slots__ = ("_compares", "_names", "_upgrades", "collection", "shareable", "version")

    def __init__(self, collection: Collection[R], upgrades: Upgrades = NO_UPGRADES) -> None:
        self.collection = collection
        self.version = collection.codec
        self._upgrades = upgrades.get(collection.name, {})
        missing = [step for step in range(1, self.version) if step not in self._upgrades]
        if missing:
            raise BadInput(collection=collection.name, cause=f"no upgrade of versions {missing}")
        shape = _Shape(collection.record)
        self._names = shape.names
        self._compares = shape.open
        self.shareable = not (shape.open or shape.mutable)
        """Whether one decoded record may be handed to several readers."""

    def encode(self, key: Key[R], record: R) -> tuple[bytes, R]:
        """The body to store, and the record as it will come back.

        Raises:
            BadInput: the record would not come back as it is; names the field.
            RecordTooLarge: the body is above 1 MiB.
        """
        kind = self.collection.record
        if type(record) is not kind:
            raise BadInput(key=key.path, cause=f"a {type(record).__name__}, not a {kind.__name__}")
        try:
            body: bytes = kind.__pydantic_serializer__.to_json(
                record, round_trip=True, warnings="error"
            )
            if len(body) > RECORD_BYTES_MAX:
                raise RecordTooLarge(key=key.path, bytes=len(body), limit_bytes=RECORD_BYTES_MAX)
            if self.shareable:
                return body, record  # valid since it was made, and it cannot change
            back: R = kind.__pydantic_validator__.validate_json(body)
        except PydanticSerializationError:
            raise BadInput(
                key=key.path, field=_unwritable(record), cause="no JSON for its value"
            ) from None
        except ValidationError as error:
            raise BadInput(key=key.path, cause=self._cause(error)) from None
        if self._compares and back != record:
            field = next(
                name
                for name in kind.model_fields
                if getattr(back, name, None) != getattr(record, name, None)
            )
            raise BadInput(key=key.path, field=field, cause="it would come back different")
        return body, back

    def decode(self, key_path: str, version: object, body: Any) -> R:  # noqa: ANN401 - as the file has it
        """The record of a stored body.

        Raises:
            RecordUnreadable: no codec version accepts it.
        """
        if version != self.version:
            return self._lift(key_path, version, body)
        try:
            record: R = self.collection.record.__pydantic_validator__.validate_json(body)
        except ValidationError as error:
            raise RecordUnreadable(key=key_path, cause=self._cause(error)) from None
        return record

    def _lift(self, key_path: str, version: object, body: bytes) -> R:
        if not isinstance(version, int) or not 1 <= version < self.version:
            shown = version if isinstance(version, int) else type(version).__name__
            raise RecordUnreadable(
                key=key_path, cause=f"codec version {shown}; this one knows 1 to {self.version}"
            )
        try:
            value = orjson.loads(body)
        except orjson.JSONDecodeError:
            raise RecordUnreadable(key=key_path, cause="invalid JSON") from None
        try:
            for step in range(version, self.version):
                value = self._upgrades[step](value)
            lifted = orjson.dumps(value)
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            cause = f"the upgrade of version {version} failed with {type(error).__name__}"
            raise RecordUnreadable(key=key_path, cause=cause) from None
        return self.decode(key_path, self.version, lifted)

    def _cause(self, error: ValidationError) -> str:
        """Kind and place of the first problem; a place outside the declared names is not shown."""
        first = error.errors(include_input=False, include_context=False, include_url=False)[0]
        place = ".".join(
            str(part) if isinstance(part, int) or part in self._names else "?"
            for part in first["loc"]
        )
        more = f" and {error.error_count() - 1} more" if error.error_count() > 1 else ""
        return f"{first['type']} at {place or 'the top'}{more}"


def _unwritable(record: Record) -> str:
    """The first field that has no JSON."""
    for name in type(record).model_fields:
        try:
            record.__pydantic_serializer__.to_json(record, include={name}, warnings="error")
        except PydanticSerializationError:
            return name
    return "the record as a whole"


class _Shape:
    """What a record type is made of: its field names, and whether values may vary freely.

    `open` types (anything goes, or fractions) do not all survive JSON, so each write is compared.
    `mutable` ones hold lists, sets or dicts, which readers must not share.
    """

    def __init__(self, record: type[BaseModel]) -> None:
        self.names: set[str] = set()
        self.open = False
        self.mutable = False
        self._seen: set[int] = set()
        self._walk(record)

    def _walk(self, annotation: object) -> None:
        if id(annotation) in self._seen:
            return
        self._seen.add(id(annotation))
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            for name, info in annotation.model_fields.items():
                self.names.add(name)
                self._walk(info.annotation)
            return
        origin = get_origin(annotation)
        if origin is None and hasattr(annotation, "__value__"):
            self._walk(annotation.__value__)
            return
        if annotation in (Any, object, float) or isinstance(annotation, TypeVar):
            self.open = True
        if any(kind in (dict, list, set, bytearray, Any, object) for kind in (annotation, origin)):
            self.mutable = True
        if isinstance(annotation, type) and origin is None and annotation in (dict, list, tuple):
            self.open = True
        for argument in get_args(annotation):
            if isinstance(argument, (str, int, bytes, Enum)) or argument in (None, Ellipsis):
                continue
            self._walk(argument)


def has_field(record: type[BaseModel], path: str) -> bool:
    """Whether some record of this type can have the dotted path."""
    head, _, rest = path.partition(".")
    info = record.model_fields.get(head)
    if info is None:
        return False
    return not rest or any(has_field(model, rest) for model in _models(info.annotation))


def _models(annotation: object) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    if hasattr(annotation, "__value__"):
        return _models(annotation.__value__)
    return [model for argument in get_args(annotation) for model in _models(argument)]
