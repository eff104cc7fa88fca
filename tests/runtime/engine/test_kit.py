"""The kit: hints and signals follow from a commit, and never from one that did not happen."""

from __future__ import annotations

from pathlib import Path

import pytest

from runtime.domain import operation as operations
from runtime.domain.values import sha256
from runtime.engine.kit import Kit, Signals, claimable
from runtime.errors import AlreadyExists
from runtime.ports import Commit, Create, Delete, Hint, Put, Reads
from runtime.stores.collections import COUNTERS, OPERATIONS, Counter
from tests.effects_made import export
from tests.world import ACME, OTHER, START, NoWakes, ReplyLosing, make_kit

MADE = export().operation
KEY = OPERATIONS.key(ACME, MADE.id)


async def kit_of(folder: Path, **more: object) -> tuple[Kit, NoWakes]:
    made = await make_kit(folder, **more)  # type: ignore[arg-type]  # passed through
    wakes = NoWakes()
    return Kit(made.clock, made.ids, made.store, wakes), wakes


def test_only_what_became_claimable_is_hinted_at() -> None:
    claimed = operations.claim(MADE, sha256(b"o"), START)
    assert isinstance(claimed, operations.Operation)
    other = OPERATIONS.key(OTHER, "op-2")
    writes = (
        Create(KEY, MADE),
        Put(KEY, claimed),
        Put(other, MADE.model_copy(update={"id": "op-2"})),
        Delete(KEY),
        Put(COUNTERS.key(ACME, "n"), Counter(id="n", value=1)),
    )
    assert claimable(writes) == (Hint(ACME, MADE.id), Hint(OTHER, "op-2"))


async def test_a_hint_is_given_after_the_commit(tmp_path: Path) -> None:
    kit, wakes = await kit_of(tmp_path)

    async def body(reads: Reads) -> Commit[str]:
        assert wakes.hints == []
        return Commit("made", (Create(KEY, MADE),))

    assert await kit.commit(body) == "made"
    assert wakes.hints == [Hint(ACME, MADE.id)]


async def test_a_commit_that_fails_hints_at_nothing(tmp_path: Path) -> None:
    kit, wakes = await kit_of(tmp_path)

    async def body(reads: Reads) -> Commit[None]:
        return Commit(None, (Create(KEY, MADE),))

    await kit.commit(body)
    wakes.hints.clear()
    seen = kit.signals.of("operations")
    with pytest.raises(AlreadyExists):
        await kit.commit(body)
    assert wakes.hints == []
    assert not seen.is_set()


async def test_the_writes_of_the_run_that_stands_are_hinted_at(tmp_path: Path) -> None:
    kit, wakes = await kit_of(tmp_path, wrap=ReplyLosing)

    async def body(reads: Reads) -> Commit[None]:
        known = await reads.get(KEY)
        return Commit(None, () if known is not None else (Create(KEY, MADE),))

    await kit.commit(body)
    # The last run recognised its own success and wrote nothing; the work is found by the query.
    assert wakes.hints in ([], [Hint(ACME, MADE.id)])


async def test_a_loop_hears_of_the_collections_it_watches(tmp_path: Path) -> None:
    kit, _ = await kit_of(tmp_path)
    operations_changed, counters_changed = (
        kit.signals.of("operations"),
        kit.signals.of("counters"),
    )

    async def body(reads: Reads) -> Commit[None]:
        return Commit(None, (Create(KEY, MADE),))

    await kit.commit(body)
    assert operations_changed.is_set()
    assert not counters_changed.is_set()


def test_signals_that_nobody_watches_cost_nothing() -> None:
    signals = Signals()
    signals.touch((Delete(KEY),))
    assert signals.of("operations") is signals.of("operations")
    assert not signals.of("operations").is_set()
