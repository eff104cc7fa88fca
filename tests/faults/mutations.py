"""Every kind of fenced mutation, as real code makes it: what is done before the freeze and after.

Each has data of its own, so that one stale process can hold a claim in every one of them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from runtime.domain.effect import AnswerApplied, Command
from runtime.domain.journal import ModelCall, call_id
from runtime.domain.proposal import Strategy, Thought
from runtime.domain.values import Trust, sha256
from runtime.engine import stages
from runtime.engine.decided import decided
from runtime.engine.dispatcher import Dispatcher, Sending
from runtime.engine.pipeline import Pipeline
from runtime.engine.reading import Reading
from runtime.engine.reconciler import Reconciler, _store
from runtime.engine.spill import fenced_by
from runtime.engine.verifier import Verifier
from runtime.engine.work import Step, Work
from runtime.engine.worker import Worker
from runtime.ports import Put, Reads
from runtime.stores.collections import COMMANDS, COUNTERS, JOBS, Counter
from tests.effects_made import Only
from tests.runtime.engine.playing import Play, terms
from tests.world import ACME

Act = Callable[[Play, Work], Awaitable[object]]

READ = ("read", "job-1:read")
STRATEGISE = ("strategise", "job-1:strategise")
DECIDED = ("decided strategy", "job-1:write")
EXPORT = ("decided draft", "job-1:export")
COMMAND = "job-1:draft:1:approval:command"
RECONCILE = ("unknown", f"reconcile:{COMMAND}:1")
VERIFY = ("verify", f"verify:{COMMAND}:receipt")


@dataclass(frozen=True)
class Mutation:
    """`at` is the stage of its data and the operation that is claimed there."""

    at: tuple[str, str]
    after: Act
    before: Act | None = None
    leaves: frozenset[str] = frozenset()
    """Tables that may gain a row: only evidence, never an outcome."""
    ends: str = "FenceLost"
    """What it ends with; `returned` where the caller only gives up quietly."""


_kept: dict[int, object] = {}


def keep(one: Play, thing: object) -> None:
    """Remember something over the freeze, as a worker's memory does."""
    _kept[id(one)] = thing


async def plain(one: Play, work: Work) -> None:
    async def body(reads: Reads, current: object) -> Step[None]:
        return Step(None, (Put(COUNTERS.key(ACME, "n"), Counter(id="n", value=1)),))

    await work.commit(body)


async def renew(one: Play, work: Work) -> None:
    await work.commit(Worker(one.kit, one.handlers)._renewal)


async def give_back(one: Play, work: Work) -> None:
    await Worker(one.kit, one.handlers)._give_back(work, "a fault")


async def stop_job(one: Play, work: Work) -> None:
    await stages.stop_job(work, "refused")


async def ask_person(one: Play, work: Work) -> None:
    await stages.ask_person(work, "which one?")


async def read(one: Play, work: Work) -> None:
    await Reading(one.spill, one.desk)(work)


async def finish_reading(one: Play, work: Work) -> None:
    reading = Reading(one.spill, one.desk)
    await reading._advance(work, *_kept[id(one)])  # type: ignore[misc]  # kept by `store_source`


async def store_source(one: Play, work: Work) -> None:
    reading = Reading(one.spill, one.desk)
    job = await work.store.get(JOBS.key(ACME, "job-1"))
    assert job is not None
    raw, data = await reading._raw(work, job)
    converted = await one.desk.convert(data, "", "")
    keep(one, (raw, await reading._text(work, job, converted), converted))


async def spill(one: Play, work: Work) -> None:
    await one.spill.store(
        work.store,
        ACME,
        b"large",
        job="job-1",
        content_type="text/plain",
        trust=Trust.MODEL,
        producer="p",
        retention="operational",
        artifact_id="large-1",
        commit=fenced_by(work),
    )


def pipeline(one: Play) -> Pipeline:
    return Pipeline(one.thinker, one.spill, terms, Dispatcher(Only(one.provider)))


STRATEGY = Strategy(headline="h", audience="a", angle="a", points=("F1",), rationale="r")


async def advance(one: Play, work: Work) -> None:
    await pipeline(one)._advance(work, "strategise", STRATEGY, "scripted", note="n")


async def whole_stage(one: Play, work: Work) -> None:
    await one.handlers["stage.strategise"](work)


async def compile_projection(one: Play, work: Work) -> None:
    compiler = one.thinker._compiler
    keep(
        one,
        await compiler.compile(
            work.store, ACME, work.operation, "strategist", step="strategise", model="scripted"
        ),
    )


async def persist(one: Play, work: Work) -> None:
    await one.thinker._compiler.persist(work, _kept[id(one)])  # type: ignore[arg-type]  # kept by `compile_projection`


async def journal(one: Play, work: Work) -> None:
    basis = sha256(b"basis")
    call = ModelCall(
        id=call_id(work.operation.id, "strategise", basis),
        operation=work.operation.id,
        step="strategise",
        basis=basis,
        projection=basis,
        thought=Thought(value=STRATEGY, model="scripted"),
        epoch=work.operation.epoch,
        at=work.now(),
    )
    await one.thinker._journal(work, call)


async def use_decision(one: Play, work: Work) -> None:
    await decided(work, "decide_strategy")


async def pass_decision(one: Play, work: Work) -> None:
    assert await decided(work, "decide_draft")


async def turn(one: Play, work: Work) -> Sending | None:
    """One turn of the dispatcher."""
    return await Dispatcher(Only(one.provider))._advance(work)


async def prepared(one: Play, work: Work) -> None:
    await pass_decision(one, work)
    await turn(one, work)


async def dispatched(one: Play, work: Work) -> None:
    await prepared(one, work)
    sending = await turn(one, work)
    assert sending is not None
    keep(one, sending.command)


async def observe(one: Play, work: Work) -> None:
    command = _kept[id(one)]
    assert isinstance(command, Command)
    answer = AnswerApplied(reference=f"there/{command.id}", digest="a" * 64)
    await Dispatcher(Only(one.provider))._observe(work, command, answer)


async def observed(one: Play, work: Work) -> None:
    await dispatched(one, work)
    await observe(one, work)


async def dispatch_all(one: Play, work: Work) -> None:
    await Dispatcher(Only(one.provider))(work)


async def reconcile(one: Play, work: Work) -> None:
    await Reconciler(Only(one.provider))(work)


async def store_look(one: Play, work: Work) -> None:
    command = await work.store.get(COMMANDS.key(ACME, COMMAND))
    assert command is not None
    answer = AnswerApplied(reference=f"there/{COMMAND}", digest="a" * 64)
    await _store(work, command, answer, [])


async def verify(one: Play, work: Work) -> None:
    await Verifier(Only(one.provider))(work)


MUTATIONS: dict[str, Mutation] = {
    "any write": Mutation(READ, plain),
    "renew the lease": Mutation(READ, renew),
    "give the operation back": Mutation(READ, give_back, ends="returned"),
    "stop the job": Mutation(READ, stop_job),
    "ask a person": Mutation(READ, ask_person),
    "read the source": Mutation(READ, read),
    "finish reading": Mutation(READ, finish_reading, store_source),
    "store an artifact": Mutation(READ, spill),
    "a whole stage": Mutation(STRATEGISE, whole_stage),
    "store a revision and go on": Mutation(STRATEGISE, advance),
    "store a projection": Mutation(STRATEGISE, persist, compile_projection),
    "journal a model call": Mutation(STRATEGISE, journal),
    "use a decision": Mutation(DECIDED, use_decision),
    "prepare a command": Mutation(EXPORT, dispatch_all, pass_decision),
    "dispatch a command": Mutation(EXPORT, dispatch_all, prepared),
    "observe an answer": Mutation(
        EXPORT, observe, dispatched, leaves=frozenset({"r_late_answers"})
    ),
    "write a receipt": Mutation(EXPORT, dispatch_all, observed),
    "take an unknown command over": Mutation(RECONCILE, reconcile),
    "store what a look found": Mutation(RECONCILE, store_look),
    "store a verification": Mutation(VERIFY, verify),
}
