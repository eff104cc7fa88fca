"""Ports: everything the runtime needs from outside, and nothing else.

Time, ids, randomness, sleeping and the network are reachable only through these protocols, so that
one seeded world can own them all. Adapters live in `runtime/stores`, `runtime/blobs`,
`runtime/wakes`, `connectors` and `bot`.

The store contract (held by `tests/conformance/test_store.py`): commits are serialisable, absent
reads and the results of `reads.find` included; a body reads first and *returns* its writes, so a
re-run is harmless; a commit whose reply was lost is run again, and every body recognises its own
earlier success.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeVar

from runtime.domain.values import Record, Scope

if TYPE_CHECKING:
    from runtime.domain.effect import Answer, Command, Descriptor, Finding, Terms
    from runtime.domain.projection import Projection
    from runtime.domain.proposal import Thought

R = TypeVar("R", bound=Record)
R_co = TypeVar("R_co", bound=Record, covariant=True)
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Clock(Protocol):
    """Time. `now` is UTC; `monotonic` is seconds from an arbitrary start."""

    def now(self) -> datetime: ...
    def monotonic(self) -> float: ...
    async def sleep(self, seconds: float) -> None: ...


class Ids(Protocol):
    """Identifiers and randomness."""

    def new(self, prefix: str) -> str:
        """A fresh unique ID, `prefix` + "-" + random text."""
        ...

    def token(self) -> str:
        """A fresh unguessable token (at least 128 bits), URL-safe."""
        ...

    def fraction(self) -> float:
        """A random number in [0, 1), for jitter."""
        ...


@dataclass(frozen=True, slots=True)
class Query:
    """A declared query: equality on `equals`, ordered by `order` (then by ID), ascending.

    Fields are dotted paths into the record. `across` says that it may be asked over all tenants,
    `within` that it may be asked of one.
    """

    name: str
    equals: tuple[str, ...]
    order: str
    across: bool = False
    within: bool = True


@dataclass(frozen=True, slots=True)
class Collection(Generic[R]):
    """A named set of records of one type, with its declared queries.

    `codec` is the version written into each record; older versions are upgraded on reading.
    """

    name: str
    record: type[R]
    queries: tuple[Query, ...] = ()
    codec: int = 1

    def key(self, scope: Scope, id_: str) -> Key[R]:
        """The key of one record."""
        return Key(self, scope, id_)


class Key(NamedTuple, Generic[R]):
    """Where one record lives."""

    collection: Collection[R]
    scope: Scope
    id: str

    @property
    def path(self) -> str:
        """The full path, as stored and as shown in errors."""
        return f"{self.scope.path}/{self.collection.name}/{self.id}"


Value = str | int | bool | datetime | None


@dataclass(frozen=True, slots=True)
class Ask(Generic[R]):
    """One use of a declared query. `scope` None asks across tenants (engine loops only).

    `before` and `since` bound the ordered field: since <= field < before. `after` is the cursor of
    the previous page. `limit` is between 1 and 500.
    """

    collection: Collection[R]
    query: str
    scope: Scope | None
    equals: tuple[Value, ...] = ()
    since: Value = None
    before: Value = None
    after: str | None = None
    limit: int = 100


@dataclass(frozen=True, slots=True)
class Found(Generic[R]):
    """One row of a page."""

    key: Key[R]
    record: R


@dataclass(frozen=True, slots=True)
class Page(Generic[R]):
    """Rows in order, rows that could not be decoded, and the cursor of the next page, if any.

    `unreadable` holds (key path, cause): a broken row is reported and skipped, never fatal.
    """

    rows: tuple[Found[R], ...]
    cursor: str | None
    unreadable: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Create(Generic[R]):
    """Write a record that must not exist."""

    key: Key[R]
    record: R


@dataclass(frozen=True, slots=True)
class Put(Generic[R]):
    """Write a record whether it exists or not."""

    key: Key[R]
    record: R


@dataclass(frozen=True, slots=True)
class Delete:
    """Remove a record; removing an absent one is fine."""

    key: Key[Any]


Write = Create[Any] | Put[Any] | Delete


@dataclass(frozen=True, slots=True)
class Commit(Generic[T_co]):
    """What a body decided: its outcome and the writes that make it true."""

    outcome: T_co
    writes: Sequence[Write] = field(default_factory=tuple)


class Reads(Protocol):
    """What a body may see. Everything read here is validated at commit."""

    async def get(self, key: Key[R]) -> R | None: ...
    async def find(self, ask: Ask[R]) -> Page[R]: ...


Body = Callable[[Reads], Awaitable[Commit[T]]]


class Store(Protocol):
    """Durable truth. See the module docstring for what it guarantees.

    Raises: Contention, AlreadyExists, RecordTooLarge, RecordUnreadable (get), UndeclaredQuery,
    ScopeViolation, StoreUnavailable.
    """

    async def transact(self, body: Body[T]) -> T: ...
    async def get(self, key: Key[R]) -> R | None: ...
    async def find(self, ask: Ask[R]) -> Page[R]: ...
    async def close(self) -> None: ...


class Blobs(Protocol):
    """Bytes of artifacts under opaque names. A name is written once and never replaced."""

    async def write(self, name: str, chunks: AsyncIterator[bytes]) -> int:
        """Store the bytes durably, create-only; the number of bytes. An equal re-write is fine.

        Raises: AlreadyExists if other bytes are there.
        """
        ...

    async def read(self, name: str, start: int, count: int) -> bytes:
        """At most `count` bytes from `start`. Raises ArtifactMissing."""
        ...

    async def size(self, name: str) -> int | None: ...
    async def delete(self, name: str) -> bool: ...


@dataclass(frozen=True, slots=True)
class Hint:
    """There may be work: a signal, never permission or memory."""

    scope: Scope
    operation: str


class Wakes(Protocol):
    """How workers learn that they should look. Losing or repeating a hint changes no outcome."""

    async def announce(self, hints: Sequence[Hint]) -> None: ...
    async def next(self, timeout_seconds: float) -> Sequence[Hint]: ...


class Connector(Protocol):
    """One provider. Five calls that never collapse into one; only `execute` may change the world.

    `execute` never raises for what the provider did: every answer is classified.
    """

    @property
    def descriptor(self) -> Descriptor: ...
    async def validate_connection(self) -> Finding: ...
    async def prepare(self, terms: Terms) -> str | Finding:
        """The exact payload text (canonical JSON) to approve, or why it cannot be done."""
        ...

    async def execute(self, command: Command) -> Answer: ...
    async def verify(self, command: Command, reference: str) -> Finding: ...
    async def reconcile(self, command: Command) -> Answer: ...


class Cognition(Protocol):
    """A model behind an agent: projection in, typed result out. It executes nothing.

    Raises: CognitionError for anything but complete output of the agreed shape.
    """

    @property
    def model(self) -> str:
        """The model's own name, as shown to operators and written into manifests."""
        ...

    async def think(self, projection: Projection) -> Thought: ...


@dataclass(frozen=True, slots=True)
class Button:
    """One inline button. `data` is an opaque token of at most 64 bytes."""

    label: str
    data: str


@dataclass(frozen=True, slots=True)
class Content:
    """What a message shows. `text` is Telegram HTML; `buttons` are rows.

    `document` is (file name, content type, bytes) for a message that carries a file. `ask` asks the
    client to open a reply box, for one person.
    """

    text: str
    buttons: tuple[tuple[Button, ...], ...] = ()
    document: tuple[str, str, bytes] | None = None
    ask: bool = False
    reply_to: int | None = None


@dataclass(frozen=True, slots=True)
class Sent:
    """The message is there."""

    message: int


@dataclass(frozen=True, slots=True)
class Unchanged:
    """The message already shows this."""


@dataclass(frozen=True, slots=True)
class Gone:
    """The message to edit is not there any more or cannot be edited."""

    reason: str


@dataclass(frozen=True, slots=True)
class Throttled:
    """Not sent; the chat accepts again after `seconds`."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Unreachable:
    """Not sent, and this destination will not accept (blocked, deleted, kicked)."""

    reason: str


@dataclass(frozen=True, slots=True)
class Moved:
    """Not sent; the chat lives on under another ID."""

    chat: int


@dataclass(frozen=True, slots=True)
class Refused:
    """Not sent: the messenger refused this content."""

    reason: str


@dataclass(frozen=True, slots=True)
class NotEntered:
    """Proved not sent: the request never reached the messenger. May be sent again."""

    reason: str


@dataclass(frozen=True, slots=True)
class Uncertain:
    """It may have been sent: the answer was lost."""

    reason: str


Delivery = (
    Sent | Unchanged | Gone | Throttled | Unreachable | Moved | Refused | NotEntered | Uncertain
)


class Messenger(Protocol):
    """Sends to people. Never raises for what the other side did: every answer is classified."""

    async def send(self, destination: str, content: Content) -> Delivery: ...
    async def edit(self, destination: str, message: int, content: Content) -> Delivery: ...
    async def answer(self, query: str, text: str, *, alert: bool = False) -> None:
        """Answer a press; best effort."""
        ...

    async def download(self, file: str) -> bytes:
        """The bytes of a file that a person sent. Raises BadInput or StoreUnavailable."""
        ...


@dataclass(frozen=True, slots=True)
class Fetched:
    """What a guarded fetch brought: bytes, where from (log-safe), and the declared type."""

    data: bytes
    address: str
    content_type: str
    file_name: str


class Fetch(Protocol):
    """Guarded links: schemes, address ranges, redirects, size and time are checked.

    Raises: BadInput with a sentence for the operator.
    """

    async def fetch(self, link: str) -> Fetched: ...


class Secrets(Protocol):
    """Named secrets. A value never reaches logs, errors, URLs or the store."""

    def read(self, name: str) -> bytes | None: ...
