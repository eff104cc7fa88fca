"""The outlook: what people are told follows from records alone, biased to safety (INV-17)."""

from __future__ import annotations

from datetime import timedelta
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.domain import effect as effects
from runtime.domain import job as jobs
from runtime.domain import operation as operations
from runtime.domain.approval import Approval, Approved, Expired, Rejected, Requested, Superseded
from runtime.domain.card import Card, CardUnreachable
from runtime.domain.effect import Command, Dispatched
from runtime.domain.feed import NeedsYouItem
from runtime.domain.job import Job
from runtime.domain.operation import Claimed, Operation
from runtime.domain.outlook import JobRecords, Outlook, closed, outlook, parked, undelivered
from runtime.domain.receipt import Verification
from runtime.domain.revision import RevisionRef
from runtime.domain.values import sha256
from tests.effects_made import command, export
from tests.world import START

LATER = START + timedelta(minutes=5)
MADE = export()
OPEN = MADE.approval.model_copy(update={"state": Requested(), "votes": ()})
RUNNING = MADE.job
OWNER = Claimed(owner=sha256(b"o"), claimed_at=START, until=START + operations.LEASE)
CLAIMED = MADE.operation.model_copy(update={"epoch": 1, "attempt": 1, "state": OWNER})
PARKED = operations.require_operator(CLAIMED, "its workers stopped 5 times", LATER)
FAILED = operations.fail(CLAIMED, "no", LATER)
SENT = command().model_copy(update={"state": Dispatched(at=START)})
LOST = effects.lose(SENT, "the answer was lost", LATER)


def look(
    job: Job = RUNNING,
    *approvals: Approval,
    sent: Command | None = None,
    operation: Operation | None = MADE.operation,
    verification: Verification | None = None,
) -> Outlook:
    return outlook(JobRecords(job, approvals, sent, operation, None, verification))


def only(seen: Outlook) -> NeedsYouItem:
    assert len(seen.items) == 1
    return seen.items[0]


def test_a_running_job_needs_nobody() -> None:
    seen = look()
    assert seen.items == ()
    assert (seen.shell.lifecycle, seen.shell.attention, seen.shell.open) == ("active", 0, True)


def test_an_open_request_needs_a_person_until_it_is_decided() -> None:
    item = only(look(RUNNING, OPEN))
    assert (item.kind, item.open, item.due_at) == ("approval", True, OPEN.decide_by)
    assert look(RUNNING, OPEN).shell.lifecycle == "needs_you"
    for state in (
        Approved(at=LATER, valid_until=LATER),
        Rejected(at=LATER, by="telegram:1", display="Ana"),
        Expired(at=LATER),
        Superseded(at=LATER, by="telegram:1", display="Ana", successor="a2"),
    ):
        over = look(RUNNING, OPEN.model_copy(update={"state": state}))
        assert not only(over).open
        assert only(over).view != item.view, "its card must follow"
        assert over.shell.attention == 0


def test_only_the_jobs_own_current_request_is_open() -> None:
    older = OPEN.model_copy(update={"id": "job-1:draft:0:approval"})
    assert not only(look(RUNNING, older)).open
    ended = jobs.stop(RUNNING, "cancelled", "no", LATER)
    assert not only(look(ended, OPEN)).open


def test_a_strategy_is_another_kind_of_decision() -> None:
    strategy = RevisionRef(kind="strategy", id="s", number=1, digest=sha256(b"s"))
    asked = OPEN.model_copy(update={"kind": "strategy", "subject": strategy, "terms": None})
    assert only(look(RUNNING, asked)).kind == "strategy_decision"


def test_an_unknown_effect_is_uncertain_whatever_else_is_so() -> None:
    """The first of the order: no other word may hide that it may be live."""
    needy = jobs.need_person(RUNNING, "agent: x", LATER)
    stopped = jobs.stop(RUNNING, "failed", "x", LATER)
    for job in (RUNNING, needy, stopped, jobs.finish(RUNNING, LATER)):
        for operation in (MADE.operation, PARKED, FAILED, None):
            seen = look(job, OPEN, sent=LOST, operation=operation)
            assert seen.shell.lifecycle == "uncertain"
            kinds = {item.kind for item in seen.items if item.open}
            assert "uncertain_effect" in kinds


@pytest.mark.parametrize(
    ("reason", "kind"),
    [("agent: which audience?", "escalation"), ("it was refused", "failed_stage")],
)
def test_a_job_that_needs_a_person_says_why(reason: str, kind: str) -> None:
    seen = look(jobs.need_person(RUNNING, reason, LATER), operation=PARKED)
    item = only(seen)
    assert (item.kind, item.reason, item.subject) == (kind, reason, MADE.operation.id)
    assert seen.shell.lifecycle == "needs_you"
    bare = only(look(jobs.need_person(RUNNING, reason, LATER), operation=None))
    assert bare.subject == RUNNING.id


@pytest.mark.parametrize("operation", [PARKED, FAILED], ids=lambda made: made.state.name)
def test_an_operation_that_stands_still_stands_in_front_of_a_person(operation: Operation) -> None:
    """INV-19: while its job runs, somebody is told."""
    item = only(look(operation=operation))
    assert (item.kind, item.open, item.created_at) == ("failed_stage", True, LATER)
    ended = jobs.stop(RUNNING, "rejected", "no", LATER)
    assert look(ended, operation=operation).items == ()


@pytest.mark.parametrize(
    ("how", "word"),
    [
        ("cancelled", "cancelled"),
        ("failed", "failed"),
        ("rejected", "settled"),
        ("expired", "settled"),
    ],
)
def test_a_stopped_job_says_how(
    how: Literal["rejected", "failed", "cancelled", "expired"], word: str
) -> None:
    seen = look(jobs.stop(RUNNING, how, "why", LATER))
    assert (seen.shell.lifecycle, seen.shell.open) == (word, False)


def test_a_done_job_is_settled() -> None:
    seen = look(jobs.finish(RUNNING, LATER))
    assert (seen.shell.lifecycle, seen.shell.open) == ("settled", False)


def test_the_view_follows_everything_that_a_card_shows() -> None:
    """INV-17: a card converges exactly when something that it shows has changed."""
    seen = look(RUNNING, OPEN, operation=CLAIMED)
    titled = RUNNING.model_copy(update={"title": "Another"})
    verification = Verification(
        id="v",
        receipt="r",
        job=RUNNING.id,
        verified=True,
        method="m",
        evidence="e",
        operation="o",
        at=START,
    )
    others = [
        look(titled, OPEN, operation=CLAIMED),
        look(RUNNING, OPEN, operation=PARKED),
        look(RUNNING, OPEN, operation=CLAIMED, sent=SENT),
        look(RUNNING, OPEN, operation=CLAIMED, verification=verification),
    ]
    views = {other.shell.view for other in (seen, *others)}
    assert len(views) == 5


def test_the_view_ignores_leases_owners_and_tags() -> None:
    renewed = operations.renew(CLAIMED, LATER).model_copy(update={"last_commit": "x"})
    state = OWNER.model_copy(update={"owner": sha256(b"p")})
    other = CLAIMED.model_copy(update={"state": state, "epoch": 9})
    views = {look(operation=made).shell.view for made in (CLAIMED, renewed, other)}
    assert len(views) == 1


def test_a_closed_item_changes_its_view_once() -> None:
    item = only(look(RUNNING, OPEN))
    over = closed(item)
    assert not over.open
    assert over.view != item.view
    assert closed(over) == over


@given(
    st.sampled_from([RUNNING, *(jobs.stop(RUNNING, how, "r", LATER) for how in ("failed",))]),
    st.sampled_from([None, OPEN, MADE.approval]),
    st.sampled_from([None, command(), SENT, LOST]),
    st.sampled_from([None, MADE.operation, CLAIMED, PARKED, FAILED]),
)
def test_the_outlook_is_a_function_of_records_and_counts_what_is_open(
    job: Job, asked: Approval | None, sent: Command | None, operation: Operation | None
) -> None:
    approvals = () if asked is None else (asked,)
    seen = look(job, *approvals, sent=sent, operation=operation)
    assert seen == look(job, *approvals, sent=sent, operation=operation)
    assert seen.shell.attention == sum(item.open for item in seen.items)
    assert len({item.id for item in seen.items}) == len(seen.items)


def test_an_operation_without_a_job_stands_in_front_of_people_too() -> None:
    """INV-19: a press or a file that could not be worked on is listed until somebody sees to it."""
    lone = PARKED.model_copy(update={"job": None})
    item = parked(lone)
    assert (item.open, item.job, item.reason) == (True, None, "its workers stopped 5 times")
    again = parked(operations.wake(lone, LATER))
    assert (again.id, again.open) == (item.id, False)
    assert again.view != item.view


def test_a_card_that_reaches_nobody_is_an_item_until_it_is_shown() -> None:
    card = Card(
        id="card",
        subject="job",
        subject_id="job-1",
        destination="telegram:100",
        wanted=sha256(b"view"),
        due_at=START,
        created_at=START,
    )
    lost = card.model_copy(update={"state": CardUnreachable(at=LATER, reason="blocked")})
    assert (undelivered(lost).open, undelivered(lost).reason) == (True, "blocked")
    assert (undelivered(card).open, undelivered(card).id) == (False, undelivered(lost).id)


@pytest.mark.parametrize(
    ("holder", "asks"),
    [(CLAIMED, False), (operations.release(CLAIMED, LATER), False), (PARKED, True), (None, True)],
)
def test_an_unknown_effect_needs_a_person_only_when_nobody_looks_it_up(
    holder: Operation | None, asks: bool
) -> None:
    records = JobRecords(RUNNING, (), LOST, MADE.operation, None, None, holder)
    seen = outlook(records)
    assert seen.shell.lifecycle == "uncertain"
    assert [item.kind for item in seen.items if item.open] == ["uncertain_effect"] * asks
