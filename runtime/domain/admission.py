"""Admission: may this effect go out now? Asked before the intent and again at dispatch.

Keeps INV-5 (only what was approved, under the policy active at dispatch) and the dispatch half of
INV-15 (who voted is still allowed to). Everything is read in the transaction that acts on the
answer; nothing is remembered from an earlier look.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from runtime.domain.approval import Approval, Approved, Consumed
from runtime.domain.effect import Command, Terms
from runtime.domain.job import Job, NeedsPerson, Running
from runtime.domain.people import Member, Role, may
from runtime.domain.policy import Policy, forbids


@dataclass(frozen=True, slots=True)
class Case:
    """What is asked about. `members` are the voters, as read in this transaction."""

    job: Job
    approval: Approval
    policy: Policy
    members: Mapping[str, Member | None]
    command: Command | None = None


@dataclass(frozen=True, slots=True)
class Admitted:
    """It may go out: these terms, under this policy."""

    terms: Terms
    policy: Policy


@dataclass(frozen=True, slots=True)
class Ended:
    """It will not go out: the work itself has ended or moved on."""

    reason: str


@dataclass(frozen=True, slots=True)
class Blocked:
    """It may not go out now, and only a person can change that."""

    reason: str


Admission = Admitted | Ended | Blocked


def admit(case: Case, now: datetime) -> Admission:
    """Whether the effect of this approval may go out at `now`."""
    job = case.job
    if not isinstance(job.state, Running | NeedsPerson):
        return Ended(f"the job is {job.state.name}")
    if job.approval != case.approval.id:
        return Ended("a newer request for approval exists")
    if job.stage != "export":
        return Ended(f"the job stands at another stage ({job.stage})")
    if isinstance(job.state, NeedsPerson):
        return Blocked(job.state.reason)
    return _approved(case, now)


def _approved(case: Case, now: datetime) -> Admission:
    approval, policy, terms = case.approval, case.policy, case.approval.terms
    if terms is None or approval.kind != "effect" or approval.job != case.job.id:
        return Blocked("the approval is not about this effect")
    if terms.digest != approval.digest:
        return Blocked("what would be sent is not what was approved")
    if reason := insufficient(case, now):
        return Blocked(reason)
    head = case.job.heads.get(terms.revision.kind)
    if head is not None and head != terms.revision:
        return Blocked(f"a newer {terms.revision.kind} exists than the approved one")
    if terms.not_after is not None and now >= terms.not_after:
        return Blocked("the approved time window has passed")
    if reason := forbids(policy, terms.effect, words(terms.payload)):
        return Blocked(reason)
    return Admitted(terms, policy)


def insufficient(case: Case, now: datetime) -> str | None:
    """Why the decision itself does not carry the effect, or None. Only a new one changes that."""
    return _unusable(case, now) or _too_few(case)


def _unusable(case: Case, now: datetime) -> str | None:
    """Why the decision cannot be used by this command, or None. Expiry is never yes."""
    approval = case.approval
    match approval.state:
        case Approved(valid_until=valid_until) if now < valid_until:
            return None
        case Approved():
            return "the approval was not used while it was valid"
        case Consumed(by=by) if case.command is not None and by == case.command.id:
            decided = max(vote.at for vote in approval.votes)
            if now >= decided + approval.valid_for:
                return "the approval was not used while it was valid"
            return None
        case Consumed():
            return "the approval has been used already"
        case _:
            return f"the approval is {approval.state.name}"


def _too_few(case: Case) -> str | None:
    """Why the votes do not suffice now, or None: each is by a person who may still decide."""
    approval = case.approval
    counted: set[str] = set()
    lost: list[str] = []
    for vote in approval.votes:
        if vote.verdict != "approve" or vote.digest != approval.digest:
            continue
        if may(case.members.get(vote.person), Role.APPROVER):
            counted.add(vote.person)
        else:
            lost.append(vote.display)
    needed = max(approval.needed, case.policy.approvals_needed)
    if len(counted) >= needed:
        return None
    if lost:
        return f"{', '.join(lost)} may not approve any more; {needed} approval(s) needed"
    return f"{len(counted)} of {needed} approvals"


def words(payload: str) -> str:
    """The texts of a payload, one a line, as people read them (not as JSON escapes them)."""
    return "\n".join(_texts(json.loads(payload)))


def _texts(value: object) -> Iterator[str]:
    match value:
        case str():
            yield value
        case dict():
            for item in value.values():
                yield from _texts(item)
        case list():
            for item in value:
                yield from _texts(item)
        case _:
            return
