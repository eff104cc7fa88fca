"""The authority part of a projection: what was decided, each line with the record that decided it.

Keeps its half of INV-9: these lines are never cut. They are the compiler's own words around values;
a value that anybody else could have chosen is written as a JSON string, so that it stays one value.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from runtime.domain.inputs import Inputs
from runtime.domain.quoting import canonical_line
from runtime.domain.tasks import TASKS
from runtime.domain.values import Tenant

NONE: Final = "- none\n"


def authority(inputs: Inputs) -> str:
    """Sections 1 to 5, in authority order. The epoch is the only thing outside the basis."""
    sections = (
        ("1 Whose work this is", _whose(inputs)),
        ("2 Goal, acceptance and task", _goal(inputs)),
        ("3 Policy, approvals and unresolved effects", _rules(inputs)),
        ("4 Current revisions", _revisions(inputs)),
        ("5 Trusted observations", _observations(inputs)),
    )
    return "".join(section(title, lines) for title, lines in sections)


def section(title: str, lines: Iterator[str]) -> str:
    """A heading and its lines; a section without any says so."""
    body = "".join(f"- {line}\n" for line in lines)
    return f"# {title}\n{body or NONE}"


def _whose(inputs: Inputs) -> Iterator[str]:
    tenant: Tenant = inputs.tenant
    operation = inputs.operation
    cite = f"[operations/{operation.id}]"
    yield f"tenant: workspace {tenant.workspace}, brand {tenant.brand} [{tenant.path}]"
    yield f"operation: {operation.kind} {cite}"
    yield f"epoch: {operation.epoch} {cite}"
    yield f"agent: {inputs.agent}, step {inputs.step}, model {canonical_line(inputs.model)}"
    if inputs.job is not None:
        job = inputs.job
        yield f"job: number {job.number}, stage {job.stage}, {job.state} [jobs/{job.id}]"
        if job.source is not None:
            yield f"source text: digest {job.source_digest} [artifacts/{job.source}]"


def _goal(inputs: Inputs) -> Iterator[str]:
    operation = inputs.operation
    cite = f"[operations/{operation.id}]"
    goal = f"{operation.goal_kind} version {operation.goal_version}"
    yield f"goal: {goal}, digest {operation.goal_digest} {cite}"
    for line in operation.acceptance:
        yield f"acceptance: {canonical_line(line)} {cite}"
    for line in TASKS[inputs.agent]:
        yield f"task: {line}"


def _rules(inputs: Inputs) -> Iterator[str]:
    policy = inputs.policy
    if policy is None:
        yield "policy: none is stored, so no effect is allowed [policies/current]"
    else:
        cite = "[policies/current]"
        yield f"policy: version {policy.version}, digest {policy.digest} {cite}"
        yield f"allowed effects: {canonical_line(policy.allowed_effects)} {cite}"
        yield f"approvals needed: {policy.approvals_needed} {cite}"
        yield f"blocked terms: {canonical_line(policy.blocked_terms)} {cite}"
    for approval in inputs.approvals:
        said = f"{approval.kind} approval is {approval.state}"
        about = f"{approval.subject} digest {approval.digest}"
        under = f"policy version {approval.policy_version}, needs {approval.needed}"
        yield f"{said}: {about}, {under} [approvals/{approval.id}]"
    if not inputs.approvals:
        yield "approvals: none"
    for effect in inputs.effects:
        said = f"unresolved effect {effect.effect} is {effect.state}, attempt {effect.attempt}"
        yield f"{said}: terms digest {effect.terms_digest} [commands/{effect.id}]"
    if not inputs.effects:
        yield "unresolved effects: none"


def _revisions(inputs: Inputs) -> Iterator[str]:
    for ref in inputs.revisions:
        yield f"{ref.kind}: number {ref.number}, digest {ref.digest} [revisions/{ref.id}]"


def _observations(inputs: Inputs) -> Iterator[str]:
    for receipt in inputs.receipts:
        content = f", content digest {receipt.content_digest}" if receipt.content_digest else ""
        said = f"receipt: {receipt.effect} {receipt.outcome}, known by {receipt.origin}{content}"
        yield f"{said} [receipts/{receipt.id}]"
    for look in inputs.verifications:
        said = "verified" if look.verified else "NOT verified"
        method = canonical_line(look.method)
        yield f"{said}: {look.receipt} by {method} [verifications/{look.id}]"
