"""Effects: intent before effect, what an answer means, and what may follow.

Keeps INV-5 (a command is prepared only with terms whose digest equals the approved digest, and a
dispatch starts from prepared), INV-6 (one automatic dispatch per opened attempt; unknown is never
dispatched automatically) and its half of INV-7 (applied and failed are reached only from an
observation or a person's resolution). A command names its holder, a fence: only the holder moves
it, and only a newer claim of the same operation takes it over.
"""

from __future__ import annotations

import re
from datetime import datetime
from functools import lru_cache
from typing import Annotated, Final, Literal

from pydantic import Field

from runtime.domain.canonical import canonical_digest
from runtime.domain.operation import Refused
from runtime.domain.revision import RevisionRef
from runtime.domain.values import Digest, Fence, Id, Record, Text, UtcTime
from runtime.errors import InvariantBroken

EFFECT_TYPE: Final = re.compile(r"^[a-z_]+\.[a-z_]+$")
"""How effect types are written: provider or family, then what it does there."""

# --- what is approved and what a provider is ------------------------------------------------------


class Terms(Record):
    """Exactly what is approved: the digest of these terms is the approval's digest."""

    effect: Annotated[str, Field(pattern=EFFECT_TYPE.pattern)]
    account: Id
    revision: RevisionRef
    payload: Text
    """Canonical JSON, made by the connector's `prepare`."""
    not_before: UtcTime | None = None
    not_after: UtcTime | None = None

    @property
    def digest(self) -> str:
        """SHA-256 over every field, the payload's bytes included."""
        return _digest_of(self)


@lru_cache(maxsize=256)
def _digest_of(terms: Terms) -> str:
    """Terms cannot change and are asked for their digest at every step of their effect."""
    return canonical_digest(terms)


class Descriptor(Record):
    """What a connector declares about itself."""

    id: Id
    label: str
    capabilities: tuple[Literal["publish", "verify", "delete", "export", "schedule", "ingest"], ...]
    effects: tuple[str, ...]
    required_scopes: tuple[str, ...] = ()
    idempotent: bool
    """Whether the provider enforces an idempotency key (the command's ID) itself."""
    independent_verification: bool
    undo: Literal["none", "delete", "overwrite"] = "none"
    region: str = ""


class Finding(Record):
    """A yes or no with its evidence, in words that an operator may read.

    `digest` is of what was found, where a look can know it.
    """

    ok: bool
    method: str
    evidence: Annotated[str, Field(max_length=2_000)]
    digest: Digest | None = None


# --- what a provider's answer means ---------------------------------------------------------------


class AnswerApplied(Record):
    """The provider did it. `digest` is of what is there now, where that can be known."""

    name: Literal["applied"] = "applied"
    reference: Annotated[str, Field(max_length=1_000)]
    digest: Digest | None = None
    detail: Annotated[str, Field(max_length=1_000)] = ""


class AnswerRejected(Record):
    """The provider refused, definitely."""

    name: Literal["rejected"] = "rejected"
    reason: Annotated[str, Field(max_length=1_000)]


class AnswerNotEntered(Record):
    """Typed proof that the provider was not entered; may be tried again from `retry_at` on."""

    name: Literal["not_entered"] = "not_entered"
    reason: Annotated[str, Field(max_length=1_000)]
    retry_at: UtcTime | None = None
    credential_gap: bool = False


class AnswerAbsent(Record):
    """Reconciliation proved that it did not and cannot happen any more (see `proof`)."""

    name: Literal["absent"] = "absent"
    proof: Annotated[str, Field(max_length=1_000)]


class AnswerUnknown(Record):
    """The provider may have acted. Nobody may guess."""

    name: Literal["unknown"] = "unknown"
    reason: Annotated[str, Field(max_length=1_000)]


Answer = AnswerApplied | AnswerRejected | AnswerNotEntered | AnswerAbsent | AnswerUnknown

# --- the command ----------------------------------------------------------------------------------


class Prepared(Record):
    """Intent is stored; nothing was sent for the attempt to come."""

    name: Literal["prepared"] = "prepared"
    at: UtcTime
    ready_at: UtcTime


class Dispatched(Record):
    """Sending may have begun; until an observation is stored, the provider may have acted."""

    name: Literal["dispatched"] = "dispatched"
    at: UtcTime


class Observed(Record):
    """The provider's answer is stored; the receipt follows from it alone."""

    name: Literal["observed"] = "observed"
    at: UtcTime
    answer: Annotated[AnswerApplied | AnswerRejected, Field(discriminator="name")]
    reconciled: bool = False


class Applied(Record):
    """It happened; the receipt says how we know."""

    name: Literal["applied"] = "applied"
    at: UtcTime
    receipt: Id


class Failed(Record):
    """It definitely did not happen, and will not by this command."""

    name: Literal["failed"] = "failed"
    at: UtcTime
    reason: str
    receipt: Id | None = None


class Unknown(Record):
    """It may have happened. Only evidence or a person moves it on; `found` is the last look's."""

    name: Literal["unknown"] = "unknown"
    dispatched_at: UtcTime
    at: UtcTime
    reason: str
    checked_at: UtcTime | None = None
    found: str = ""


class CommandCancelled(Record):
    """Taken back before it was sent."""

    name: Literal["cancelled"] = "cancelled"
    at: UtcTime
    reason: str


class ClosedUnproven(Record):
    """A person stopped here: no claim of success, none of failure."""

    name: Literal["closed_unproven"] = "closed_unproven"
    at: UtcTime
    by: Id
    reason: str


CommandState = Annotated[
    Prepared
    | Dispatched
    | Observed
    | Applied
    | Failed
    | Unknown
    | CommandCancelled
    | ClosedUnproven,
    Field(discriminator="name"),
]

TRANSITIONS: Final[dict[str, tuple[str, ...]]] = {
    "prepared": ("dispatched", "cancelled"),
    "dispatched": ("observed", "prepared", "unknown"),
    "observed": ("applied", "failed"),
    "unknown": ("observed", "prepared", "applied", "closed_unproven"),
    "applied": (),
    "failed": (),
    "cancelled": (),
    "closed_unproven": (),
}


class Command(Record):
    """The durable intent of one effect. `attempt` counts opened attempts, beginning at 1.

    `policy_version` is the policy under which it was prepared, then the one of its last dispatch.
    """

    id: Id
    job: Id
    approval: Id
    terms: Terms
    terms_digest: Digest
    policy_version: int
    holder: Fence
    attempt: int = 1
    tries: int = 0
    """How often a try was proved not to have entered the provider."""
    created_at: UtcTime
    state: CommandState


def prepare(
    id_: str,
    job: str,
    approval: str,
    *,
    approved_digest: str,
    terms: Terms,
    policy_version: int,
    holder: Fence,
    now: datetime,
) -> Command | Refused:
    """Create the intent, only for exactly the approved terms (INV-5)."""
    digest = terms.digest
    if digest != approved_digest:
        return Refused("only exactly approved terms are prepared", digest)
    return Command(
        id=id_,
        job=job,
        approval=approval,
        terms=terms,
        terms_digest=digest,
        policy_version=policy_version,
        holder=holder,
        created_at=now,
        state=Prepared(at=now, ready_at=now),
    )


def ready_at(command: Command) -> datetime | None:
    """From when on a prepared command may be dispatched."""
    state = command.state
    if not isinstance(state, Prepared):
        return None
    return max(state.ready_at, command.terms.not_before or state.ready_at)


def take_over(command: Command, fence: Fence) -> Command | Refused:
    """A newer claim of the operation that holds the command goes on with it."""
    if command.holder.operation != fence.operation:
        return Refused("only its holder moves a command", command.holder.operation)
    if fence.epoch < command.holder.epoch:
        return Refused("only the newest epoch writes", f"epoch {command.holder.epoch}")
    return hand_over(command, fence)


def hand_over(command: Command, holder: Fence) -> Command:
    """Give the command to another fence, in a commit of the present holder or of a scan."""
    return command.model_copy(update={"holder": holder})


def dispatch(
    command: Command, fence: Fence, now: datetime, *, policy_version: int
) -> Command | Refused:
    """Prepared → dispatched by its holder; digest and time window are checked once more."""
    if refused := _held(command, fence):
        return refused
    ready = ready_at(command)
    if ready is None:
        return Refused("only a prepared command is dispatched", command.state.name)
    if now < ready:
        return Refused("a prepared command is dispatched from its ready time on", "not ready")
    if command.terms.not_after is not None and now >= command.terms.not_after:
        return Refused("a command is dispatched inside its approved time window", "too late")
    if command.terms.digest != command.terms_digest:
        return Refused("what is dispatched equals what was approved", "digest differs")
    sent = _leave(command, Dispatched(at=now))
    return sent.model_copy(update={"policy_version": policy_version})


def observe(command: Command, fence: Fence, answer: Answer, now: datetime) -> Command | Refused:
    """Store what an answer means, for a dispatched or unknown command of this holder.

    An answer to an unknown command is a reconciliation. Absence is only ever proved by one: a send
    that calls itself absent is unknown.
    """
    if refused := _held(command, fence):
        return refused
    state = command.state
    if not isinstance(state, Dispatched | Unknown):
        return Refused("only a sent command is observed", state.name)
    reconciling = isinstance(state, Unknown)
    match answer:
        case AnswerApplied() | AnswerRejected():
            return _leave(command, Observed(at=now, answer=answer, reconciled=reconciling))
        case AnswerNotEntered(retry_at=retry_at) if not reconciling:
            ready = max(now, retry_at) if retry_at else now
            return _open(command, ready, now, tries=command.tries + 1)
        case AnswerAbsent() if reconciling:
            return _open(command, now, now, tries=command.tries)
        case AnswerAbsent():
            return lose(command, "the provider's answer contradicts itself", now)
        case AnswerUnknown(reason=reason) | AnswerNotEntered(reason=reason):
            # A look that did not reach the provider says nothing about the send.
            if not isinstance(state, Unknown):
                return lose(command, reason, now)
            looked = state.model_copy(update={"checked_at": now, "found": reason})
            return command.model_copy(update={"state": looked})


def lose(command: Command, reason: str, now: datetime) -> Command:
    """Dispatched → unknown; an unknown command stays as it is."""
    state = command.state
    if not isinstance(state, Dispatched):
        return command
    return _leave(command, Unknown(dispatched_at=state.at, at=now, reason=reason))


def settle(command: Command, fence: Fence, receipt: str, now: datetime) -> Command | Refused:
    """Observed → applied or failed, together with its receipt."""
    if refused := _held(command, fence):
        return refused
    state = command.state
    if not isinstance(state, Observed):
        return Refused("a receipt comes only from an observation", state.name)
    match state.answer:
        case AnswerApplied():
            return _leave(command, Applied(at=now, receipt=receipt))
        case AnswerRejected(reason=reason):
            return _leave(command, Failed(at=now, reason=reason, receipt=receipt))


def withdraw(command: Command, reason: str, now: datetime) -> Command | Refused:
    """Prepared → cancelled. Anything later is not cancellable."""
    if not isinstance(command.state, Prepared):
        return Refused("work past dispatch is never called cancelled", command.state.name)
    return _leave(command, CommandCancelled(at=now, reason=reason))


def unresolved(command: Command) -> bool:
    """Whether the provider may have acted without our knowing."""
    return isinstance(command.state, Dispatched | Unknown)


def _held(command: Command, fence: Fence) -> Refused | None:
    if command.holder != fence:
        return Refused("only its holder moves a command", command.holder.operation)
    return None


def _open(command: Command, ready: datetime, now: datetime, *, tries: int) -> Command:
    """A new attempt, opened by proof that the last one did nothing (INV-6)."""
    opened = _leave(command, Prepared(at=now, ready_at=ready))
    return opened.model_copy(update={"attempt": command.attempt + 1, "tries": tries})


def _leave(command: Command, state: CommandState) -> Command:
    """Move along the table. Callers have decided; a way that is not in it is a defect."""
    if state.name not in TRANSITIONS[command.state.name]:
        raise InvariantBroken(
            invariant="command states move along their table",
            detail=f"{command.id}: {command.state.name} to {state.name}",
        )
    return command.model_copy(update={"state": state})
