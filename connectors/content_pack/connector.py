"""The content-pack connector: an approved draft becomes one file, once.

The name of a pack follows from its command, and a file is only ever created, never replaced. So the
command's ID is an idempotency key that the file system enforces, and absence can be proved: no file
of that name, nobody holding the command's lock, and the attempts so far closed (see `place.py`).

What a disk says is classified by when it says it. Before the link, nothing is there: not entered.
At the link, a definite refusal is not entered and anything else unknown. After it, a file that the
disk did not confirm is unknown. A file of that name with the same bytes is ours: applied. With
other bytes it cannot be ours when a send begins (an attempt is opened only by proof that nothing
was there), so the send is rejected, and nothing is overwritten; a look cannot tell a foreign file
from a pack that was changed later, so for a look it is unknown.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path, PurePosixPath
from typing import Final

from connectors.content_pack.errors import PackReferenceRefused
from connectors.content_pack.look import differences
from connectors.content_pack.names import file_name, folder_name, pack_key
from connectors.content_pack.pack import entries, pack_bytes
from connectors.content_pack.payload import EFFECT, read_payload
from connectors.content_pack.place import LOCK_TRIES, Place
from connectors.outcomes import DISK_FULL, DISK_NEEDS_PERSON, definite_at_link, disk_words
from runtime.domain.effect import (
    Answer,
    AnswerAbsent,
    AnswerApplied,
    AnswerNotEntered,
    AnswerRejected,
    AnswerUnknown,
    Command,
    Descriptor,
    Finding,
    Terms,
)
from runtime.domain.values import Tenant, sha256, short
from runtime.errors import BadInput
from runtime.ports import Clock

DISK_FULL_RETRY: Final = timedelta(minutes=1)
METHOD: Final = "pack_reread"
PROBE: Final = ".probe"
SPARE_BYTES: Final = 1_048_576
"""How much more than a pack's own length a look reads of a file in its place."""

DESCRIPTOR: Final = Descriptor(
    id="content_pack",
    label="Content pack",
    capabilities=("export", "verify"),
    effects=(EFFECT,),
    idempotent=True,
    independent_verification=True,
    undo="none",
)


@dataclass(frozen=True, slots=True)
class _Plan:
    """Everything that follows from a command."""

    folders: tuple[str, str]
    name: str
    key: str
    files: dict[str, bytes]
    data: bytes

    @property
    def reference(self) -> str:
        return str(PurePosixPath(*self.folders, self.name))


def _plan(command: Command) -> _Plan:
    """Raises PackRefused for a payload that is none."""
    payload = read_payload(command.terms.payload)
    files = entries(command, payload)
    return _Plan(
        folders=(folder_name(payload.workspace), folder_name(payload.brand)),
        name=file_name(payload.title, command.id),
        key=pack_key(command.id),
        files=files,
        data=pack_bytes(files),
    )


def archive(command: Command) -> tuple[str, bytes]:
    """The file name and the bytes of a command's pack: a function of the command alone.

    Raises:
        PackRefused: the command is not about a pack.
    """
    plan = _plan(command)
    return plan.name, plan.data


class ContentPack:
    """Connector of `content_pack.export`, writing below one folder of this machine."""

    def __init__(self, packs_dir: Path, clock: Clock) -> None:
        """Keep the folder; it is made when it is first needed."""
        self._root = packs_dir
        self._clock = clock

    @property
    def descriptor(self) -> Descriptor:
        """What this connector declares."""
        return DESCRIPTOR

    async def validate_connection(self) -> Finding:
        """Whether files can be written and linked where packs go."""
        return await asyncio.to_thread(self._validate)

    async def prepare(self, terms: Terms) -> str | Finding:
        """The payload as it will be packed, or why it cannot be."""
        try:
            read_payload(terms.payload)
        except BadInput as refused:
            return Finding(ok=False, method="payload", evidence=refused.sentence)
        return terms.payload

    async def execute(self, command: Command) -> Answer:
        """Write the pack, if it is not there."""
        return await asyncio.to_thread(self._execute, command)

    async def verify(self, command: Command, reference: str) -> Finding:
        """Read the pack again and compare it with what was approved."""
        return await asyncio.to_thread(self._verify, command, reference)

    async def reconcile(self, command: Command) -> Answer:
        """Whether the pack is there, not there for good, or neither is certain."""
        return await asyncio.to_thread(self._reconcile, command)

    def path(self, tenant: Tenant, reference: str) -> Path:
        """The file of a tenant's pack, to hand it to a person.

        Raises:
            PackReferenceRefused: a reference that leads anywhere else.
        """
        parts = PurePosixPath(reference).parts
        own = (folder_name(tenant.workspace), folder_name(tenant.brand))
        if parts[:2] != own or len(parts) != len(own) + 1 or parts[2].startswith("."):
            raise PackReferenceRefused(cause="not a pack of this brand")
        return self._root.joinpath(*parts)

    # --- in a thread -----------------------------------------------------------------------------

    def _execute(self, command: Command) -> Answer:
        try:
            plan = _plan(command)
        except BadInput as refused:
            return AnswerRejected(reason=refused.sentence[:1_000])
        try:
            with self._place(plan) as place, place.holding(LOCK_TRIES) as held:
                if not held:
                    return AnswerUnknown(reason="Another process is writing this pack.")
                return self._write(place, plan, command.attempt)
        except OSError as error:
            # `_write` answers for itself: what arrives here came before it or closed folders.
            return self._not_entered(error)

    def _write(self, place: Place, plan: _Plan, attempt: int) -> Answer:
        """Called under the lock."""
        try:
            if place.closed() >= attempt:
                reason = "This attempt was closed when a look found nothing."
                return AnswerNotEntered(reason=reason)
            if (found := _there(place, plan)) is not None:
                return _present(place, plan, found)
            place.stage(plan.data)
        except OSError as error:
            place.discard()
            return self._not_entered(error)
        try:
            place.publish(plan.name)
        except FileExistsError:
            place.discard()
            return _appeared(place, plan)
        except OSError as error:
            place.discard()
            if definite_at_link(error):
                return self._not_entered(error)
            return AnswerUnknown(
                reason=f"The disk failed while the pack appeared: {disk_words(error)}."
            )
        place.discard()
        return _confirmed(place, plan)

    def _reconcile(self, command: Command) -> Answer:
        try:
            plan = _plan(command)
            with self._place(plan) as place, place.holding(1) as held:
                if not held:
                    return AnswerUnknown(reason="A process is still writing this pack.")
                found = _there(place, plan)
                if found is None:
                    return _absent(place, plan, command.attempt)
                if not found:
                    reason = f"{plan.reference} is there with other bytes than approved."
                    return AnswerUnknown(reason=reason)
                place.discard()
                return _confirmed(place, plan)
        except BadInput as refused:
            return AnswerUnknown(reason=refused.sentence[:1_000])
        except OSError as error:
            return AnswerUnknown(
                reason=f"The folder of packs could not be read: {disk_words(error)}."
            )

    def _verify(self, command: Command, reference: str) -> Finding:
        try:
            plan = _plan(command)
            if reference != plan.reference:
                evidence = "The receipt refers to another file than this command's."
                return Finding(ok=False, method=METHOD, evidence=evidence)
            with self._place(plan) as place:
                data = place.read(plan.name, len(plan.data) + SPARE_BYTES)
        except BadInput as refused:
            return Finding(ok=False, method=METHOD, evidence=refused.sentence[:2_000])
        except OSError as error:
            evidence = f"{reference} could not be read: {disk_words(error)}."
            return Finding(ok=False, method=METHOD, evidence=evidence)
        if data is None:
            return Finding(ok=False, method=METHOD, evidence=f"{reference} is not there.")
        digest = sha256(data)
        found = differences(data, plan.files, command.terms.payload)
        if found:
            evidence = f"{reference} is not as approved: {'; '.join(found)}."[:2_000]
            return Finding(ok=False, method=METHOD, evidence=evidence, digest=digest)
        evidence = (
            f"{len(plan.files)} entries read again from disk; checksums, digests and texts equal "
            f"what was approved (SHA-256 {short(digest)}…)."
        )
        return Finding(ok=True, method=METHOD, evidence=evidence, digest=digest)

    def _validate(self) -> Finding:
        try:
            with Place(self._root, (), PROBE) as place, place.holding(LOCK_TRIES) as held:
                if held:
                    place.remove(PROBE)
                    place.stage(b"")
                    place.publish(PROBE)
                    place.remove(PROBE)
                    place.discard()
        except OSError as error:
            evidence = f"Packs cannot be written to {self._root}: {disk_words(error)}."
            return Finding(ok=False, method="probe_file", evidence=evidence)
        evidence = f"Packs can be written to {self._root}."
        return Finding(ok=True, method="probe_file", evidence=evidence)

    def _place(self, plan: _Plan) -> Place:
        return Place(self._root, plan.folders, plan.key)

    def _not_entered(self, error: OSError) -> AnswerNotEntered:
        """Nothing has the pack's name; whether by itself or with a person's help, try again."""
        full = error.errno in DISK_FULL
        return AnswerNotEntered(
            reason=f"The pack was not written: {disk_words(error)}.",
            retry_at=self._clock.now() + DISK_FULL_RETRY if full else None,
            credential_gap=error.errno in DISK_NEEDS_PERSON,
        )


def _there(place: Place, plan: _Plan) -> bool | None:
    """None if nothing has the pack's name, else whether it is exactly the pack."""
    data = place.read(plan.name, len(plan.data) + 1)
    return None if data is None else data == plan.data


def _appeared(place: Place, plan: _Plan) -> Answer:
    """Somebody who knows no lock made a file of that name just now."""
    try:
        return _present(place, plan, _there(place, plan) is True)
    except OSError as error:
        return AnswerUnknown(reason=f"{plan.reference} appeared unreadable: {disk_words(error)}.")


def _present(place: Place, plan: _Plan, same: bool) -> Answer:  # noqa: FBT001 - a yes or no is all
    if same:
        return _confirmed(place, plan)
    reason = f"{plan.reference} is there with other content; nothing was overwritten."
    return AnswerRejected(reason=reason)


def _confirmed(place: Place, plan: _Plan) -> Answer:
    """The pack is there; applied once the disk says that it stays."""
    try:
        place.keep(plan.name)
    except OSError as error:
        return AnswerUnknown(reason=f"The disk did not confirm the pack: {disk_words(error)}.")
    return AnswerApplied(
        reference=plan.reference,
        digest=sha256(plan.data),
        detail=f"{len(plan.files)} files, {len(plan.data):,} bytes",
    )


def _absent(place: Place, plan: _Plan, attempt: int) -> Answer:
    """Nothing is there and nobody is sending: make that final for the attempts so far."""
    place.discard()
    place.close_attempts(attempt)
    return AnswerAbsent(
        proof=f"No file {plan.reference}; nobody holds its lock; attempts up to {attempt} closed."
    )
