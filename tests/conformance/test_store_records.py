"""Store conformance: records come back as they were, or are refused with their field named."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from runtime.errors import BadInput, RecordTooLarge, RecordUnreadable, UndeclaredQuery
from runtime.ports import Collection, Commit, Key, Put, Reads
from tests.conformance.records import (
    ACME,
    BLOBS,
    LOOSE,
    MOMENTS,
    TALLIES,
    TASKS,
    Blob,
    Loose,
    Moment,
    Open,
    Tally,
    Task,
)
from tests.conformance.stores import Attempts, Backend

LIMIT = 1_048_576
EMPTY_BLOB_BYTES = len('{"text":""}')


async def put(store: Attempts, *writes: Put[Any]) -> None:
    async def body(reads: Reads) -> Commit[None]:
        return Commit(None, writes)

    await store.transact(body)


async def read_in_body(store: Attempts, key: Key[Any]) -> Any:  # noqa: ANN401 - any record
    async def body(reads: Reads) -> Commit[Any]:
        return Commit(await reads.get(key))

    return await store.transact(body)


@pytest.mark.parametrize("extra", [-1, 0, 1])
async def test_a_record_of_one_mebibyte_is_the_largest(store: Attempts, extra: int) -> None:
    key = BLOBS.key(ACME, "big")
    blob = Blob(text="x" * (LIMIT - EMPTY_BLOB_BYTES + extra))
    if extra <= 0:
        await put(store, Put(key, blob))
        assert await store.get(key) == blob
        return
    with pytest.raises(RecordTooLarge) as caught:
        await put(store, Put(TALLIES.key(ACME, "a"), Tally(value=1)), Put(key, blob))
    assert caught.value.fields == {"key": key.path, "bytes": LIMIT + 1, "limit_bytes": LIMIT}
    assert await store.get(TALLIES.key(ACME, "a")) is None


async def test_the_size_is_counted_in_bytes_not_in_characters(store: Attempts) -> None:
    with pytest.raises(RecordTooLarge):
        await put(store, Put(BLOBS.key(ACME, "b"), Blob(text="ü" * (LIMIT // 2))))


@pytest.mark.parametrize(
    "at",
    [
        datetime(2027, 1, 4, 9, 0, 0, 0, tzinfo=UTC),
        datetime(2027, 1, 4, 9, 0, 0, 1, tzinfo=UTC),
        datetime(2027, 1, 4, 9, 0, 0, 999_999, tzinfo=UTC),
        datetime(1, 1, 1, tzinfo=UTC),
        datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
        datetime(2027, 3, 28, 3, 30, 0, 5, tzinfo=timezone(timedelta(hours=5, minutes=45))),
    ],
)
async def test_times_come_back_to_the_microsecond_in_utc(backend: Backend, at: datetime) -> None:
    key = MOMENTS.key(ACME, "m")
    await put(backend.open(), Put(key, Moment(at=at)))
    back = await backend.open().get(key)
    assert back is not None
    assert back.at == at
    assert back.at.utcoffset() == timedelta(0)


@pytest.mark.parametrize(
    "data",
    [
        {"": 1, "__x__": 2, "eu.prod/worker-1": 3, "a.b": {"c.d": 4}, "`": 5, "ключ": 6},
        {"keyboard": [[{"text": "yes"}, {"text": "no"}], [], [[1, 2], [3]]]},
        {"deep": [[[[[[[[None]]]]]]]]},
        {"numbers": [0, -1, 2**53 - 1, 2**70, 0.1, 1e300], "flags": [True, False, None]},
        {"text": "\x00\u2028\U0001f600 é e\u0301"},
        {},
    ],
)
async def test_free_fields_come_back_identical(backend: Backend, data: dict[str, Any]) -> None:
    key = LOOSE.key(ACME, "l")
    await put(backend.open(), Put(key, Loose(data=data, more=data)))
    back = await backend.open().get(key)
    assert back == Loose(data=data, more=data)
    assert repr(back) == repr(Loose(data=data, more=data))


@pytest.mark.parametrize(
    "value",
    [
        float("nan"),
        float("inf"),
        (1, 2),
        {1, 2},
        {"a": b"\xff\xfe"},
        datetime(2027, 1, 4, tzinfo=UTC),
        {1: "one"},
        "\ud800",
        ["\udfff"],
        {"\ud800": 1},
        object(),
    ],
)
async def test_what_would_not_come_back_is_refused_with_its_field(
    store: Attempts, value: object
) -> None:
    key = LOOSE.key(ACME, "l")
    with pytest.raises(BadInput) as caught:
        await put(store, Put(key, Loose(data={"ok": 1}, more=value)))
    assert caught.value.fields["field"] == "more"
    assert caught.value.fields["key"] == key.path
    assert await store.get(key) is None


async def test_a_record_changed_past_its_rules_is_refused_without_its_content(
    store: Attempts,
) -> None:
    task = Task(
        id="one", kind="post", rank=1, state=Open(ready_at=datetime(2027, 1, 4, tzinfo=UTC))
    )
    for field, wrong in (("rank", "s3cret"), ("id", "s3cret id"), ("state", "s3cret")):
        with pytest.raises(BadInput) as caught:
            await put(store, Put(TASKS.key(ACME, "one"), task.model_copy(update={field: wrong})))
        assert field in str(caught.value)
        assert "s3cret" not in str(caught.value)


async def test_a_record_of_another_type_is_refused(store: Attempts) -> None:
    class Louder(Tally):
        volume: int = 11

    key = TALLIES.key(ACME, "a")
    for record in (Louder(value=1), Blob(text="x")):
        with pytest.raises(BadInput, match="not a Tally"):
            await put(store, Put(key, record))


@pytest.mark.parametrize(
    "id_", ["", ".", "..", "__x__", "a/b", "a b", "ü", "x" * 301, "a\n", "\x00"]
)
async def test_an_id_that_some_store_could_not_hold_is_refused(store: Attempts, id_: str) -> None:
    key = TALLIES.key(ACME, id_)
    with pytest.raises(BadInput):
        await store.get(key)
    with pytest.raises(BadInput):
        await put(store, Put(key, Tally(value=1)))


@pytest.mark.parametrize("id_", ["x" * 300, "a.b", "__x", "x__", "@+=:~-_", "..."])
async def test_an_id_of_the_agreed_letters_is_kept(store: Attempts, id_: str) -> None:
    await put(store, Put(TALLIES.key(ACME, id_), Tally(value=1)))
    assert await store.get(TALLIES.key(ACME, id_)) == Tally(value=1)


async def test_a_collection_that_was_not_declared_is_refused(store: Attempts) -> None:
    strange = Collection("strange", Tally)
    with pytest.raises(UndeclaredQuery):
        await store.get(strange.key(ACME, "a"))
    with pytest.raises(UndeclaredQuery):
        await put(store, Put(strange.key(ACME, "a"), Tally(value=1)))


@pytest.mark.parametrize(
    ("body", "codec", "cause"),
    [
        (b"", 1, "json_invalid"),
        (b"{", 1, "json_invalid"),
        (b'{"value": 1, "s3cret": 2}', 1, "extra_forbidden at ?"),
        (b'{"value": "s3cret"}', 1, "int_parsing at value"),
        (b'{"token": "s3cret"}', 1, "missing at value"),
        (b"\xff\xfe", 1, "json_invalid"),
        (b'{"value": 1}', 2, "codec version 2"),
        (b'{"value": 1}', 0, "codec version 0"),
    ],
)
async def test_a_broken_row_is_unreadable_and_says_why_without_its_content(
    backend: Backend, body: bytes, codec: int, cause: str
) -> None:
    key = TALLIES.key(ACME, "broken")
    store = backend.open()
    await put(store, Put(key, Tally(value=1)))
    backend.spoil(key, body, codec)
    with pytest.raises(RecordUnreadable) as caught:
        await store.get(key)
    assert caught.value.fields["key"] == key.path
    assert cause in str(caught.value.fields["cause"])
    assert "s3cret" not in str(caught.value)
    with pytest.raises(RecordUnreadable):
        await read_in_body(backend.open(), key)
    # A broken row can be replaced: it is not a dead end.
    await put(store, Put(key, Tally(value=2)))
    assert await read_in_body(store, key) == Tally(value=2)


async def test_what_a_reader_does_to_its_record_changes_nobody_elses(store: Attempts) -> None:
    key = LOOSE.key(ACME, "l")
    await put(store, Put(key, Loose(data={"a": [1]})))
    for _ in range(2):
        loose = await read_in_body(store, key)
        assert loose.data == {"a": [1]}
        loose.data["a"].append(2)
