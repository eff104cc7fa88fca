"""Deaths, lost replies and thefts at every commit of an export: one effect, or a person. INV-6."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import pytest

from runtime.errors import FenceLost
from runtime.ports import Store
from runtime.stores.sqlite import SqliteStore
from tests.conformance.stores import Lossy
from tests.effects_made import Act, Crash, Provider, export
from tests.runtime.engine.carrying import Carrier, begin, carrier, settled

EXPORT_ID = "job-1:export"


@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_crash_at_any_commit_ends_in_one_effect(
    tmp_path: Path, when: Literal["before", "after"]
) -> None:
    """INV-6: the provider's ledger is the judge."""
    crashes = 0
    for number in range(1, 30):
        folder = tmp_path / str(number)
        folder.mkdir()
        first = await begin(folder)
        first.watched.crash_at = (first.watched.count + number, when)
        try:
            await first.to_the_end()
        except Crash:
            crashes += 1
        else:
            await settled(first)
            break
        second = await carrier(folder, first.provider, clock=first.clock, seed=number)
        await second.to_the_end()
        await settled(second)
    assert crashes == 7  # two claims; prepared, dispatched, observed, settled; the look


async def test_two_crashes_at_any_two_commits_end_in_one_effect(tmp_path: Path) -> None:
    """INV-6: also the recovery may die."""
    pairs = seed = 0
    for one in range(1, 8):
        for two in range(1, 8):
            folder = tmp_path / f"{one}-{two}"
            folder.mkdir()
            at = await begin(folder)
            for number in (one, two):
                at.watched.crash_at = (at.watched.count + number, "after")
                with contextlib.suppress(Crash):
                    await at.to_the_end()
                seed += 1
                at = await carrier(folder, at.provider, clock=at.clock, seed=seed)
            await at.to_the_end()
            await settled(at)
            pairs += 1
    assert pairs == 49


@pytest.mark.parametrize("act", ["crash", "apply, crash", "apply, reply lost", "reply lost"])
async def test_a_send_whose_answer_is_missing_is_looked_for_and_never_repeated(
    tmp_path: Path, act: Act
) -> None:
    """INV-6: only proof of absence opens the second attempt."""
    at = await begin(tmp_path, act)
    if "crash" in act:
        with pytest.raises(Crash):
            await at.carry(EXPORT_ID)
        at = await carrier(tmp_path, at.provider, clock=at.clock, seed=1)
    await at.to_the_end()
    await settled(at)
    assert at.provider.reconciled == 1
    attempts = [attempt for _, attempt in at.provider.calls]
    assert attempts == ([1] if act.startswith("apply") else [1, 2])
    origin = "reconciliation" if act.startswith("apply") else "observation"
    assert (await at.receipts())[0].origin == origin


def losing(when: Literal["before", "after"]) -> Callable[[Store], Store]:
    """Each transaction loses its first reply."""

    def wrap(store: Store) -> Store:
        assert isinstance(store, SqliteStore)
        return Lossy(store, when)

    return wrap


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("act", ["apply", "reply lost", "reject", "not entered"])
async def test_lost_replies_of_commits_change_no_outcome(
    tmp_path: Path, act: Act, when: Literal["before", "after"]
) -> None:
    ends = []
    for name, lossy in (("lossy", True), ("plain", False)):
        folder = tmp_path / name
        folder.mkdir()
        provider = Provider([act])
        at = await carrier(
            folder,
            provider,
            wrap=losing(when) if lossy else lambda store: store,
        )
        await at.begin(export())
        await at.to_the_end()
        ends.append((await at.everything(), provider.calls, provider.ledger))
    assert ends[0] == ends[1]


async def test_a_stale_epoch_is_refused_at_every_commit_and_changes_nothing(tmp_path: Path) -> None:
    """INV-3."""
    refused = 0
    for number in range(1, 10):
        folder = tmp_path / str(number)
        folder.mkdir()
        at = await begin(folder)
        work = await at.claim(EXPORT_ID)
        seen: list[list[str]] = []

        async def steal(at: Carrier = at, seen: list[list[str]] = seen) -> None:
            await at.steal(EXPORT_ID)
            seen.append(await at.everything())

        at.watched.before = (at.watched.count + number, steal)
        try:
            await at.handlers["stage.export"](work)
        except FenceLost:
            refused += 1
            assert await at.everything() == seen[0]
        else:
            break
    assert refused == 4  # prepared, dispatched, observed, settled
