"""Decisions in the store: one vote, by a person who may, for what was shown (INV-15)."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path

import pytest

from runtime.domain.approval import HOLD, AlreadyYours, Decided, Requested, VoteRefused, Voting
from runtime.domain.effect import Terms
from runtime.domain.operation import Pending, Waiting
from runtime.domain.people import Role
from runtime.domain.revision import Revision, revise
from runtime.domain.values import Trust, sha256
from runtime.engine import approvals
from runtime.engine.approvals import At
from runtime.ports import Commit, Delete, Put, Reads
from runtime.stores.collections import APPROVALS, MEMBERS, OPERATIONS
from tests.effects_made import ANA, BO, member
from tests.runtime.engine.playing import Play, at_stage, drafted, play, terms
from tests.world import ACME, OTHER

DRAFT = "job-1:draft:1:approval"
EXPORT = "job-1:export"
SAM = "telegram:9"
VIEWER = "telegram:3"


def refusal(voting: Voting) -> VoteRefused:
    assert isinstance(voting, VoteRefused)
    return voting


async def hold(one: Play, person: str, shown: str = "", approval: str = DRAFT) -> Voting:
    digest = shown or (await one.approval(approval)).digest

    async def body(reads: Reads) -> Commit[Voting]:
        at = At(reads, ACME, one.clock.now(), "hold")
        return Commit(*await approvals.hold(at, approval, person, digest))

    return await one.kit.commit(body)


async def unhold(one: Play, person: str, approval: str = DRAFT) -> None:
    async def body(reads: Reads) -> Commit[None]:
        at = At(reads, ACME, one.clock.now(), "unhold")
        return Commit(None, await approvals.unhold(at, approval, person))

    await one.kit.commit(body)


async def explain(one: Play, person: str, reason: str, approval: str = DRAFT) -> None:
    async def body(reads: Reads) -> Commit[None]:
        at = At(reads, ACME, one.clock.now(), "explain")
        return Commit(None, await approvals.explain(at, approval, person, reason))

    await one.kit.commit(body)


async def edited(one: Play, text: str) -> Revision:
    job = await one.job()
    return revise(
        job.id,
        drafted(text),
        job.heads["draft"],
        author=ANA,
        trust=Trust.OPERATOR,
        based_on=(),
        operation="event:edit",
        now=one.clock.now(),
    )


async def replace(one: Play, person: str, revision: Revision, approval: str = DRAFT) -> Voting:
    analysis = await one.revision((await one.job()).heads["analysis"].id)
    job = (await one.job()).model_copy(update={"heads": {"draft": revision.ref}})
    asked = await terms(ACME, job, revision, analysis)
    assert isinstance(asked, Terms)

    async def body(reads: Reads) -> Commit[Voting]:
        at = At(reads, ACME, one.clock.now(), "replace")
        display = member(person).display
        return Commit(*await approvals.replace(at, approval, (person, display), revision, asked))

    return await one.kit.commit(body)


async def test_an_approvers_vote_decides_and_wakes_what_waited(tmp_path: Path) -> None:
    one = await at_stage(tmp_path, "decide_draft")
    assert isinstance((await one.operation(EXPORT)).state, Waiting)
    assert isinstance(await one.vote(DRAFT), Decided)
    assert isinstance((await one.operation(EXPORT)).state, Pending)
    assert (await one.approval(DRAFT)).state.name == "approved"


@pytest.mark.parametrize("person", [SAM, VIEWER], ids=["stranger", "viewer"])
async def test_who_may_not_decide_changes_nothing(tmp_path: Path, person: str) -> None:
    one = await at_stage(tmp_path, "decide_draft")
    before = (await one.approval(DRAFT), await one.operation(EXPORT))
    assert refusal(await one.vote(DRAFT, person)).rule == "role"
    assert refusal(await hold(one, person)).rule == "role"
    assert (await one.approval(DRAFT), await one.operation(EXPORT)) == before


async def test_a_role_taken_away_before_the_press_arrived_counts(tmp_path: Path) -> None:
    """The membership is read in the transaction of the vote, not when the card was shown."""
    one = await at_stage(tmp_path, "decide_draft")

    async def remove(reads: Reads) -> Commit[None]:
        return Commit(None, (Delete(MEMBERS.key(ACME, ANA)),))

    await one.kit.commit(remove)
    assert refusal(await one.vote(DRAFT)).rule == "role"

    async def lower(reads: Reads) -> Commit[None]:
        return Commit(None, (Put(MEMBERS.key(ACME, BO), member(BO, Role.VIEWER)),))

    await one.kit.commit(lower)
    assert refusal(await one.vote(DRAFT, BO)).rule == "role"
    assert (await one.approval(DRAFT)).state == Requested()


async def test_an_approver_of_another_tenant_decides_nothing_here(tmp_path: Path) -> None:
    """INV-18: a membership counts only in its own tenant."""
    one = await at_stage(tmp_path, "decide_draft")

    async def elsewhere(reads: Reads) -> Commit[None]:
        return Commit(None, (Put(MEMBERS.key(OTHER, SAM), member(SAM, Role.ADMIN)),))

    await one.kit.commit(elsewhere)
    assert refusal(await one.vote(DRAFT, SAM)).rule == "role"


async def test_a_press_that_arrives_twice_counts_once(tmp_path: Path) -> None:
    one = await at_stage(tmp_path, "decide_draft")
    assert isinstance(await one.vote(DRAFT, id_="press"), Decided)
    decided = await one.approval(DRAFT)
    assert isinstance(await one.vote(DRAFT, id_="press"), AlreadyYours)
    assert refusal(await one.vote(DRAFT, id_="press-2")).rule == "decided"
    assert await one.approval(DRAFT) == decided


async def test_a_vote_for_what_was_shown_before_is_outdated(tmp_path: Path) -> None:
    one = await at_stage(tmp_path, "decide_draft")
    older = sha256(b"older")
    assert refusal(await one.vote(DRAFT, digest=older)).rule == "outdated"
    assert refusal(await hold(one, ANA, older)).rule == "outdated"


async def test_a_vote_after_the_deadline_is_too_late(tmp_path: Path) -> None:
    one = await at_stage(tmp_path, "decide_draft")
    one.clock.advance(timedelta(days=7))
    assert refusal(await one.vote(DRAFT)).rule == "expired"
    assert isinstance((await one.operation(EXPORT)).state, Waiting)


async def test_a_request_that_is_not_known_is_refused(tmp_path: Path) -> None:
    one = await at_stage(tmp_path, "decide_draft")
    unknown = "job-9:draft:1:approval"
    digest = sha256(b"x")

    async def body(reads: Reads) -> Commit[list[Voting]]:
        at = At(reads, ACME, one.clock.now(), "s")
        asked = await one.approval(DRAFT)
        held, _ = await approvals.hold(at, unknown, ANA, digest)
        assert await approvals.unhold(at, unknown, ANA) == []
        assert await approvals.explain(at, unknown, ANA, "r") == []
        revision = await edited(one, "x")
        assert asked.terms is not None
        replaced, _ = await approvals.replace(at, unknown, (ANA, "Ana"), revision, asked.terms)
        return Commit([held, replaced])

    assert [refusal(voting) for voting in await one.kit.commit(body)] == [approvals.MISSING] * 2


async def test_two_people_who_press_at_once_make_one_decision(tmp_path: Path) -> None:
    """Two processes on one file, pressing against each other, many times."""
    first = await at_stage(tmp_path, "decide_draft")
    second = await play(tmp_path, clock=first.clock, seed=7)
    original = await first.approval(DRAFT)
    waiting = await first.operation(EXPORT)
    for number in range(10):
        said = await asyncio.gather(
            first.vote(DRAFT, ANA, "approve", id_=f"a{number}"),
            second.vote(DRAFT, BO, "reject", id_=f"b{number}"),
        )
        won = [voting for voting in said if isinstance(voting, Decided)]
        lost = [voting for voting in said if isinstance(voting, VoteRefused)]
        assert (len(won), len(lost)) == (1, 1)
        assert lost[0].rule == "decided"
        stored = await first.approval(DRAFT)
        assert stored == won[0].approval
        assert len(stored.votes) == 1
        assert isinstance((await second.operation(EXPORT)).state, Pending)
        await first.put(
            Put(APPROVALS.key(ACME, DRAFT), original), Put(OPERATIONS.key(ACME, EXPORT), waiting)
        )


async def test_a_quorum_wakes_the_work_only_when_it_is_complete(tmp_path: Path) -> None:
    one = await play(tmp_path)
    await one.begin(needed=2)
    await one.to_the_end(decide=False)
    strategy = "job-1:strategy:1:approval"
    assert isinstance(await one.vote(strategy, ANA), Decided)
    assert isinstance((await one.operation("job-1:write")).state, Waiting)
    assert isinstance(await one.vote(strategy, ANA, id_="again"), AlreadyYours)
    assert isinstance((await one.operation("job-1:write")).state, Waiting)
    assert isinstance(await one.vote(strategy, BO), Decided)
    assert isinstance((await one.operation("job-1:write")).state, Pending)


async def test_an_edit_holds_the_request_and_letting_go_frees_it(tmp_path: Path) -> None:
    one = await at_stage(tmp_path, "decide_draft")
    assert isinstance(await hold(one, ANA), Decided)
    assert refusal(await one.vote(DRAFT, BO)).rule == "held"
    assert refusal(await hold(one, BO)).rule == "held"
    await unhold(one, BO)
    assert refusal(await one.vote(DRAFT, BO)).rule == "held"
    await unhold(one, ANA)
    assert isinstance(await one.vote(DRAFT, BO), Decided)


async def test_a_forgotten_edit_frees_the_request_by_itself(tmp_path: Path) -> None:
    one = await at_stage(tmp_path, "decide_draft")
    await hold(one, ANA)
    one.clock.advance(HOLD)
    assert isinstance(await one.vote(DRAFT, BO), Decided)


async def test_only_who_rejected_gives_the_reason(tmp_path: Path) -> None:
    one = await at_stage(tmp_path, "decide_draft")
    await one.vote(DRAFT, BO, "reject")
    await explain(one, ANA, "not mine to say")
    await explain(one, BO, "too loud")
    state = (await one.approval(DRAFT)).state
    assert state.name == "rejected"
    assert state.reason == "too loud"


async def test_an_edit_supersedes_and_the_work_waits_for_the_new_request(tmp_path: Path) -> None:
    one = await at_stage(tmp_path, "decide_draft")
    old = await one.approval(DRAFT)
    revision = await edited(one, "Launch is on Monday.")
    await hold(one, ANA)
    replaced = await replace(one, ANA, revision)
    assert isinstance(replaced, Decided)
    new = replaced.approval
    assert new.digest != old.digest
    assert (await one.approval(DRAFT)).state.name == "superseded"
    job = await one.job()
    assert (job.approval, job.heads["draft"]) == (new.id, revision.ref)
    state = (await one.operation(EXPORT)).state
    assert isinstance(state, Waiting)
    assert state.on == new.id
    late = refusal(await one.vote(DRAFT, BO, digest=old.digest))
    assert late.rule == "superseded"
    assert "Ana" in late.sentence
    assert refusal(await one.vote(new.id, BO, digest=old.digest)).rule == "outdated"
    assert isinstance(await one.vote(new.id, BO), Decided)
    await one.to_the_end(decide=False)
    assert (await one.job()).state.name == "done"
    assert len(one.provider.ledger) == 1
    assert one.provider.ledger == [f"{new.id}:command"]


async def test_an_edit_sent_twice_makes_one_revision(tmp_path: Path) -> None:
    one = await at_stage(tmp_path, "decide_draft")
    revision = await edited(one, "Launch is on Monday.")
    await hold(one, ANA)
    assert isinstance(await replace(one, ANA, revision), Decided)
    again = revision.model_copy(update={"id": "job-1:draft:3", "number": 3})
    assert refusal(await replace(one, ANA, again)).rule == "superseded"
    assert (await one.job()).heads["draft"] == revision.ref


async def test_an_edit_after_the_decision_or_by_another_changes_nothing(tmp_path: Path) -> None:
    one = await at_stage(tmp_path, "decide_draft")
    revision = await edited(one, "Launch is on Monday.")
    await hold(one, ANA)
    assert refusal(await replace(one, BO, revision)).rule == "held"
    assert refusal(await replace(one, VIEWER, revision)).rule == "role"
    await one.vote(DRAFT, ANA)
    assert refusal(await replace(one, ANA, revision)).rule == "decided"
    job = await one.job()
    assert (job.approval, job.heads["draft"].number) == (DRAFT, 1)


async def test_an_edit_and_a_vote_at_once_make_one_outcome(tmp_path: Path) -> None:
    """Either the old text was approved, or the new one is asked about: never both."""
    one = await at_stage(tmp_path, "decide_draft")
    other = await play(tmp_path, clock=one.clock, seed=7)
    revision = await edited(one, "Launch is on Monday.")
    voted, replaced = await asyncio.gather(other.vote(DRAFT, BO), replace(one, ANA, revision))
    assert isinstance(voted, Decided) != isinstance(replaced, Decided)
    job = await one.job()
    expected = f"{revision.id}:approval" if isinstance(replaced, Decided) else DRAFT
    assert job.approval == expected
