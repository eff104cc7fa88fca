"""Revisions: immutable analysis, strategy, draft and review of a job.

A job points at the current revision of each kind; a new revision never changes an older one, and an
approval names the revision it was given for (INV-15).
"""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from runtime.domain.canonical import canonical_digest
from runtime.domain.proposal import Analysis, Draft, Result, Review, Strategy
from runtime.domain.values import Digest, Id, Record, Trust, UtcTime

RevisionKind = Literal["analysis", "strategy", "draft", "review"]
Body = Analysis | Strategy | Draft | Review


class RevisionRef(Record):
    """Points at one revision by ID and digest."""

    kind: RevisionKind
    id: Id
    number: int
    digest: Digest


class Revision(Record):
    """One immutable result. `author` is a model's name or a person's ID."""

    id: Id
    job: Id
    kind: RevisionKind
    number: int
    body: Result
    digest: Digest
    author: str
    trust: Trust
    based_on: tuple[RevisionRef, ...]
    operation: Id
    created_at: UtcTime

    @property
    def ref(self) -> RevisionRef:
        """The reference that approvals and manifests carry."""
        return RevisionRef(kind=self.kind, id=self.id, number=self.number, digest=self.digest)


def revise(
    job: str,
    body: Body,
    previous: RevisionRef | None,
    *,
    author: str,
    trust: Trust,
    based_on: tuple[RevisionRef, ...],
    operation: str,
    now: datetime,
) -> Revision:
    """The next revision of its kind."""
    number = previous.number + 1 if previous else 1
    kind = body.result
    return Revision(
        id=f"{job}:{kind}:{number}",
        job=job,
        kind=kind,
        number=number,
        body=body,
        digest=canonical_digest(body),
        author=author,
        trust=trust,
        based_on=based_on,
        operation=operation,
        created_at=now,
    )
