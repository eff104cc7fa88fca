"""What this process last knew of records, so that a body's reads need no query.

Never believed on its own: every version read is validated at commit, so an entry that another
process has outdated costs one re-run and is forgotten, and is never acted on.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from runtime.domain.values import Record
from runtime.ports import Key

CACHE_BYTES_MAX: Final = 4_000_000
_ENTRY_BYTES: Final = 300

Place = tuple[str, str, str]
"""Collection name, scope path, ID."""


def place_of(key: Key[Any]) -> Place:
    """Where a key's record lies, as the core knows it."""
    return (key.collection.name, key.scope.path, key.id)


class Known(NamedTuple):
    """One record at one version; version 0 is absence. `record` is None if it is not shareable."""

    version: int
    codec: int
    body: bytes | None
    record: Record | None


ABSENT: Final = Known(0, 0, None, None)


class RecordCache:
    """Two generations: what is used moves to the young one, and the old one is dropped whole."""

    __slots__ = ("_bytes", "_bytes_max", "_old", "_young")

    def __init__(self, bytes_max: int = CACHE_BYTES_MAX) -> None:
        self._bytes_max = bytes_max // 2
        self._bytes = 0
        self._young: dict[Place, Known] = {}
        self._old: dict[Place, Known] = {}

    def get(self, place: Place) -> Known | None:
        """What is known of a record, if anything."""
        known = self._young.get(place)
        if known is None and (known := self._old.get(place)) is not None:
            self.put(place, known)
        return known

    def put(self, place: Place, known: Known) -> None:
        """Remember; a whole generation goes when there is too much."""
        self._young[place] = known
        self._bytes += _ENTRY_BYTES + (len(known.body) if known.body is not None else 0)
        if self._bytes > self._bytes_max:
            self._old, self._young, self._bytes = self._young, {}, 0

    def forget(self, place: Place) -> None:
        """Know nothing of a record."""
        self._young.pop(place, None)
        self._old.pop(place, None)
