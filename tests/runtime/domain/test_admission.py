"""Admission: what may go out now, asked with everything as it stands now. INV-5, INV-15."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from runtime.domain import job as jobs
from runtime.domain.admission import Admission, Admitted, Blocked, Case, Ended, admit, words
from runtime.domain.approval import Approval, Consumed, Rejected, Requested, Superseded
from runtime.domain.people import Role
from runtime.domain.policy import Policy
from tests.effects_made import ANA, BO, command, export, member, revision, vote
from tests.effects_made import draft as drafted
from tests.world import START

TICK = timedelta(microseconds=1)
COMMAND = command()


def case(**changes: object) -> Case:
    made = export()
    stands = Case(made.job, made.approval, made.policy, {ANA: member(ANA)})
    return replace(stands, **changes)  # type: ignore[arg-type]  # each test names its own field


def approval(**changes: object) -> Approval:
    return export().approval.model_copy(update=changes)


def used() -> Approval:
    return approval(state=Consumed(at=START, by=COMMAND.id))


def blocked(answer: Admission) -> str:
    assert isinstance(answer, Blocked), answer
    return answer.reason


def test_what_was_approved_is_admitted_with_its_terms_and_the_policy_of_now() -> None:
    assert admit(case(), START) == Admitted(export().terms, export().policy)


@pytest.mark.parametrize(("late", "accepted"), [(-1, True), (0, False), (1, False)])
def test_a_decision_is_used_while_it_is_valid(late: int, *, accepted: bool) -> None:
    now = START + timedelta(days=2) + late * TICK
    assert isinstance(admit(case(), now), Admitted) is accepted
    again = admit(case(approval=used(), command=COMMAND), now)
    assert isinstance(again, Admitted) is accepted


def test_a_used_decision_admits_the_command_that_used_it_and_no_other() -> None:
    assert isinstance(admit(case(approval=used(), command=COMMAND), START), Admitted)
    other = COMMAND.model_copy(update={"id": "other"})
    assert blocked(admit(case(approval=used(), command=other), START)).endswith("used already")
    assert blocked(admit(case(approval=used()), START)).endswith("used already")


@pytest.mark.parametrize(
    "state",
    [
        Requested(),
        Rejected(at=START, by=ANA, display="Ana"),
        Superseded(at=START, by=ANA, display="Ana", successor="next"),
    ],
)
def test_anything_but_an_approval_admits_nothing(state: object) -> None:
    assert state.name in blocked(admit(case(approval=approval(state=state)), START))  # type: ignore[attr-defined]  # each state has a name


def test_terms_that_are_not_the_approved_ones_are_refused() -> None:
    """INV-5."""
    other = export().terms.model_copy(update={"account": "else"})
    assert "not what was approved" in blocked(admit(case(approval=approval(terms=other)), START))
    assert "not about this effect" in blocked(admit(case(approval=approval(terms=None)), START))
    strategy = approval(kind="strategy")
    assert "not about this effect" in blocked(admit(case(approval=strategy), START))
    foreign = approval(job="job-2")
    assert "not about this effect" in blocked(admit(case(approval=foreign), START))


def test_a_voter_who_lost_the_role_does_not_count() -> None:
    """INV-15."""
    for gone in (None, member(ANA, Role.VIEWER)):
        assert "Ana may not approve any more" in blocked(admit(case(members={ANA: gone}), START))


def test_the_policy_of_now_may_ask_for_more_people_than_the_request_did() -> None:
    policy = Policy(since=START, version=2, approvals_needed=2)
    assert blocked(admit(case(policy=policy), START)) == "1 of 2 approvals"
    both = approval(votes=(*export().approval.votes, vote(BO, export().approval.digest)))
    people = {ANA: member(ANA), BO: member(BO)}
    admitted = admit(case(policy=policy, approval=both, members=people), START)
    assert admitted == Admitted(export().terms, policy)


def test_votes_for_another_digest_or_by_the_same_person_do_not_add_up() -> None:
    digest = export().approval.digest
    twice = approval(needed=2, votes=(vote(ANA, digest), vote(ANA, digest)))
    assert blocked(admit(case(approval=twice), START)) == "1 of 2 approvals"
    stale = approval(votes=(vote(ANA, "f" * 64),))
    assert blocked(admit(case(approval=stale), START)) == "0 of 1 approvals"


def test_a_policy_that_forbids_the_effect_or_a_term_wins() -> None:
    """INV-5."""
    none = Policy(since=START, version=4, allowed_effects=())
    assert blocked(admit(case(policy=none), START)) == "policy 4 does not allow content_pack.export"
    term = Policy(since=START, version=5, blocked_terms=("бесплатно",))
    assert "blocks the term" in blocked(admit(case(policy=term), START))


def test_terms_are_blocked_as_people_read_them_and_not_as_json_escapes_them() -> None:
    assert words('{"a":["say \\"hi\\"",{"b":"x\\ny"}],"n":1}') == 'say "hi"\nx\ny'


def test_a_newer_draft_than_the_approved_one_is_never_the_old_one() -> None:
    newer = revision("job-1", drafted("Another title")).ref
    job = export().job.model_copy(update={"heads": {"draft": newer}})
    assert "newer draft" in blocked(admit(case(job=job), START))


@pytest.mark.parametrize(("late", "accepted"), [(-1, True), (0, False)])
def test_a_window_that_has_passed_is_said_before_the_intent(late: int, *, accepted: bool) -> None:
    terms = export().terms.model_copy(update={"not_after": START})
    timed = approval(terms=terms, digest=terms.digest, votes=(vote(ANA, terms.digest),))
    answer = admit(case(approval=timed), START + late * TICK)
    assert isinstance(answer, Admitted) is accepted


def test_work_that_ended_or_moved_on_sends_nothing() -> None:
    job = export().job
    for other in (
        jobs.stop(job, "cancelled", "by Ana", START),
        job.model_copy(update={"approval": "newer"}),
        job.model_copy(update={"stage": "verify"}),
    ):
        assert isinstance(admit(case(job=other), START), Ended)


def test_a_job_in_front_of_a_person_stays_there() -> None:
    job = jobs.need_person(export().job, "the token has expired", START)
    assert blocked(admit(case(job=job), START)) == "the token has expired"
