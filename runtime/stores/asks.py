"""Asks: a query checked against its declaration, and the cursors of pages. Shared by stores.

A cursor is an opaque text carrying the last ordered value and ID. It is bound to its ask by a
check sum, so that a cursor of another query, or an edited one, is refused rather than followed.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from dataclasses import dataclass
from typing import Any, Final

import orjson

from runtime.errors import BadInput, UndeclaredQuery
from runtime.ports import Ask, Query
from runtime.stores.codec import plain

LIMIT_MAX: Final = 500
_SUM_CHARS: Final = 12

Plain = str | int | None


@dataclass(frozen=True, slots=True)
class Checked:
    """An ask whose every part fits its declaration. `after` is (ordered value, id, scope path)."""

    equals: tuple[Plain, ...]
    since: Plain
    before: Plain
    after: tuple[str | int, str, str] | None
    limit: int


def check_ask(ask: Ask[Any], query: Query) -> Checked:
    """The ask in comparable values.

    Raises:
        UndeclaredQuery: other filters than the declared ones, or across tenants undeclared.
        BadInput: a limit outside 1..500, or a cursor that is not this ask's.
    """
    if len(ask.equals) != len(query.equals):
        raise UndeclaredQuery(
            collection=ask.collection.name,
            query=ask.query,
            cause=f"takes {len(query.equals)} equal values, was given {len(ask.equals)}",
        )
    if ask.scope is None and not query.across:
        raise UndeclaredQuery(
            collection=ask.collection.name, query=ask.query, cause="not declared across tenants"
        )
    if ask.scope is not None and not query.within:
        raise UndeclaredQuery(
            collection=ask.collection.name, query=ask.query, cause="declared across tenants only"
        )
    if not 1 <= ask.limit <= LIMIT_MAX:
        raise BadInput(field="limit", value=ask.limit, cause=f"outside 1..{LIMIT_MAX}")
    since = plain(ask.since)
    after = None if ask.after is None else _open_cursor(ask, ask.after)
    if after is not None and since is not None and not _at_least(after[0], since):
        raise BadInput(field="after", cause="the cursor lies before `since`")
    return Checked(
        equals=tuple([plain(value) for value in ask.equals]),
        since=since,
        before=plain(ask.before),
        after=after,
        limit=ask.limit,
    )


def _at_least(value: str | int, bound: str | int) -> bool:
    if isinstance(value, int) and isinstance(bound, int):
        return value >= bound
    return str(value) >= str(bound)


def make_cursor(ask: Ask[Any], value: str | int, id_: str, scope_path: str) -> str:
    """The cursor that continues `ask` behind one row."""
    body = orjson.dumps([value, id_, scope_path])
    return base64.urlsafe_b64encode(_sum(ask, body) + body).decode()


def _open_cursor(ask: Ask[Any], cursor: str) -> tuple[str | int, str, str]:
    try:
        raw = base64.b64decode(cursor.encode("ascii"), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        raise BadInput(field="after", cause="not a cursor") from None
    body = raw[_SUM_CHARS:]
    if raw[:_SUM_CHARS] != _sum(ask, body):
        raise BadInput(field="after", cause="not a cursor of this query")
    value, id_, scope_path = orjson.loads(body)
    return value, id_, scope_path


def _sum(ask: Ask[Any], body: bytes) -> bytes:
    scope = "*" if ask.scope is None else ask.scope.path
    equals = orjson.dumps([plain(value) for value in ask.equals])
    head = f"{ask.collection.name}\n{ask.query}\n{scope}\n".encode()
    return hashlib.sha256(head + equals + b"\n" + body).hexdigest()[:_SUM_CHARS].encode()
