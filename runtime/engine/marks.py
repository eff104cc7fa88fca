"""Dirty markers: every mutation that people may see leaves one, in its own commit.

The projector reads them; no other transaction touches the feed. The subject is the job wherever
there is one; an operation without a job, an undelivered card and a conflict have their own.
`serial` names the writer's commit. That a marker is deleted only at the version read is the
store's doing: it checks every read at commit.
"""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from runtime.domain.feed import DirtyMarker
from runtime.domain.operation import Operation
from runtime.domain.values import Scope
from runtime.ports import Put
from runtime.stores.collections import MARKERS

Kind = Literal["job", "operation", "card", "event"]


def dirty(scope: Scope, kind: Kind, subject: str, now: datetime, serial: str) -> Put[DirtyMarker]:
    """The write that says: `subject` changed."""
    id_ = f"{kind}:{subject}"
    marker = DirtyMarker(id=id_, kind=kind, subject=subject, at=now, serial=serial)
    return Put(MARKERS.key(scope, id_), marker)


def dirty_operation(
    scope: Scope, operation: Operation, now: datetime, serial: str
) -> Put[DirtyMarker]:
    """The write that says: `operation` changed in a way that people may see."""
    if operation.job is not None:
        return dirty(scope, "job", operation.job, now, serial)
    return dirty(scope, "operation", operation.id, now, serial)
