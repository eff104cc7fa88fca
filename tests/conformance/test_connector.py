"""What every connector keeps: its descriptor, five separate calls, one effect, provable outcomes.

A connector joins by an entry in `KINDS`. Tests that need real processes name what they need.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from connectors.content_pack.connector import ContentPack
from connectors.registry import Registry, contract_flaws
from runtime.domain.effect import (
    AnswerAbsent,
    AnswerApplied,
    AnswerNotEntered,
    AnswerRejected,
    AnswerUnknown,
    Command,
)
from runtime.ports import Connector
from tests.connectors.content_pack.children import Child, fork, sender
from tests.effects_made import command
from tests.world import ManualClock

DEATHS_MIN = 10
"""A send makes at least so many calls to the system; fewer would mean that nothing was killed."""


@dataclass(frozen=True, slots=True)
class Kind:
    """How one connector is made over one outside world, and how a process sends through it."""

    make: Callable[[Path], Connector]
    send: Callable[[Path, Command, tuple[int, signal.Signals] | None], Child]
    effects: Callable[[Path], int]
    """How often the effect truly happened."""
    leftovers: Callable[[Path], list[str]]
    """What a death may leave behind in the outside world, beside effects."""


def _packs(world: Path) -> list[Path]:
    return [path for path in world.rglob("*") if path.is_file()]


KINDS = {
    "content_pack": Kind(
        make=lambda world: ContentPack(world, ManualClock()),
        send=sender,
        effects=lambda world: sum(path.suffix == ".zip" for path in _packs(world)),
        leftovers=lambda world: [
            path.name for path in _packs(world) if path.suffix not in {".zip", ".closed"}
        ],
    ),
}


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> Kind:
    return KINDS[request.param]


@pytest.fixture
def world(tmp_path: Path) -> Path:
    return tmp_path / "world"


async def sent(connector: Connector, what: Command) -> AnswerApplied:
    answer = await connector.execute(what)
    assert isinstance(answer, AnswerApplied), answer
    return answer


def test_the_descriptor_keeps_the_contract(kind: Kind, world: Path) -> None:
    connector = kind.make(world)
    assert contract_flaws(connector.descriptor) == []
    assert connector.descriptor.effects
    assert Registry([connector]).inactive == ()


async def test_a_connection_is_validated_without_an_effect(kind: Kind, world: Path) -> None:
    finding = await kind.make(world).validate_connection()
    assert finding.ok
    assert finding.evidence
    assert kind.effects(world) == 0


async def test_preparing_is_stable_and_has_no_effect(kind: Kind, world: Path) -> None:
    connector = kind.make(world)
    terms = command().terms
    prepared = await connector.prepare(terms)
    assert isinstance(prepared, str)
    again = await connector.prepare(terms.model_copy(update={"payload": prepared}))
    assert again == prepared
    assert kind.effects(world) == 0


async def test_an_effect_is_applied_verified_and_found_again(kind: Kind, world: Path) -> None:
    connector = kind.make(world)
    answer = await sent(connector, command())
    assert answer.reference
    finding = await connector.verify(command(), answer.reference)
    assert finding.ok
    assert finding.digest == answer.digest
    found = await connector.reconcile(command())
    assert isinstance(found, AnswerApplied)
    assert (found.reference, found.digest) == (answer.reference, answer.digest)
    assert kind.effects(world) == 1


async def test_an_idempotent_provider_does_the_same_command_once(kind: Kind, world: Path) -> None:
    connector = kind.make(world)
    if not connector.descriptor.idempotent:
        pytest.skip("this provider promises no idempotency key")
    assert await sent(connector, command()) == await sent(connector, command())
    assert kind.effects(world) == 1


async def test_two_commands_are_two_effects_even_with_the_same_content(
    kind: Kind, world: Path
) -> None:
    connector = kind.make(world)
    one = await sent(connector, command())
    two = await sent(connector, command().model_copy(update={"id": "another:command"}))
    assert one.reference != two.reference
    assert kind.effects(world) == 2


async def test_what_was_never_sent_is_not_found_and_not_verified(kind: Kind, world: Path) -> None:
    connector = kind.make(world)
    assert isinstance(await connector.reconcile(command()), AnswerAbsent | AnswerUnknown)
    assert not (await connector.verify(command(), "nowhere")).ok
    assert kind.effects(world) == 0


@pytest.mark.parametrize("payload", ["", "{}", "[]", '{"a":"\\u0000"}', "x" * 1_000])
async def test_a_payload_of_another_shape_is_answered_and_never_raised(
    kind: Kind, world: Path, payload: str
) -> None:
    connector = kind.make(world)
    terms = command().terms.model_copy(update={"payload": payload})
    odd = command().model_copy(update={"terms": terms, "terms_digest": terms.digest})
    assert not isinstance(await connector.prepare(terms), str)
    assert isinstance(await connector.execute(odd), AnswerRejected | AnswerNotEntered)
    assert isinstance(await connector.reconcile(odd), AnswerUnknown | AnswerAbsent)
    assert not (await connector.verify(odd, "nowhere")).ok
    assert kind.effects(world) == 0


async def test_the_effect_depends_on_nothing_but_the_command(kind: Kind, tmp_path: Path) -> None:
    one = await sent(kind.make(tmp_path / "one"), command())
    two = await sent(kind.make(tmp_path / "two"), command())
    assert one == two


def test_processes_that_race_with_one_command_make_one_effect(kind: Kind, tmp_path: Path) -> None:
    """Create-only: the one that is second finds what the first has made."""
    for number in range(8):
        world = tmp_path / str(number)
        gate_reads, gate_writes = os.pipe()

        def racer(pipe: int, world: Path = world, gate: int = gate_reads) -> str:
            del pipe
            connector = kind.make(world)
            assert isinstance(connector, ContentPack)
            os.read(gate, 1)
            return connector._execute(command()).model_dump_json()

        children = [fork(racer) for _ in range(3)]
        os.write(gate_writes, b"xxx")
        answers = [AnswerApplied.model_validate_json(child.answer()) for child in children]
        os.close(gate_reads)
        os.close(gate_writes)
        assert answers[0] == answers[1] == answers[2]
        assert kind.effects(world) == 1
        assert kind.leftovers(world) == []


async def test_a_sender_killed_before_any_call_leaves_a_provable_world(
    kind: Kind, tmp_path: Path
) -> None:
    """SIGKILL before each call to the system: a look says applied or absent, and it is so."""
    outcomes: list[str] = []
    for number in range(1, 60):
        world = tmp_path / str(number)
        told = kind.send(world, command(), (number, signal.SIGKILL)).answer()
        if told:
            break
        outcomes.append(await truth_after_death(kind, world))
    else:
        pytest.fail("the sender was killed at each of the calls and never came to its end")
    assert len(outcomes) >= DEATHS_MIN
    assert set(outcomes) == {"applied", "absent"}
    assert outcomes == sorted(outcomes)  # absent up to one call, applied from there


async def test_a_sender_killed_at_any_moment_leaves_a_provable_world(
    kind: Kind, tmp_path: Path
) -> None:
    """SIGKILL from outside, while a process sends command after command."""
    killed = 0
    for number in range(12):
        world = tmp_path / str(number)

        def work(pipe: int, world: Path = world) -> str:
            connector = kind.make(world)
            assert isinstance(connector, ContentPack)
            for index in range(10_000):
                os.write(pipe, b".")
                connector._execute(numbered(index))
            return "all"

        child = fork(work)
        for _ in range(1 + 3 * number):
            assert os.read(child.pipe, 1) == b"."
        os.kill(child.pid, signal.SIGKILL)
        begun = 1 + 3 * number + len(child.answer())
        killed += 1
        for index in range(begun):
            outcome = await truth_after_death(kind, world, numbered(index), alone=False)
            assert outcome == "applied" or index == begun - 1
        assert kind.leftovers(world) == []
    assert killed == 12


def numbered(index: int) -> Command:
    return command().model_copy(update={"id": f"job-{index}:command"})


async def truth_after_death(
    kind: Kind, world: Path, what: Command | None = None, *, alone: bool = True
) -> str:
    """What a look says of a dead sender's command, proved against the world."""
    what = what or command()
    connector = kind.make(world)
    before = kind.effects(world)
    answer = await connector.reconcile(what)
    assert kind.effects(world) == before
    if isinstance(answer, AnswerApplied):
        assert (await connector.verify(what, answer.reference)).ok
        assert before == 1 or not alone
    else:
        assert isinstance(answer, AnswerAbsent)
        assert before == 0 or not alone
        again = what.model_copy(update={"attempt": what.attempt + 1})
        assert isinstance(await connector.execute(again), AnswerApplied)
    assert not alone or kind.leftovers(world) == []
    return answer.name
