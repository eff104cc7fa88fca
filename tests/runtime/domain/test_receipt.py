"""Receipts and looks: what may be written, and that a connector does not judge itself. INV-7."""

from __future__ import annotations

import pytest

from runtime.domain import effect as effects
from runtime.domain import receipt as receipts
from runtime.domain.effect import AnswerApplied, AnswerRejected, AnswerUnknown, Command, Finding
from runtime.domain.operation import Refused
from runtime.domain.receipt import EVIDENCE_CHARS_MAX, Receipt
from tests.effects_made import command
from tests.world import START

DIGEST, OTHER = "a" * 64, "b" * 64


def observed(answer: AnswerApplied | AnswerRejected, *, lost: bool = False) -> Command:
    sent = effects.dispatch(command(), command().holder, START, policy_version=1)
    assert isinstance(sent, Command)
    if lost:
        sent = effects.lose(sent, "no answer", START)
    seen = effects.observe(sent, sent.holder, answer, START)
    assert isinstance(seen, Command)
    return seen


def received(answer: AnswerApplied | AnswerRejected, *, lost: bool = False) -> Receipt:
    receipt = receipts.receive(observed(answer, lost=lost), START)
    assert isinstance(receipt, Receipt)
    return receipt


APPLIED = AnswerApplied(reference="there", digest=DIGEST, detail="4 files")


def test_a_receipt_repeats_the_observation_and_names_its_fence() -> None:
    receipt = received(APPLIED)
    stored = command()
    assert (receipt.outcome, receipt.origin) == ("applied", "observation")
    assert (receipt.reference, receipt.content_digest, receipt.detail) == (
        "there",
        DIGEST,
        "4 files",
    )
    assert receipt.terms_digest == stored.terms.digest
    assert (receipt.operation, receipt.epoch) == (stored.holder.operation, stored.holder.epoch)


def test_a_receipt_says_when_a_look_and_not_the_send_brought_it() -> None:
    assert received(APPLIED, lost=True).origin == "reconciliation"


def test_a_refusal_is_received_as_one_and_refers_to_nothing() -> None:
    receipt = received(AnswerRejected(reason="too long"))
    assert (receipt.outcome, receipt.reference, receipt.content_digest, receipt.detail) == (
        "rejected",
        "",
        None,
        "too long",
    )


def test_without_an_observation_there_is_no_receipt() -> None:
    """INV-7."""
    sent = effects.dispatch(command(), command().holder, START, policy_version=1)
    assert isinstance(sent, Command)
    for stored in (command(), sent, effects.lose(sent, "no answer", START)):
        assert isinstance(receipts.receive(stored, START), Refused)


@pytest.mark.parametrize(
    ("ok", "digest", "verified"),
    [
        (True, DIGEST, True),
        (True, None, True),
        (True, OTHER, False),
        (False, DIGEST, False),
        (False, None, False),
    ],
)
def test_a_look_verifies_only_what_the_receipt_says(
    digest: str | None, *, ok: bool, verified: bool
) -> None:
    finding = Finding(ok=ok, method="reread", evidence="seen", digest=digest)
    look = receipts.verify(received(APPLIED), finding, "verify-op", 3, START)
    assert look.verified is verified
    assert look.id.endswith(":look:3")
    assert look.digest == digest
    assert look.evidence.endswith("seen")


def test_a_refusal_is_never_verified_as_done() -> None:
    finding = Finding(ok=True, method="reread", evidence="seen")
    refused = received(AnswerRejected(reason="too long"))
    assert not receipts.verify(refused, finding, "op", 1, START).verified


def test_evidence_keeps_its_bound_when_a_sentence_is_added() -> None:
    long = "x" * EVIDENCE_CHARS_MAX
    finding = Finding(ok=True, method="reread", evidence=long, digest=OTHER)
    look = receipts.verify(received(APPLIED), finding, "op", 1, START)
    assert len(look.evidence) == EVIDENCE_CHARS_MAX
    assert look.evidence.startswith("The digest differs")


def test_a_late_answer_has_one_name_per_claim_that_lost_its_fence() -> None:
    stored = command()
    late = receipts.late_answer(stored, stored.holder, AnswerUnknown(reason="late"), START)
    again = receipts.late_answer(stored, stored.holder, APPLIED, START)
    newer = stored.holder.model_copy(update={"epoch": 2})
    assert late.id == again.id
    assert late.id != receipts.late_answer(stored, newer, APPLIED, START).id
