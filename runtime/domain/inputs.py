"""Inputs: everything that a projection is made of, as read from the store in one snapshot.

Only what is consequential stands here: no lease, no attempt, no time of reading. Changing any field
changes the projection's identity; changing the epoch alone leaves its basis.
"""

from __future__ import annotations

from typing import Final

from pydantic import Field

from runtime.domain.material import Material, Omission
from runtime.domain.projection import Agent
from runtime.domain.revision import RevisionRef
from runtime.domain.values import Digest, Id, Record, Tenant, Trust, UtcTime

BUDGET_CHARS_MIN: Final = 500
BUDGET_CHARS_MAX: Final = 200_000
BUDGET_CHARS: Final[dict[Agent, int]] = {
    "reader": 100_000,  # a whole window, even one whose every second character is a line break
    "analyst": 48_000,
    "strategist": 48_000,
    "writer": 48_000,
    "reviewer": 48_000,
    "chat": 48_000,
}


class OperationFacts(Record):
    """The operation that asks."""

    id: Id
    epoch: int
    kind: Id
    goal_kind: Id
    goal_version: int
    goal_digest: Digest
    acceptance: tuple[str, ...]


class JobFacts(Record):
    """The job it belongs to."""

    id: Id
    number: int
    stage: str
    state: str
    source: Id | None
    source_digest: Digest | None


class PolicyFacts(Record):
    """The policy in force; `digest` covers all of it."""

    version: int
    digest: Digest
    allowed_effects: tuple[str, ...]
    approvals_needed: int
    blocked_terms: tuple[str, ...]


class ApprovalFacts(Record):
    """One approval of the job, whatever its state."""

    id: Id
    kind: str
    state: str
    digest: Digest
    subject: Id
    needed: int
    policy_version: int


class EffectFacts(Record):
    """A command whose outcome is not settled."""

    id: Id
    effect: str
    state: str
    attempt: int
    terms_digest: Digest


class ReceiptFacts(Record):
    """What was observed."""

    id: Id
    command: Id
    effect: str
    outcome: str
    origin: str
    content_digest: Digest | None


class VerificationFacts(Record):
    """What a second look found."""

    id: Id
    receipt: Id
    verified: bool
    method: str


class MemoryHit(Record):
    """A remembered fact with the record that it rests on. Never authority."""

    id: Id
    lineage: Id
    text: str
    trust: Trust
    as_of: UtcTime


class Inputs(Record):
    """All of it."""

    tenant: Tenant
    operation: OperationFacts
    agent: Agent
    step: Id
    model: str
    job: JobFacts | None = None
    policy: PolicyFacts | None = None
    approvals: tuple[ApprovalFacts, ...] = ()
    effects: tuple[EffectFacts, ...] = ()
    revisions: tuple[RevisionRef, ...] = ()
    receipts: tuple[ReceiptFacts, ...] = ()
    verifications: tuple[VerificationFacts, ...] = ()
    materials: tuple[Material, ...] = ()
    memory: tuple[MemoryHit, ...] = ()
    omissions: tuple[Omission, ...] = ()
    budget_chars: int = Field(ge=BUDGET_CHARS_MIN, le=BUDGET_CHARS_MAX)
