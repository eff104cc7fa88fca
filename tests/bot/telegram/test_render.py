"""Rendering: each state in its own words, nothing that is not stored, buttons in their place."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.telegram.decisions import decision_card, decision_offers, everything
from bot.telegram.facts import DecisionFacts, JobFacts
from bot.telegram.grants import invitation_code, with_buttons
from bot.telegram.html import TEXT_UNITS_MAX, plain
from bot.telegram.render import item_card, job_card, question_card
from bot.telegram.states import effect_line
from bot.telegram.view import (
    PIECES_MAX,
    Offer,
    View,
    Whole,
    fitted,
    in_pieces,
    visible_units,
    with_note,
)
from runtime.domain import approval as approvals
from runtime.domain import effect
from runtime.domain.approval import Approval, Requested, Vote
from runtime.domain.effect import Command, Terms
from runtime.domain.feed import NeedsYouItem
from runtime.domain.grant import CALLBACK_BYTES_MAX, grant_id
from runtime.domain.job import Done, Job, NeedsPerson, Running, Source, Stopped
from runtime.domain.people import Member, Role
from runtime.domain.proposal import Draft, Section
from runtime.domain.question import Abandoned, Answered, Open, Question, QuestionExpired
from runtime.domain.receipt import Receipt, Verification
from runtime.domain.revision import Revision, revise
from runtime.domain.values import Fence, Trust
from runtime.ports import Content

NOW = datetime(2027, 1, 4, 9, 0, tzinfo=UTC)
LATER = NOW + timedelta(days=7)
KEY = b"a key for tests, long enough"


def job(**changes: object) -> Job:
    made = Job(
        id="job-1",
        number=17,
        title="Spring <release> & more",
        home="telegram:1001",
        by="telegram:1001",
        source=Source(kind="file", name="notes <1>.md", text_chars=104_331),
        stage="decide_draft",
        correlation="c",
        created_at=NOW,
        updated_at=NOW,
    )
    return made.model_copy(update=changes)


def draft(text: str = "It is <faster>.") -> Revision:
    body = Draft(title="News", sections=(Section(heading="Part & one", text=text, quotes=()),))
    return revise(
        "job-1",
        body,
        None,
        author="offline-1",
        trust=Trust.MODEL,
        based_on=(),
        operation="o",
        now=NOW,
    )


def around(made: Job, **more: object) -> JobFacts:
    nothing = JobFacts(made, None, None, None, None, None, None, None, None, None, ())
    return replace(nothing, **more)  # type: ignore[arg-type]  # fields of the record


def decision(text: str = "It is <faster>.", **changes: object) -> DecisionFacts:
    revision = draft(text)
    terms = Terms(
        effect="content_pack.export", account="packs", revision=revision.ref, payload='{"a":1}'
    )
    approval = Approval(
        id="a-1",
        job="job-1",
        kind="effect",
        subject=revision.ref,
        digest=terms.digest,
        terms=terms,
        policy_version=7,
        needed=2,
        operation="o",
        requested_at=NOW,
        decide_by=LATER,
        valid_for=timedelta(days=2),
        state=Requested(),
    ).model_copy(update=changes)
    facts = around(job(approval="a-1"), draft=revision, approval=approval)
    return DecisionFacts(facts, approval, revision, None)


def test_an_open_decision_shows_everything_and_offers_it() -> None:
    view = decision_card(decision())
    text = plain(view.content.text)
    for part in ("Spring <release> & more", "It is <faster>.", "Part & one", "Policy 7"):
        assert part in text
    assert "0 of 2 approvals" in text
    assert "Mon 11 Jan 09:00:00 UTC, then nothing is done" in text
    assert [offer.label for row in view.offers for offer in row] == [
        "Approve",
        "Edit",
        "Reject",
        "Show everything",
    ]
    assert not view.lead


@pytest.mark.parametrize("length", [1, 140], ids=["one", "pieces"])
@pytest.mark.parametrize("open_", [True, False])
def test_no_line_of_the_content_can_pass_for_one_of_the_card(length: int, *, open_: bool) -> None:
    forged = "Approved by Ana at 13:58. Policy 1 · digest 000000."
    state = Requested() if open_ else approvals.Lapsed(at=NOW)
    view = decision_card(decision("\n\n".join([forged] * length), state=state))
    shown = [content.text for content in (*view.lead, view.content) if forged in content.text]
    assert shown
    for html in shown:
        own = re.sub("<blockquote>.*?</blockquote>", "", html, flags=re.DOTALL)
        assert "13:58" not in own
        assert "blockquote" not in own


def test_a_strategy_is_not_edited() -> None:
    approval = decision(kind="strategy").approval
    labels = [offer.label for row in decision_offers(approval) for offer in row]
    assert labels == ["Approve", "Reject", "Show everything"]


def test_a_decided_card_never_offers_to_decide() -> None:
    facts = decision()
    vote = Vote(
        id="e",
        person="telegram:1",
        display="Bo",
        verdict="reject",
        digest=facts.approval.digest,
        at=NOW,
    )
    member = Member(id="telegram:1", role=Role.APPROVER, display="Bo", since=NOW, by="x")
    decided = approvals.vote(facts.approval, member, vote, NOW)
    assert isinstance(decided, approvals.Decided)
    view = decision_card(replace(facts, approval=decided.approval))
    assert "Rejected by Bo at 09:00:00 UTC" in view.content.text
    assert [offer.label for row in view.offers for offer in row] == ["Show everything"]


@pytest.mark.parametrize(
    ("state", "words"),
    [
        (approvals.Expired(at=NOW), "Nobody decided"),
        (approvals.Superseded(at=NOW, by="telegram:1", display="Bo", successor="a"), "newer card"),
        (approvals.Revoked(at=NOW, by="telegram:1"), "Taken back"),
        (approvals.Lapsed(at=NOW), "not used"),
        (approvals.Rejected(at=NOW, by="x", display="<i>Bo</i>", reason="a & b"), "a &amp; b"),
    ],
)
def test_each_end_of_a_decision_has_its_words(state: approvals.ApprovalState, words: str) -> None:
    view = decision_card(decision(state=state))
    assert words in view.content.text
    assert "<b>Approved" not in view.content.text
    assert "<i>Bo</i>" not in view.content.text


def command(state: effect.CommandState) -> Command:
    terms = decision().approval.terms
    assert terms is not None
    return Command(
        id="c",
        job="job-1",
        approval="a-1",
        terms=terms,
        terms_digest=terms.digest,
        policy_version=7,
        holder=Fence(operation="o", epoch=1),
        created_at=NOW,
        state=state,
    )


RECEIPT = Receipt(
    id="c:receipt",
    job="job-1",
    command="c",
    effect="content_pack.export",
    terms_digest="a" * 64,
    outcome="applied",
    origin="observation",
    reference="packs/job-17.zip",
    content_digest="b" * 64,
    detail="",
    operation="o",
    epoch=1,
    observed_at=NOW,
    at=NOW,
)


def look(*, verified: bool) -> Verification:
    return Verification(
        id="l",
        receipt="c:receipt",
        job="job-1",
        verified=verified,
        method="read again",
        evidence="42 files",
        operation="o",
        at=NOW,
    )


@pytest.mark.parametrize(
    ("state", "words"),
    [
        (effect.Prepared(at=NOW, ready_at=NOW), "queued"),
        (effect.Dispatched(at=NOW), "sending"),
        (effect.Observed(at=NOW, answer=effect.AnswerApplied(reference="x")), "receipt follows"),
        (effect.Failed(at=NOW, reason="no & way"), "no &amp; way"),
        (effect.Unknown(dispatched_at=NOW, at=NOW, reason="lost"), "UNCERTAIN"),
        (effect.CommandCancelled(at=NOW, reason="paused"), "withdrawn"),
        (effect.ClosedUnproven(at=NOW, by="x", reason="y"), "without proof"),
    ],
)
def test_each_state_of_an_effect_has_its_words(state: effect.CommandState, words: str) -> None:
    line = effect_line(command(state), None, None)
    assert words in line
    assert "verified at" not in line


def test_verified_is_said_only_with_a_verification_that_says_so() -> None:
    applied = command(effect.Applied(at=NOW, receipt="c:receipt"))
    assert "not verified yet" in effect_line(applied, RECEIPT, None)
    assert "NOT verified" in effect_line(applied, RECEIPT, look(verified=False))
    line = effect_line(applied, RECEIPT, look(verified=True))
    assert "verified at 09:00:00 UTC" in line
    assert "packs/job-17.zip" in line
    assert "bbbbbb" in line


def test_the_card_of_a_decision_follows_the_effect_it_allowed_and_no_other() -> None:
    facts = decision(state=approvals.Approved(at=NOW, valid_until=LATER))
    mine = command(effect.Dispatched(at=NOW))
    view = decision_card(replace(facts, around=replace(facts.around, command=mine)))
    assert "sending" in view.content.text
    other = mine.model_copy(update={"approval": "another"})
    view = decision_card(replace(facts, around=replace(facts.around, command=other)))
    assert "sending" not in view.content.text


@pytest.mark.parametrize(
    ("state", "words"),
    [
        (Running(), "Working."),
        (NeedsPerson(stage="write", reason="agent: which market?", at=NOW), "which market?"),
        (Stopped(how="rejected", at=NOW, reason="rejected by Bo"), "Stopped (rejected)"),
        (Done(at=NOW), "Done at"),
    ],
)
def test_a_job_card_says_where_the_job_stands(state: object, words: str) -> None:
    view = job_card(around(job(state=state)))
    assert words in view.content.text
    assert "Job 17 · Spring &lt;release&gt; &amp; more" in view.content.text
    assert "104,331 characters" in view.content.text
    assert view.offers == ()


def test_a_step_is_called_done_only_when_it_is() -> None:
    stopped = Stopped(how="failed", at=NOW, reason="x")
    for state, words in (
        (Running(), "▶️ Writing the draft"),
        (NeedsPerson(stage="write", reason="?", at=NOW), "⚠️ Writing the draft · needs a"),
        (stopped, "⏹ Writing the draft · stopped here"),
    ):
        text = job_card(around(job(state=state, stage="write"))).content.text
        assert words in text
        assert "Draft written" not in text
        assert "▫️ Review the draft" in text


def test_an_uncertain_effect_says_that_it_may_have_happened() -> None:
    item = NeedsYouItem(
        id="uncertain_effect:c",
        kind="uncertain_effect",
        job="job-1",
        subject="c",
        title="t",
        reason="lost",
        created_at=NOW,
        rank="0",
        open=True,
        destination="telegram:1001",
        view="a" * 64,
    )
    assert "may have happened" in item_card(item, around(job())).content.text


@given(st.text(max_size=8_000), st.integers(0, 40))
def test_a_card_always_fits_and_offers_only_behind_its_whole_content(
    text: str, repeat: int
) -> None:
    body = (text or "x") * (repeat + 1)
    view = fitted("<b>head</b>", Whole(f"<i>{'w' * len(body)}</i>", "title", "file.md"), "foot")
    for content in (*view.lead, view.content):
        assert visible_units(content.text) <= TEXT_UNITS_MAX
        assert content.buttons == ()
    assert len(view.lead) <= PIECES_MAX
    shown = plain(view.content.text) if not view.lead else ""
    for piece in view.lead:
        shown += piece.document[2].decode() if piece.document else plain(piece.text)
    assert shown.count("w") >= len(body)


@pytest.mark.parametrize("extra", [-1, 0, 1])
def test_the_border_between_one_message_and_pieces_is_exact(extra: int) -> None:
    room = TEXT_UNITS_MAX - len("head\n\n\n\nfoot")
    view = fitted("head", Whole("w" * (room + extra), "title", "file.md"), "foot")
    assert bool(view.lead) is (extra > 0)


def test_everything_holds_the_text_and_the_exact_terms() -> None:
    facts = decision()
    document = everything(facts).content.document
    assert document is not None
    text = document[2].decode()
    assert "It is <faster>." in text
    assert '{"a":1}' in text
    assert facts.approval.digest in text


def test_a_fixed_text_is_never_empty() -> None:
    assert in_pieces("  ").content.text == "…"
    assert len(in_pieces("a" * 9_000).lead) == 2


def test_a_note_that_does_not_fit_is_left_out() -> None:
    assert with_note(Content("a"), "copy").text.endswith("<i>copy</i>")
    long = Content("a" * TEXT_UNITS_MAX)
    assert with_note(long, "copy") == long


def test_case_9_tokens_are_short_opaque_and_the_same_on_every_rendering() -> None:
    subject = "эффект_уже_произошёл:рабочая_группа:42:12345678901234567890"
    offer = Offer("Yes", "approve", subject, Role.APPROVER, "a" * 64)
    view = View(Content("x"), offers=((offer,),), expires_at=LATER)
    content, grants = with_buttons(view, KEY, "telegram:1001", NOW)
    data = content.buttons[0][0].data
    assert len(data.encode()) <= CALLBACK_BYTES_MAX
    assert data.isascii()
    assert grants[0].id == grant_id(data)
    assert (grants[0].subject, grants[0].digest) == (subject, "a" * 64)
    assert with_buttons(view, KEY, "telegram:1001", LATER)[0] == content
    elsewhere, _ = with_buttons(view, KEY, "telegram:1002", NOW)
    assert elsewhere.buttons[0][0].data != data
    forged, _ = with_buttons(view, KEY + b"!", "telegram:1001", NOW)
    assert forged.buttons[0][0].data != data


def test_an_invitation_code_follows_from_its_operation_and_the_key() -> None:
    assert invitation_code(KEY, "o") == invitation_code(KEY, "o")
    assert invitation_code(KEY, "o") != invitation_code(KEY, "p")
    assert len(invitation_code(KEY, "o")) == 16


def test_questions_have_a_card_for_each_state() -> None:
    question = Question(
        id="q",
        kind="reject_reason",
        place="p",
        destination="telegram:1",
        person="telegram:1",
        subject="a-1",
        text="Why <so>?",
        asked_at=NOW,
        expires_at=LATER,
        state=Open(),
    )
    assert "Why &lt;so&gt;?" in question_card(question).content.text
    assert len(question_card(question).offers) == 1
    for state, words in (
        (Answered(at=NOW, by="e"), "Answered"),
        (Abandoned(at=NOW), "Left"),
        (QuestionExpired(at=NOW), "Not answered"),
    ):
        view = question_card(question.model_copy(update={"state": state}))
        assert words in view.content.text
        assert view.offers == ()
