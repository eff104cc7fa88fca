"""The first stage: the source is brought, stored whole, converted and stored as text.

The raw bytes are an artifact before anything looks into them, and the text is another; both have
IDs that follow from the job, so a repeated attempt converges. A source that cannot be used stops
the job with a sentence for the operator; a fault of ours is tried again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from runtime.domain import artifact as artifacts
from runtime.domain import job as jobs
from runtime.domain.artifact import Artifact, Ready, Writing
from runtime.domain.job import Job, Source
from runtime.domain.operation import Operation
from runtime.domain.values import Trust
from runtime.engine.spill import Spill, fenced_by
from runtime.engine.stages import (
    current_job,
    moved,
    nothing_to_do,
    on_stage,
    stage_operation,
    stop_job,
)
from runtime.engine.work import Step, Work
from runtime.errors import AlreadyExists, BadInput
from runtime.ports import Fetched, Put, Reads
from runtime.stores.collections import ARTIFACTS, JOBS

PRODUCER = "harmonia/read"
TEXT_TYPE = "text/plain; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Converted:
    """A source as text. `notes` are for the operator."""

    text: str
    title: str
    notes: tuple[str, ...]


class Sources(Protocol):
    """Brings sources and converts them. Raises BadInput for what cannot be used."""

    async def bring(self, source: Source) -> Fetched:
        """The bytes of a file or a link."""
        ...

    async def convert(self, data: bytes, name: str, content_type: str) -> Converted:
        """The text in those bytes."""
        ...


class Reading:
    """Handler of `stage.read`."""

    def __init__(self, spill: Spill, sources: Sources) -> None:
        """Keep the parts it works with."""
        self._spill = spill
        self._sources = sources

    async def __call__(self, work: Work) -> None:
        """Bring, store, convert, store; or stop the job in words."""
        job = await work.store.get(JOBS.key(work.scope, work.operation.job or ""))
        if job is None or not on_stage(job, "read"):
            await self._end(work)
            return
        try:
            raw, data = await self._raw(work, job)
            converted = await self._sources.convert(data, raw.file_name, raw.content_type)
            text = await self._text(work, job, converted)
        except BadInput as refusal:
            await stop_job(work, refusal.sentence)
            return
        await self._advance(work, raw, text, converted)

    async def _raw(self, work: Work, job: Job) -> tuple[Artifact, bytes]:
        """The source's bytes, from the artifact if an earlier attempt brought them."""
        source = job.source
        raw_id = source.raw or f"{job.id}:raw"
        stored = await work.store.get(ARTIFACTS.key(work.scope, raw_id))
        if stored is not None and isinstance(stored.state, Ready):
            return stored, await self._spill.whole(work.store, work.scope, raw_id)
        fetched = await self._sources.bring(source)
        kind = fetched.content_type or source.declared_type or "application/octet-stream"
        name = fetched.file_name or source.name
        try:
            artifact = await self._store(work, raw_id, fetched.data, kind, name)
        except AlreadyExists:
            await self._give_up(work, raw_id)
            artifact = await self._store(work, raw_id, fetched.data, kind, name)
        return artifact, fetched.data

    async def _give_up(self, work: Work, raw_id: str) -> None:
        """An attempt that died left other bytes, of a source that has changed since.

        They never became ready, so nothing rests on them, and these ones are stored instead.
        """
        key = ARTIFACTS.key(work.scope, raw_id)

        async def body(reads: Reads, current: Operation) -> Step[None]:
            del current
            known = await reads.get(key)
            if known is None or not isinstance(known.state, Writing):
                return Step(None)
            failed = artifacts.fail(known, "the source changed while it was stored", work.now())
            return Step(None, (Put(key, failed),))

        await work.commit(body)

    async def _text(self, work: Work, job: Job, converted: Converted) -> Artifact:
        text = converted.text.encode()
        return await self._store(work, f"{job.id}:text", text, TEXT_TYPE, "source.txt")

    async def _store(
        self, work: Work, id_: str, data: bytes, content_type: str, file_name: str
    ) -> Artifact:
        return await self._spill.store(
            work.store,
            work.scope,
            data,
            job=work.operation.job,
            content_type=content_type,
            file_name=file_name,
            trust=Trust.EXTERNAL,
            producer=PRODUCER,
            retention="source",
            artifact_id=id_,
            commit=fenced_by(work),
        )

    async def _advance(
        self, work: Work, raw: Artifact, text: Artifact, converted: Converted
    ) -> None:
        async def body(reads: Reads, current: Operation) -> Step[None]:
            now = work.now()
            job = await current_job(reads, work.scope, current)
            if not on_stage(job, "read"):
                return nothing_to_do(current, job, now)
            source = job.source.model_copy(
                update={
                    "raw": raw.id,
                    "text": text.id,
                    "text_digest": text.sha256,
                    "text_chars": len(converted.text),
                }
            )
            note = f"{len(converted.text):,} characters"
            if converted.notes:
                note = f"{note}; {'; '.join(converted.notes)}"
            read = jobs.advance(job, note, now).model_copy(update={"source": source})
            return moved(
                work.scope, current, read, stage_operation(read, "analyse", current, now), now
            )

        await work.commit(body)

    async def _end(self, work: Work) -> None:
        async def body(reads: Reads, current: Operation) -> Step[None]:
            return nothing_to_do(current, await current_job(reads, work.scope, current), work.now())

        await work.commit(body)
