"""Revisions: numbered, immutable, and named by what they say."""

from __future__ import annotations

from runtime.domain.canonical import canonical_digest
from runtime.domain.proposal import Draft, Section
from runtime.domain.revision import Body, Revision, RevisionRef, revise
from runtime.domain.values import Trust
from tests.world import START


def draft(text: str = "Friday.") -> Draft:
    return Draft(title="T", sections=(Section(text=text, quotes=("F1",)),))


def made(body: Body, previous: RevisionRef | None = None, author: str = "offline") -> Revision:
    return revise(
        "job-1",
        body,
        previous,
        author=author,
        trust=Trust.MODEL,
        based_on=(),
        operation="job-1:write",
        now=START,
    )


def test_the_first_revision_of_a_kind_is_number_one() -> None:
    first = made(draft())
    assert (first.id, first.number, first.kind) == ("job-1:draft:1", 1, "draft")
    assert first.digest == canonical_digest(draft())


def test_the_next_revision_has_its_own_id_and_leaves_the_first_alone() -> None:
    first = made(draft())
    second = made(draft("Monday."), first.ref)
    assert second.ref == RevisionRef(
        kind="draft", id="job-1:draft:2", number=2, digest=canonical_digest(draft("Monday."))
    )
    assert first == made(draft())


def test_the_digest_is_of_the_content_not_of_who_wrote_it() -> None:
    """INV-15: what is approved is what is said, whoever said it."""
    assert made(draft(), author="Ana").digest == made(draft()).digest
    assert made(draft("Friday. ")).digest != made(draft()).digest
