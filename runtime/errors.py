"""Faults of the runtime, as one tree.

Refusals (a duplicate, a stale epoch, a late vote) are values and live beside the decision that
makes them. What is *raised* is a fault: something the caller could not have decided.

    HarmoniaError
    ├── StoreError
    │   ├── Contention            retries spent under the overall deadline
    │   ├── AlreadyExists         Create of a key that exists
    │   ├── RecordTooLarge        a record above the store's limit, found before any IO
    │   ├── RecordUnreadable      stored bytes that no codec version accepts
    │   ├── UndeclaredQuery       a query without a declared index
    │   ├── ScopeViolation        a handle asked for a key outside its scope        (INV-18)
    │   └── StoreUnavailable      the store could not be reached
    ├── InvariantBroken           a state that must not exist was about to be written
    ├── BadInput                  bytes from outside that are not what they must be
    │   └── NotCanonical          a value that has no canonical bytes
    ├── ArtifactError
    │   ├── ArtifactMissing · ArtifactNotReady · ArtifactCorrupt · WindowRefused
    ├── ProjectionOverflow        the authority section does not fit                 (INV-9)
    ├── CognitionError            a model's answer that cannot be accepted
    ├── FenceLost                 a worker's epoch is no longer the operation's      (INV-3)
    └── SettingsError             the process cannot start as configured

Every fault carries its fields, names the rule it protects and says what to do next; `sentence`
is what an operator may read. Fields never hold prompts, drafts, credentials or provider bodies
(INV-20).
"""

from __future__ import annotations

from typing import ClassVar


class HarmoniaError(Exception):
    """Root of every fault. Subclasses set `rule` and `remedy` and pass their fields by name."""

    rule: ClassVar[str] = "the system keeps its promises"
    remedy: ClassVar[str] = "look at the log entry with this error's name"

    def __init__(self, **fields: object) -> None:
        """Keep the fields; the message is made from them."""
        self.fields = fields
        super().__init__(self.sentence)

    @property
    def sentence(self) -> str:
        """One sentence: what happened, the rule, and what to do next."""
        shown = ", ".join(f"{name}={value}" for name, value in self.fields.items())
        what = type(self).__name__ + (f" ({shown})" if shown else "")
        return f"{what}: {self.rule}; {self.remedy}."


class StoreError(HarmoniaError):
    """The store could not do what was asked."""

    rule = "a commit happens whole or not at all"
    remedy = "try again; nothing was written"


class Contention(StoreError):
    """Fields: attempts, seconds."""

    rule = "a commit is retried only under its overall deadline"
    remedy = "try again in a moment; another worker holds the same records"


class AlreadyExists(StoreError):
    """Fields: key."""

    rule = "Create never replaces a record"
    remedy = "read the record that is there"


class RecordTooLarge(StoreError):
    """Fields: key, bytes, limit_bytes."""

    rule = "a record is at most 1 MiB, so that every store can hold it"
    remedy = "spill the large field to an artifact"


class RecordUnreadable(StoreError):
    """Fields: key, cause."""

    rule = "only records of a known version and shape are acted on"
    remedy = "report the key; the record is skipped, not lost"


class UndeclaredQuery(StoreError):
    """Fields: collection, query."""

    rule = "each query is declared, so that each store has its index"
    remedy = "declare it in runtime/stores/collections.py"


class ScopeViolation(StoreError):
    """Fields: key, scope."""

    rule = "nothing crosses a tenant"
    remedy = "use the handle of the record's own scope"


class StoreUnavailable(StoreError):
    """Fields: cause."""

    rule = "nothing is acknowledged before its commit"
    remedy = "check the disk or the connection; the work resumes by itself"


class InvariantBroken(HarmoniaError):
    """Fields: invariant, detail."""

    rule = "an impossible state is never written"
    remedy = "this is a defect: report it with the fields"


class BadInput(HarmoniaError):
    """Fields: name the input and what is wrong with it."""

    rule = "input is used only when it is what it must be"
    remedy = "send it again in a supported form"


class NotCanonical(BadInput):
    """Fields: path, cause."""

    rule = "only values with canonical bytes are hashed"
    remedy = "keep free-form JSON as an artifact or a text"


class ArtifactError(HarmoniaError):
    """Fields: artifact, and what was found."""

    rule = "only ready, unexpired, digest-valid artifacts are evidence"
    remedy = "send the source again"


class ArtifactMissing(ArtifactError):
    """Fields: artifact."""


class ArtifactNotReady(ArtifactError):
    """Fields: artifact, state."""


class ArtifactCorrupt(ArtifactError):
    """Fields: artifact, expected, found."""


class WindowRefused(ArtifactError):
    """Fields: artifact, start, count, limit."""

    rule = "reads of an artifact are bounded"
    remedy = "ask for a smaller window inside the artifact"


class ProjectionOverflow(HarmoniaError):
    """Fields: section, needed_chars, budget_chars."""

    rule = "authority is never truncated"
    remedy = "raise the projection budget or shorten the goal"


class CognitionError(HarmoniaError):
    """Fields: agent, kind, detail.

    `kind` is truncated, blocked, empty, fenced, schema, ungrounded, call or busy.
    """

    rule = "only complete output of the agreed shape is accepted"
    remedy = "the step is tried again within its budget, then a person is asked"


class FenceLost(HarmoniaError):
    """Fields: operation, epoch."""

    rule = "a write happens only while the operation is claimed at this epoch"
    remedy = "nothing: the newer worker goes on"


class SettingsError(HarmoniaError):
    """Fields: setting, cause."""

    rule = "a process starts only with settings it understands"
    remedy = "see .env.example"
