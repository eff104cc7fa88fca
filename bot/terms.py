"""The terms of a job's effect: what exactly a person is asked to approve.

For now every job asks for one content pack. The payload is made by the connector's own rules and
covers everything that goes into the pack, so the approval's digest does too (INV-5).
"""

from __future__ import annotations

from connectors.content_pack.payload import EFFECT, Origin, build_payload
from connectors.registry import Registry
from runtime.domain.effect import Finding, Terms
from runtime.domain.job import Job
from runtime.domain.proposal import Analysis, Draft
from runtime.domain.revision import Revision, RevisionRef
from runtime.domain.values import Scope, Tenant
from runtime.errors import BadInput, InvariantBroken

ACCOUNT = "content-packs"


class PackTerms:
    """Makes the terms of a content pack."""

    def __init__(self, registry: Registry) -> None:
        """Keep who makes packs."""
        self._registry = registry

    async def __call__(
        self, scope: Scope, job: Job, draft: Revision, analysis: Revision
    ) -> Terms | Finding:
        """The terms, or in words why this draft cannot be exported."""
        connector = self._registry.for_effect(EFFECT)
        if isinstance(connector, Finding):
            return connector
        if not isinstance(scope, Tenant):
            raise InvariantBroken(invariant="INV-18", detail=f"{job.id}: a job without a tenant")
        text, facts = draft.body, analysis.body
        if not isinstance(text, Draft) or not isinstance(facts, Analysis):
            raise InvariantBroken(invariant="INV-8", detail=f"{job.id}: revisions of another type")
        try:
            refs = (analysis.ref, *self._strategy(job), draft.ref)
            payload = build_payload(text, facts, Origin(scope, job, refs))
        except BadInput as refusal:
            return Finding(ok=False, method="build_payload", evidence=refusal.sentence)
        wanted = Terms(effect=EFFECT, account=ACCOUNT, revision=draft.ref, payload=payload)
        prepared = await connector.prepare(wanted)
        if isinstance(prepared, Finding):
            return prepared
        return wanted.model_copy(update={"payload": prepared})

    def _strategy(self, job: Job) -> tuple[RevisionRef, ...]:
        ref = job.heads.get("strategy")
        return () if ref is None else (ref,)
