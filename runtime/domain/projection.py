"""Projections: what an agent is shown, as a pure function of stored state.

Keeps INV-8 (same state, same bytes, same ID) and INV-9 (the authority section is never truncated);
how one is made stands in `runtime/domain/manifest.py`.
"""

from __future__ import annotations

from typing import Literal

from runtime.domain.values import Digest, Id, Record

Agent = Literal["reader", "analyst", "strategist", "writer", "reviewer", "chat"]


class Projection(Record):
    """One compiled projection. `text` is all that reaches a model.

    `basis` is the digest of the manifest without the epoch: equal bases make equal model calls.
    """

    id: Digest
    operation: Id
    epoch: int
    agent: Agent
    step: str
    basis: Digest
    manifest: str
    manifest_digest: Digest
    rendered_digest: Digest
    text: str

    @property
    def record(self) -> ProjectionRecord:
        """What is stored of it."""
        return ProjectionRecord(
            id=self.id,
            operation=self.operation,
            epoch=self.epoch,
            agent=self.agent,
            step=self.step,
            basis=self.basis,
            manifest=self.manifest,
            rendered_digest=self.rendered_digest,
            rendered_chars=len(self.text),
        )


class ProjectionRecord(Record):
    """What is stored of a projection: enough to prove and to reproduce it."""

    id: Digest
    operation: Id
    epoch: int
    agent: Agent
    step: str
    basis: Digest
    manifest: str
    rendered_digest: Digest
    rendered_chars: int
