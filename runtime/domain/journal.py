"""The journal of model calls: a finished call is stored before its result is used.

A resumed operation finds its finished calls here and does not repeat them. `basis` is the digest of
everything that went in except the operation's epoch: a takeover reuses an equal call, and a changed
input makes a new one (its own value, never the earlier one's).
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from runtime.domain.proposal import Thought
from runtime.domain.values import Digest, Id, Record, UtcTime, identity


class ModelCall(Record):
    """One finished model call of one step."""

    id: Digest
    operation: Id
    step: Annotated[str, Field(max_length=200)]
    basis: Digest
    projection: Digest
    thought: Thought
    epoch: int
    at: UtcTime


def call_id(operation: str, step: str, basis: str) -> str:
    """The identity of a call: operation, step and basis."""
    return identity(operation, step, basis)
