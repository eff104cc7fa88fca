"""Records and collections of the store suite, small enough to reason about."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from runtime.domain.values import Id, Record, Tenant, UtcTime
from runtime.ports import Collection, Query

ACME = Tenant(workspace="acme", brand="main")
OTHER = Tenant(workspace="acme", brand="other")
ABROAD = Tenant(workspace="zeta", brand="main")


class Tally(Record):
    """A number, and the token of whoever changed it last."""

    value: int
    token: str = ""


class Open(Record):
    """Ready from a time on."""

    name: Literal["open"] = "open"
    ready_at: UtcTime


class Closed(Record):
    """Ended; it has no `ready_at`."""

    name: Literal["closed"] = "closed"
    at: UtcTime


class Task(Record):
    """A record with states, as most are."""

    id: Id
    kind: str
    rank: int
    urgent: bool = False
    owner: str | None = None
    state: Annotated[Open | Closed, Field(discriminator="name")]


class Loose(Record):
    """Free fields: whatever JSON holds."""

    data: dict[str, Any]
    more: Any = None


class Blob(Record):
    """A text of any length."""

    text: str


class Moment(Record):
    """One instant."""

    at: UtcTime


TALLIES = Collection("tallies", Tally)
TASKS = Collection(
    "tasks",
    Task,
    (
        Query("ready", ("state.name",), "state.ready_at", across=True),
        Query("ranked", ("kind", "urgent"), "rank"),
        Query("of_owner", ("owner",), "id", across=True),
        Query("all", (), "rank", across=True),
    ),
)
LOOSE = Collection("loose", Loose)
BLOBS = Collection("blobs", Blob)
MOMENTS = Collection("moments", Moment, (Query("by_time", (), "at"),))
SUITE = (TALLIES, TASKS, LOOSE, BLOBS, MOMENTS)
