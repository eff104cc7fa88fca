"""The pipeline: analyse → strategise → (decide) → write → review → (decide) → export.

Each handler reads what is stored, asks an agent through the journal, checks the result against the
source in deterministic code, and commits: revision, job and next operation in one transaction. The
operations of `write` and `export` begin by looking at the decision that they waited for.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

from runtime.domain import job as jobs
from runtime.domain.effect import Finding, Terms
from runtime.domain.job import Job, Stage
from runtime.domain.operation import Operation
from runtime.domain.policy import Policy
from runtime.domain.proposal import Analysis, Draft, Notes, Result, Review, Strategy, grounded
from runtime.domain.revision import Body, Revision, RevisionRef, revise
from runtime.domain.values import Scope, Trust
from runtime.engine.approvals import request
from runtime.engine.compiler import Excerpt, reading_plan
from runtime.engine.decided import decided
from runtime.engine.dispatcher import begun
from runtime.engine.spill import Spill
from runtime.engine.stages import (
    ask_person,
    current_job,
    moved,
    nothing_to_do,
    on_stage,
    stage_operation,
    stop_job,
)
from runtime.engine.thinking import Escalated, Thinker, anything
from runtime.engine.work import Handler, Step, Work
from runtime.errors import ArtifactError, InvariantBroken
from runtime.ports import Create, Reads
from runtime.stores.collections import APPROVALS, JOBS, POLICIES, REVISIONS

B = TypeVar("B", bound=Body)


class TermsMaker(Protocol):
    """Makes the exact terms of a job's effect, from its revisions. Implemented at composition."""

    async def __call__(
        self, scope: Scope, job: Job, draft: Revision, analysis: Revision
    ) -> Terms | Finding:
        """Terms to approve, or why the effect cannot be done."""
        ...


def rescued(handler: Callable[[Work, Job], Awaitable[None]], stage: Stage) -> Handler:
    """A stage handler: skips jobs that are elsewhere, and puts escalations before a person."""

    async def run(work: Work) -> None:
        job = await work.store.get(JOBS.key(work.scope, work.operation.job or ""))
        if job is None or not on_stage(job, stage):
            await work.commit(_leave(work))
            return
        try:
            await handler(work, job)
        except Escalated as escalated:
            await ask_person(work, f"agent: {escalated.reason}")
        except ArtifactError as error:
            await stop_job(work, error.sentence)

    return run


def _leave(work: Work) -> Callable[[Reads, Operation], Awaitable[Step[None]]]:
    async def body(reads: Reads, current: Operation) -> Step[None]:
        return nothing_to_do(current, await current_job(reads, work.scope, current), work.now())

    return body


class Pipeline:
    """Handlers of the stages between reading and exporting."""

    def __init__(
        self, thinker: Thinker, spill: Spill, terms: TermsMaker, dispatch: Handler
    ) -> None:
        """Keep the parts it works with; `dispatch` carries an approved export."""
        self._thinker = thinker
        self._spill = spill
        self._terms = terms
        self._dispatch = dispatch

    @property
    def handlers(self) -> dict[str, Handler]:
        """The handlers by operation kind."""
        return {
            "stage.analyse": rescued(self._analyse, "analyse"),
            "stage.strategise": rescued(self._strategise, "strategise"),
            "stage.write": self._write,
            "stage.review": rescued(self._review, "review"),
            "stage.export": self._export,
        }

    async def _analyse(self, work: Work, job: Job) -> None:
        text = job.source.text
        if text is None:
            raise InvariantBroken(invariant="S5", detail=f"{job.id} has no text")
        for index, window in enumerate(reading_plan(job.source.text_chars)):
            shown = await self._spill.read_window(
                work.store, work.scope, text, window.start, len(window)
            )

            def in_window(
                result: Result, shown: str = shown.text, at: int = window.start
            ) -> str | None:
                return grounded(result.quotes, shown, at) if isinstance(result, Notes) else None

            excerpt = Excerpt(artifact=text, start=window.start, count=len(window))
            await self._thinker.think(
                work, "reader", f"read:{index}", Notes, in_window, excerpts=(excerpt,)
            )
        source = await self._source_text(work, job)

        def in_source(result: Result) -> str | None:
            return _analysis_holds(result, source) if isinstance(result, Analysis) else None

        analysis, model = await self._thinker.think(work, "analyst", "analyse", Analysis, in_source)
        await self._advance(work, "analyse", analysis, model, note=f"{len(analysis.quotes)} quotes")

    async def _source_text(self, work: Work, job: Job) -> str:
        whole = await self._spill.whole(work.store, work.scope, job.source.text or "")
        return whole.decode()

    async def _strategise(self, work: Work, job: Job) -> None:
        analysis = await self._body(work, job.heads["analysis"], Analysis)
        known = {quote.id for quote in analysis.quotes}

        def rests(result: Result) -> str | None:
            if isinstance(result, Strategy) and not set(result.points) <= known:
                return "a point names a quote that is not in the analysis"
            return None

        strategy, model = await self._thinker.think(
            work, "strategist", "strategise", Strategy, rests
        )
        await self._advance(work, "strategise", strategy, model, note=strategy.headline[:200])

    async def _write(self, work: Work) -> None:
        if not await decided(work, "decide_strategy"):
            return
        await rescued(self._draft, "write")(work)

    async def _draft(self, work: Work, job: Job) -> None:
        analysis = await self._body(work, job.heads["analysis"], Analysis)
        known = {quote.id for quote in analysis.quotes}

        def rests(result: Result) -> str | None:
            if isinstance(result, Draft) and not all(
                set(section.quotes) <= known for section in result.sections
            ):
                return "a section names a quote that is not in the analysis"
            return None

        draft, model = await self._thinker.think(work, "writer", "write", Draft, rests)
        await self._advance(work, "write", draft, model, note=f"{len(draft.text):,} characters")

    async def _review(self, work: Work, job: Job) -> None:
        draft = await self._revision(work, job.heads["draft"])
        analysis = await self._revision(work, job.heads["analysis"])
        terms = await self._terms(work.scope, job, draft, analysis)
        if isinstance(terms, Finding):
            await ask_person(work, terms.evidence)
            return
        review, model = await self._thinker.think(work, "reviewer", "review", Review, anything)
        note = review.verdict if not review.findings else f"{review.verdict}: {review.findings[0]}"
        await self._advance(work, "review", review, model, note=note, terms=terms)

    async def _export(self, work: Work) -> None:
        # Once there is a command only the dispatcher ends the export, whatever became of the job.
        if await begun(work) or await decided(work, "decide_draft"):
            await self._dispatch(work)

    async def _advance(
        self,
        work: Work,
        stage: Stage,
        result: Body,
        model: str,
        *,
        note: str,
        terms: Terms | None = None,
    ) -> None:
        """Store the revision, move the job on and create the next operation, in one commit."""

        async def body(reads: Reads, current: Operation) -> Step[None]:
            now = work.now()
            job = await current_job(reads, work.scope, current)
            if not on_stage(job, stage):
                return nothing_to_do(current, job, now)
            revision = revise(
                job.id,
                result,
                job.heads.get(result.result),
                author=model,
                trust=Trust.MODEL,
                based_on=tuple(job.heads[kind] for kind in sorted(job.heads)),
                operation=current.id,
                now=now,
            )
            after = jobs.advance(job, note, now).model_copy(
                update={
                    "heads": {**job.heads, revision.kind: revision.ref},
                    "title": result.title if isinstance(result, Analysis) else job.title,
                }
            )
            step = await self._next(reads, work, (current, after), revision, terms)
            created = Create(REVISIONS.key(work.scope, revision.id), revision)
            return Step(None, (created, *step.writes), step.operation)

        await work.commit(body)

    async def _next(
        self,
        reads: Reads,
        work: Work,
        stands: tuple[Operation, Job],
        revision: Revision,
        terms: Terms | None,
    ) -> Step[None]:
        """The next operation; behind a decision it waits for the approval requested here."""
        current, job = stands
        policy = await reads.get(POLICIES.key(work.scope, "current")) or Policy(since=work.now())
        now = work.now()
        following: dict[Stage, Stage] = {"decide_strategy": "write", "decide_draft": "export"}
        stage = following.get(job.stage)
        if stage is None:
            operation = stage_operation(job, job.stage, current, now)
            return moved(work.scope, current, job, operation, now)
        subject = revision
        if terms is not None:
            draft = await reads.get(REVISIONS.key(work.scope, terms.revision.id))
            if draft is None or draft.ref != job.heads.get("draft"):
                raise InvariantBroken(invariant="INV-15", detail=f"{job.id}: the draft has changed")
            subject = draft
        approval = request(
            job, subject, policy, terms=terms, operation=f"{job.id}:{stage}", now=now
        )
        waiting = stage_operation(job, stage, current, now, waits=approval)
        asked = job.model_copy(update={"approval": approval.id})
        step = moved(work.scope, current, asked, waiting, now)
        return Step(
            None,
            (*step.writes, Create(APPROVALS.key(work.scope, approval.id), approval)),
            step.operation,
        )

    async def _revision(self, work: Work, ref: RevisionRef) -> Revision:
        revision = await work.store.get(REVISIONS.key(work.scope, ref.id))
        if revision is None or revision.digest != ref.digest:
            raise InvariantBroken(invariant="INV-8", detail=f"revision {ref.id} is not as referred")
        return revision

    async def _body(self, work: Work, ref: RevisionRef, kind: type[B]) -> B:
        body = (await self._revision(work, ref)).body
        if not isinstance(body, kind):
            raise InvariantBroken(invariant="INV-8", detail=f"revision {ref.id} has another type")
        return body


def _analysis_holds(analysis: Analysis, source: str) -> str | None:
    """Why an analysis does not hold against the source, or None."""
    ids = [quote.id for quote in analysis.quotes]
    if len(set(ids)) != len(ids):
        return "two quotes share an ID"
    if not set(analysis.summary) <= set(ids):
        return "the summary names a quote that is not there"
    return grounded(analysis.quotes, source)
