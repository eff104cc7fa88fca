"""Store conformance: a scoped handle reads, asks and writes inside its scopes only (INV-18)."""

from __future__ import annotations

from typing import Any

import pytest

from runtime.domain.values import DIRECTORY, Scope, Tenant
from runtime.errors import ScopeViolation
from runtime.ports import Ask, Commit, Create, Delete, Key, Page, Put, Reads, Store, Write
from runtime.stores.scoped import Scoped
from tests.conformance.records import ABROAD, ACME, OTHER, TALLIES, TASKS, Tally
from tests.conformance.stores import Attempts, R

INSIDE = TALLIES.key(ACME, "a")
OUTSIDE = [
    TALLIES.key(scope, "a")
    for scope in (OTHER, ABROAD, DIRECTORY, Tenant(workspace="acme", brand="mai"))
]


class NoIO:
    """A store that must not be reached."""

    async def get(self, key: Any) -> Any:  # noqa: ANN401 - any record
        pytest.fail(f"reached the store for {key}")

    async def find(self, ask: Ask[R]) -> Page[R]:
        pytest.fail(f"reached the store for {ask}")

    async def transact(self, body: Any) -> Any:  # noqa: ANN401 - any outcome
        """Run the body, as any store does; apply nothing."""
        return (await body(self)).outcome

    async def close(self) -> None:
        pytest.fail("closed a store that it does not own")


@pytest.mark.parametrize("key", OUTSIDE, ids=lambda key: key.scope.path)
async def test_a_key_outside_is_refused_before_any_io(key: Key[Tally]) -> None:
    handle = Scoped(NoIO(), [ACME])
    writes: list[Write] = [Create(key, Tally(value=1)), Put(key, Tally(value=1)), Delete(key)]
    with pytest.raises(ScopeViolation) as caught:
        await handle.get(key)
    assert caught.value.fields == {"key": key.path, "scope": ACME.path}

    async def reading(reads: Reads) -> Commit[None]:
        await reads.get(key)
        return Commit(None)

    with pytest.raises(ScopeViolation):
        await handle.transact(reading)
    for write in writes:

        async def writing(reads: Reads, write: Write = write) -> Commit[None]:
            return Commit(None, (Put(INSIDE, Tally(value=1)), write))

        with pytest.raises(ScopeViolation):
            await handle.transact(writing)


@pytest.mark.parametrize("scope", [OTHER, DIRECTORY, None], ids=str)
async def test_an_ask_outside_or_across_tenants_is_refused_before_any_io(
    scope: Scope | None,
) -> None:
    handle = Scoped(NoIO(), [ACME])
    ask = Ask(TASKS, "all", scope)
    with pytest.raises(ScopeViolation):
        await handle.find(ask)

    async def body(reads: Reads) -> Commit[None]:
        await reads.find(ask)
        return Commit(None)

    with pytest.raises(ScopeViolation):
        await handle.transact(body)


async def test_a_refused_write_takes_the_whole_commit_with_it(store: Attempts) -> None:
    handle = Scoped(store, [ACME])

    async def body(reads: Reads) -> Commit[None]:
        return Commit(None, (Put(INSIDE, Tally(value=1)), Put(OUTSIDE[0], Tally(value=1))))

    with pytest.raises(ScopeViolation):
        await handle.transact(body)
    assert await store.get(INSIDE) is None


async def test_inside_its_scopes_a_handle_is_the_store(store: Attempts) -> None:
    handle: Store = Scoped(store, [ACME, DIRECTORY])
    both = (INSIDE, TALLIES.key(DIRECTORY, "a"))

    async def body(reads: Reads) -> Commit[int]:
        assert [await reads.get(key) for key in both] == [None, None]
        assert (await reads.find(Ask(TASKS, "all", ACME))).rows == ()
        return Commit(2, [Create(key, Tally(value=1)) for key in both])

    assert await handle.transact(body) == 2
    assert [await handle.get(key) for key in both] == [Tally(value=1)] * 2
    assert (await handle.find(Ask(TASKS, "all", DIRECTORY))).rows == ()
    await handle.close()
    assert await store.get(INSIDE) == Tally(value=1)


async def test_the_same_id_in_two_scopes_is_two_records(store: Attempts) -> None:
    async def body(reads: Reads) -> Commit[None]:
        keys = [INSIDE, *OUTSIDE]
        return Commit(None, [Create(key, Tally(value=n)) for n, key in enumerate(keys)])

    await store.transact(body)
    for n, key in enumerate([INSIDE, *OUTSIDE]):
        assert await store.get(key) == Tally(value=n)
