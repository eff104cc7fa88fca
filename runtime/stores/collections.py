"""Every collection: its record type and its declared queries. Stores learn names only here.

Records live in tenant scope, except those of `DIRECTORY_ONLY`; events and operations exist in
both: updates of unbound chats live in the directory (metadata only).
"""

from __future__ import annotations

from typing import Any, Final

from runtime.domain.approval import Approval
from runtime.domain.artifact import Artifact
from runtime.domain.card import Card
from runtime.domain.effect import Command
from runtime.domain.event import Event
from runtime.domain.feed import DirtyMarker, FeedChange, FeedHead, JobShell, NeedsYouItem
from runtime.domain.grant import Grant
from runtime.domain.job import Job
from runtime.domain.journal import ModelCall
from runtime.domain.lease import Lease
from runtime.domain.operation import Operation
from runtime.domain.people import Binding, Member, PairingCode
from runtime.domain.policy import Policy
from runtime.domain.projection import ProjectionRecord
from runtime.domain.question import Question
from runtime.domain.receipt import LateAnswer, Receipt, Verification
from runtime.domain.revision import Revision
from runtime.domain.values import Record
from runtime.ports import Collection, Query


class Counter(Record):
    """A small number that only rises, for numbers people type (job 17)."""

    id: str
    value: int


EVENTS: Final = Collection("events", Event)
OPERATIONS: Final = Collection(
    "operations",
    Operation,
    (
        Query("ready", ("state.name",), "state.ready_at", across=True, within=False),
        Query("lane", ("in_lane",), "lane_order"),
        Query("leases", ("state.name",), "state.until", across=True, within=False),
        Query("of_job", ("job",), "created_at"),
    ),
)
JOBS: Final = Collection("jobs", Job, (Query("by_number", (), "number"),))
COUNTERS: Final = Collection("counters", Counter)
REVISIONS: Final = Collection("revisions", Revision)
APPROVALS: Final = Collection("approvals", Approval, (Query("of_job", ("job",), "requested_at"),))
COMMANDS: Final = Collection(
    "commands",
    Command,
    (Query("of_job", ("job",), "created_at"),),
)
LATE_ANSWERS: Final = Collection(
    "late_answers", LateAnswer, (Query("of_command", ("command",), "at"),)
)
RECEIPTS: Final = Collection("receipts", Receipt, (Query("of_job", ("job",), "at"),))
VERIFICATIONS: Final = Collection("verifications", Verification, (Query("of_job", ("job",), "at"),))
ARTIFACTS: Final = Collection(
    "artifacts",
    Artifact,
    (
        Query("expiring", ("state.name",), "expires_at", across=True, within=False),
        Query("stuck", ("state.name",), "state.until", across=True, within=False),
        Query(
            "undeleted", ("state.name", "state.deleted"), "expires_at", across=True, within=False
        ),
    ),
)
MODEL_CALLS: Final = Collection(
    "model_calls", ModelCall, (Query("of_operation", ("operation",), "at"),)
)
PROJECTIONS: Final = Collection("projections", ProjectionRecord)
GRANTS: Final = Collection("grants", Grant)
QUESTIONS: Final = Collection(
    "questions", Question, (Query("at_place", ("place", "state.name"), "asked_at"),)
)
CARDS: Final = Collection(
    "cards",
    Card,
    (
        Query("due", ("pending",), "due_at", across=True, within=False),
        Query("of_subject", ("subject_id",), "created_at"),
        Query("at_place", ("destination", "state.name"), "created_at"),
    ),
)
MARKERS: Final = Collection(
    "markers", DirtyMarker, (Query("waiting", (), "at", across=True, within=False),)
)
SHELLS: Final = Collection("shells", JobShell, (Query("open", ("open",), "order"),))
ITEMS: Final = Collection(
    "items",
    NeedsYouItem,
    (Query("open", ("open",), "rank"), Query("of_job", ("job", "open"), "rank")),
)
FEED_HEADS: Final = Collection("feed_heads", FeedHead)
FEED_CHANGES: Final = Collection("feed_changes", FeedChange, (Query("after", (), "sequence"),))
POLICIES: Final = Collection("policies", Policy)
MEMBERS: Final = Collection("members", Member, (Query("by_role", ("role",), "since"),))
BINDINGS: Final = Collection("bindings", Binding)
PAIRING_CODES: Final = Collection("pairing_codes", PairingCode)
LEASES: Final = Collection("leases", Lease)

DIRECTORY_ONLY: Final = frozenset({"bindings", "pairing_codes", "leases"})

ALL: Final[tuple[Collection[Any], ...]] = (
    EVENTS,
    OPERATIONS,
    JOBS,
    COUNTERS,
    REVISIONS,
    APPROVALS,
    COMMANDS,
    LATE_ANSWERS,
    RECEIPTS,
    VERIFICATIONS,
    ARTIFACTS,
    MODEL_CALLS,
    PROJECTIONS,
    GRANTS,
    QUESTIONS,
    CARDS,
    MARKERS,
    SHELLS,
    ITEMS,
    FEED_HEADS,
    FEED_CHANGES,
    POLICIES,
    MEMBERS,
    BINDINGS,
    PAIRING_CODES,
    LEASES,
)
