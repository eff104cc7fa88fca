"""Approvals: who allowed exactly what, once.

Keeps INV-15: a vote is consumed once, by an allowed person, for the digest that was shown. One
rejection closes; an edit holds the approval and then supersedes it; the deadline for deciding and
the validity of a decision are two times; expiry is never yes.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated, Final, Literal

from pydantic import Field

from runtime.domain.effect import Terms
from runtime.domain.people import Member, Role, may
from runtime.domain.revision import RevisionRef
from runtime.domain.values import Digest, Id, Record, UtcTime

Verdict = Literal["approve", "reject"]


class Vote(Record):
    """One person's decision. `id` is the event that carried the press: it is consumed once."""

    id: Id
    person: Id
    display: str
    verdict: Verdict
    digest: Digest
    at: UtcTime


class Requested(Record):
    """Waits for people. `held_by` edits it; nobody else can decide until `held_until`."""

    name: Literal["requested"] = "requested"
    held_by: Id | None = None
    held_until: UtcTime | None = None


class Approved(Record):
    """Allowed until `valid_until`, for this digest only."""

    name: Literal["approved"] = "approved"
    at: UtcTime
    valid_until: UtcTime


class Rejected(Record):
    """One person said no."""

    name: Literal["rejected"] = "rejected"
    at: UtcTime
    by: Id
    display: str
    reason: str = ""


class Expired(Record):
    """Nobody decided in time. Nothing happened."""

    name: Literal["expired"] = "expired"
    at: UtcTime


class Superseded(Record):
    """Another revision is being decided instead."""

    name: Literal["superseded"] = "superseded"
    at: UtcTime
    by: Id
    display: str
    successor: Id


class Consumed(Record):
    """The decision was used, once, by `command` (or by the stage that it released)."""

    name: Literal["consumed"] = "consumed"
    at: UtcTime
    by: Id


class Revoked(Record):
    """A person took the decision back before it was used."""

    name: Literal["revoked"] = "revoked"
    at: UtcTime
    by: Id


class Lapsed(Record):
    """Approved, but not used while it was valid."""

    name: Literal["lapsed"] = "lapsed"
    at: UtcTime


ApprovalState = Annotated[
    Requested | Approved | Rejected | Expired | Superseded | Consumed | Revoked | Lapsed,
    Field(discriminator="name"),
]

TRANSITIONS: Final[dict[str, tuple[str, ...]]] = {
    "requested": ("approved", "rejected", "expired", "superseded"),
    "approved": ("consumed", "superseded", "revoked", "lapsed"),
    "rejected": (),
    "expired": (),
    "superseded": (),
    "consumed": (),
    "revoked": (),
    "lapsed": (),
}

HOLD: Final = timedelta(hours=1)


class Approval(Record):
    """A request for a decision about one revision (and, for an effect, its exact terms).

    `digest` is what people are shown and what they decide about: for a strategy the revision's
    digest, for an effect the digest of its `Terms` (account, type, payload, revision).
    `operation` is the one that waits for it.
    """

    id: Id
    job: Id
    kind: Literal["strategy", "effect"]
    subject: RevisionRef
    digest: Digest
    terms: Terms | None = None
    """For an effect: what exactly is decided; `terms.digest == digest`."""
    policy_version: int
    needed: int
    operation: Id
    requested_at: UtcTime
    decide_by: UtcTime
    valid_for: timedelta
    votes: tuple[Vote, ...] = ()
    state: ApprovalState = Requested()


@dataclass(frozen=True, slots=True)
class Decided:
    """The vote counted. `approval` may still be requested if more people are needed."""

    approval: Approval


@dataclass(frozen=True, slots=True)
class AlreadyYours:
    """This very vote, or this person's same verdict, is already stored: nothing changes."""

    approval: Approval


@dataclass(frozen=True, slots=True)
class VoteRefused:
    """The vote does not count; `sentence` is the truthful answer to the person."""

    rule: Literal["role", "outdated", "decided", "expired", "held", "superseded"]
    sentence: str


Voting = Decided | AlreadyYours | VoteRefused


def vote(approval: Approval, voter: Member | None, cast: Vote, now: datetime) -> Voting:
    """Count one vote. `voter` is the person's membership as read in the same transaction."""
    if any(known.id == cast.id for known in approval.votes):
        return AlreadyYours(approval)
    if not may(voter, Role.APPROVER):
        return VoteRefused("role", "Only approvers can decide this.")
    if refused := _closed(approval):
        return refused
    if cast.digest != approval.digest:
        return VoteRefused("outdated", "This card is outdated: the content has changed since.")
    if now >= approval.decide_by:
        return VoteRefused("expired", "Too late: the time for deciding has passed.")
    state = approval.state
    if isinstance(state, Requested) and held(state, now) and state.held_by != cast.person:
        return VoteRefused("held", "Somebody is editing this; a new card follows.")
    mine = [known for known in approval.votes if known.person == cast.person]
    if mine and mine[-1].verdict == cast.verdict:
        return AlreadyYours(approval)
    return Decided(_count(approval, cast, now))


def held(state: Requested, now: datetime) -> bool:
    """Whether an edit holds the approval; at `held_until` exactly it does not any more."""
    return state.held_until is not None and now < state.held_until


def hold(approval: Approval, editor: Member | None, shown: str, now: datetime) -> Voting:
    """An approver begins to edit: the approval is held until the edit ends or `HOLD` passes."""
    if editor is None or not may(editor, Role.APPROVER):
        return VoteRefused("role", "Only approvers can edit this.")
    if refused := _closed(approval):
        return refused
    if shown != approval.digest:
        return VoteRefused("outdated", "This card is outdated: the content has changed since.")
    if now >= approval.decide_by:
        return VoteRefused("expired", "Too late: the time for deciding has passed.")
    state = approval.state
    if isinstance(state, Requested) and held(state, now) and state.held_by != editor.id:
        return VoteRefused("held", "Somebody is already editing this; a new card follows.")
    requested = Requested(held_by=editor.id, held_until=now + HOLD)
    return Decided(approval.model_copy(update={"state": requested}))


def unhold(approval: Approval, person: str) -> Approval:
    """The edit was abandoned by the person who held it."""
    state = approval.state
    if isinstance(state, Requested) and state.held_by == person:
        return approval.model_copy(update={"state": Requested()})
    return approval


def expire(approval: Approval, now: datetime) -> Approval:
    """Requested past its deadline → expired; approved past its validity → lapsed; else the same."""
    state = approval.state
    if isinstance(state, Requested) and now >= approval.decide_by:
        return approval.model_copy(update={"state": Expired(at=now)})
    if isinstance(state, Approved) and now >= state.valid_until:
        return approval.model_copy(update={"state": Lapsed(at=now)})
    return approval


def supersede(approval: Approval, by: str, display: str, successor: str, now: datetime) -> Approval:
    """Requested or approved → superseded by the approval of a newer revision."""
    return _leave(approval, Superseded(at=now, by=by, display=display, successor=successor))


def consume(approval: Approval, by: str, now: datetime) -> Approval | VoteRefused:
    """Use the decision once. The same user finds it consumed by itself and may go on."""
    state = approval.state
    if isinstance(state, Consumed) and state.by == by:
        return approval
    if not isinstance(state, Approved):
        return VoteRefused("decided", f"The approval is {state.name}, not approved.")
    if now >= state.valid_until:
        return VoteRefused("expired", "The approval was not used while it was valid.")
    return _leave(approval, Consumed(at=now, by=by))


def explain_rejection(approval: Approval, person: str, reason: str) -> Approval:
    """Add the reason that the rejecting person gave afterwards."""
    state = approval.state
    if isinstance(state, Rejected) and state.by == person:
        return approval.model_copy(update={"state": state.model_copy(update={"reason": reason})})
    return approval


def _count(approval: Approval, cast: Vote, now: datetime) -> Approval:
    votes = (*(known for known in approval.votes if known.person != cast.person), cast)
    counted = approval.model_copy(update={"votes": votes})
    if cast.verdict == "reject":
        return _leave(counted, Rejected(at=now, by=cast.person, display=cast.display))
    if sum(1 for known in votes if known.verdict == "approve") < approval.needed:
        return counted
    return _leave(counted, Approved(at=now, valid_until=now + approval.valid_for))


def _closed(approval: Approval) -> VoteRefused | None:
    """The truthful answer about an approval that is not open any more."""
    state = approval.state
    match state:
        case Requested():
            return None
        case Approved(at=at) | Consumed(at=at):
            names = ", ".join(known.display for known in approval.votes) or "somebody"
            when = at.strftime("%H:%M:%S UTC")
            sentence = f"Already approved by {names} at {when}. Nothing changed."
            return VoteRefused("decided", sentence)
        case Rejected(at=at, display=display):
            when = at.strftime("%H:%M:%S UTC")
            return VoteRefused("decided", f"Already rejected by {display} at {when}.")
        case Expired():
            return VoteRefused("expired", "Too late: it expired, and nothing was done.")
        case Superseded(display=display):
            return VoteRefused(
                "superseded", f"This card is outdated: {display} edited it. Use the newer card."
            )
        case Revoked() | Lapsed():
            return VoteRefused("decided", f"This decision is closed ({state.name}).")


def _leave(approval: Approval, state: ApprovalState) -> Approval:
    if state.name not in TRANSITIONS[approval.state.name]:
        return approval
    return approval.model_copy(update={"state": state})
