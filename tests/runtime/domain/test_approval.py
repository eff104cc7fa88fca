"""Approvals: one decision, for what was shown, by whom it may be."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.domain import approval as approvals
from runtime.domain.approval import (
    HOLD,
    TRANSITIONS,
    AlreadyYours,
    Approval,
    Approved,
    Consumed,
    Decided,
    Expired,
    Lapsed,
    Rejected,
    Requested,
    Superseded,
    Verdict,
    Vote,
    VoteRefused,
)
from runtime.domain.people import Member, Role
from runtime.domain.revision import RevisionRef
from runtime.domain.values import sha256
from tests.world import START

DIGEST, NEWER = sha256(b"draft 1"), sha256(b"draft 2")
TICK = timedelta(microseconds=1)
DEADLINE = START + timedelta(days=7)
VALID = timedelta(days=2)


def request(needed: int = 1) -> Approval:
    return Approval(
        id="a",
        job="j",
        kind="effect",
        subject=RevisionRef(kind="draft", id="j:draft:1", number=1, digest=DIGEST),
        digest=DIGEST,
        policy_version=1,
        needed=needed,
        operation="j:export",
        requested_at=START,
        decide_by=DEADLINE,
        valid_for=VALID,
    )


def member(person: str, role: Role = Role.APPROVER) -> Member:
    return Member(id=person, role=role, display=person.title(), since=START, by="ana")


def ballot(
    person: str, verdict: Verdict = "approve", *, id_: str = "e1", digest: str = DIGEST
) -> Vote:
    return Vote(
        id=id_, person=person, display=person.title(), verdict=verdict, digest=digest, at=START
    )


def cast(
    approval: Approval, person: str, verdict: Verdict = "approve", *, id_: str = "e1"
) -> Approval:
    decided = approvals.vote(approval, member(person), ballot(person, verdict, id_=id_), START)
    assert isinstance(decided, Decided)
    return decided.approval


def refusal(voting: object) -> VoteRefused:
    assert isinstance(voting, VoteRefused)
    return voting


def test_one_approver_approves_for_a_bounded_time() -> None:
    approved = cast(request(), "ana")
    assert approved.state == Approved(at=START, valid_until=START + VALID)


def test_a_viewer_and_a_stranger_decide_nothing() -> None:
    for voter in (None, member("sam", Role.VIEWER)):
        found = approvals.vote(request(), voter, ballot("sam"), START)
        assert refusal(found).rule == "role"


def test_a_vote_for_an_older_digest_is_outdated() -> None:
    found = approvals.vote(request(), member("ana"), ballot("ana", digest=NEWER), START)
    assert refusal(found).rule == "outdated"


@pytest.mark.parametrize(("offset", "counts"), [(-TICK, True), (0 * TICK, False), (TICK, False)])
def test_a_vote_at_the_deadline_is_too_late(offset: timedelta, counts: bool) -> None:
    found = approvals.vote(request(), member("ana"), ballot("ana"), DEADLINE + offset)
    assert isinstance(found, Decided) is counts
    held = approvals.hold(request(), member("ana"), DIGEST, DEADLINE + offset)
    assert isinstance(held, Decided) is counts


def test_the_same_vote_again_changes_nothing() -> None:
    approved = cast(request(), "ana")
    again = approvals.vote(approved, member("ana"), ballot("ana"), START + VALID)
    assert again == AlreadyYours(approved)


def test_a_second_press_is_told_who_decided() -> None:
    approved = cast(request(), "ana")
    late = approvals.vote(approved, member("bo"), ballot("bo", "reject", id_="e2"), START)
    assert "Ana" in refusal(late).sentence
    rejected = cast(request(), "bo", "reject")
    late = approvals.vote(rejected, member("ana"), ballot("ana", id_="e2"), START)
    assert "Bo" in refusal(late).sentence


def test_one_rejection_closes_even_with_other_approvals() -> None:
    half = cast(request(needed=2), "ana")
    assert half.state == Requested()
    closed = cast(half, "bo", "reject", id_="e2")
    assert isinstance(closed.state, Rejected)


def test_a_quorum_counts_people_not_presses() -> None:
    half = cast(request(needed=2), "ana")
    again = approvals.vote(half, member("ana"), ballot("ana", id_="e2"), START)
    assert isinstance(again, AlreadyYours)
    assert isinstance(cast(half, "bo", id_="e3").state, Approved)


@pytest.mark.parametrize(("offset", "held"), [(-TICK, True), (0 * TICK, False), (TICK, False)])
def test_an_edit_holds_the_approval_for_a_bounded_time(offset: timedelta, held: bool) -> None:
    editing = approvals.hold(request(), member("ana"), DIGEST, START)
    assert isinstance(editing, Decided)
    when = START + HOLD + offset
    other = approvals.vote(editing.approval, member("bo"), ballot("bo"), when)
    assert isinstance(other, VoteRefused) is held
    second = approvals.hold(editing.approval, member("bo"), DIGEST, when)
    assert isinstance(second, VoteRefused) is held
    own = approvals.vote(editing.approval, member("ana"), ballot("ana"), when)
    assert isinstance(own, Decided)


def test_an_edit_is_abandoned_by_its_editor_only() -> None:
    editing = approvals.hold(request(), member("ana"), DIGEST, START)
    assert isinstance(editing, Decided)
    assert approvals.unhold(editing.approval, "bo") == editing.approval
    assert approvals.unhold(editing.approval, "ana").state == Requested()


def test_an_edit_needs_the_role_the_shown_digest_and_an_open_request() -> None:
    assert refusal(approvals.hold(request(), None, DIGEST, START)).rule == "role"
    assert refusal(approvals.hold(request(), member("ana"), NEWER, START)).rule == "outdated"
    approved = cast(request(), "ana")
    assert refusal(approvals.hold(approved, member("ana"), DIGEST, START)).rule == "decided"


@pytest.mark.parametrize(("offset", "over"), [(-TICK, False), (0 * TICK, True), (TICK, True)])
def test_expiry_is_never_yes(offset: timedelta, over: bool) -> None:
    late = approvals.expire(request(), DEADLINE + offset)
    assert isinstance(late.state, Expired) is over
    approved = cast(request(), "ana")
    lapsed = approvals.expire(approved, START + VALID + offset)
    assert isinstance(lapsed.state, Lapsed) is over
    used = approvals.consume(approved, "cmd", START + VALID + offset)
    assert isinstance(used, VoteRefused) is over


def test_a_decision_is_used_once_by_one_user() -> None:
    used = approvals.consume(cast(request(), "ana"), "cmd", START)
    assert isinstance(used, Approval)
    assert approvals.consume(used, "cmd", START) == used
    assert isinstance(approvals.consume(used, "other", START), VoteRefused)
    assert isinstance(approvals.consume(request(), "cmd", START), VoteRefused)


def test_a_superseded_request_decides_nothing_and_says_why() -> None:
    old = approvals.supersede(request(), "ana", "Ana", "a2", START)
    assert isinstance(old.state, Superseded)
    found = refusal(approvals.vote(old, member("bo"), ballot("bo"), START))
    assert found.rule == "superseded"
    assert "Ana" in found.sentence


def test_only_the_rejecting_person_explains() -> None:
    rejected = cast(request(), "bo", "reject")
    assert approvals.explain_rejection(rejected, "ana", "no") == rejected
    explained = approvals.explain_rejection(rejected, "bo", "no")
    assert isinstance(explained.state, Rejected)
    assert explained.state.reason == "no"


moves = st.lists(
    st.tuples(
        st.sampled_from(
            ["approve", "reject", "hold", "unhold", "expire", "supersede", "consume", "stranger"]
        ),
        st.sampled_from(["ana", "bo", "cy"]),
        st.integers(0, 5 * 24),
    ),
    max_size=12,
)


@given(st.integers(1, 3), moves)
def test_no_sequence_of_moves_breaks_the_rules(
    needed: int, moves: list[tuple[str, str, int]]
) -> None:
    approval, now = request(needed), START
    for index, (move, person, hours) in enumerate(moves):
        now += timedelta(hours=hours)
        after = apply(approval, move, person, (now, index))
        if after.state.name != approval.state.name:
            assert after.state.name in TRANSITIONS[approval.state.name]
        if isinstance(after.state, Approved | Consumed) and isinstance(approval.state, Requested):
            yes = {vote.person for vote in after.votes if vote.verdict == "approve"}
            assert len(yes) >= needed
            assert now < DEADLINE
            assert all(vote.digest == after.digest for vote in after.votes)
        if move == "stranger":
            assert after == approval
        approval = after


def apply(approval: Approval, move: str, person: str, when: tuple[datetime, int]) -> Approval:
    now, index = when
    match move:
        case "approve" | "reject":
            verdict: Verdict = "approve" if move == "approve" else "reject"
            vote = ballot(person, verdict, id_=f"e{index}")
            voting = approvals.vote(approval, member(person), vote, now)
            return voting.approval if isinstance(voting, Decided) else approval
        case "stranger":
            voting = approvals.vote(approval, None, ballot("sam", id_=f"e{index}"), now)
            return voting.approval if isinstance(voting, Decided) else approval
        case "hold":
            voting = approvals.hold(approval, member(person), approval.digest, now)
            return voting.approval if isinstance(voting, Decided) else approval
        case "unhold":
            return approvals.unhold(approval, person)
        case "expire":
            return approvals.expire(approval, now)
        case "supersede":
            return approvals.supersede(approval, person, person.title(), "next", now)
        case _:
            used = approvals.consume(approval, "cmd", now)
            return approval if isinstance(used, VoteRefused) else used
