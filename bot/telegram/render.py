"""Rendering: stored records → what a card says. Pure.

Keeps INV-17: nothing here comes from anywhere but the records it is given; a card says "approved"
only when the approval is, and "verified" only with a verification that says so.
"""

from __future__ import annotations

from typing import Final, assert_never

from bot.telegram.facts import JobFacts
from bot.telegram.html import escape, one_line
from bot.telegram.states import effect_line, moment
from bot.telegram.view import Offer, View
from runtime.domain.feed import NeedsYouItem
from runtime.domain.job import (
    STAGES,
    STEP_WORDS,
    Done,
    Job,
    NeedsPerson,
    Running,
    Stage,
    Stopped,
)
from runtime.domain.people import PairingCode, Role
from runtime.domain.question import Abandoned, Answered, Open, Question, QuestionExpired
from runtime.domain.values import Trust
from runtime.engine.effects import reconcile_id
from runtime.ports import Content

DOING_WORDS: Final[dict[Stage, str]] = {
    "read": "Reading the source",
    "analyse": "Analysing the source",
    "strategise": "Working out a strategy",
    "decide_strategy": "Waiting for a decision about the strategy",
    "write": "Writing the draft",
    "review": "Reviewing the draft",
    "decide_draft": "Waiting for a decision about the draft",
    "export": "Exporting the content pack",
    "verify": "Verifying the content pack",
    "done": "Done",
}
TO_COME_WORDS: Final[dict[Stage, str]] = {
    "read": "Read the source",
    "analyse": "Analyse the source",
    "strategise": "Propose a strategy",
    "decide_strategy": "Decide about the strategy",
    "write": "Write the draft",
    "review": "Review the draft",
    "decide_draft": "Decide about the draft",
    "export": "Export the content pack",
    "verify": "Verify the content pack",
    "done": "Done",
}
"""`STEP_WORDS` say what became true; these say what is being done, and what is to come."""
TITLE_CHARS: Final = 120
NOTE_CHARS: Final = 120


def job_title(job: Job) -> str:
    """A job's number and title, escaped."""
    return f"Job {job.number} · {escape(one_line(job.title, TITLE_CHARS))}"


# --- jobs ----------------------------------------------------------------------------------------


def job_card(facts: JobFacts) -> View:
    """Where a job stands, step by step."""
    job = facts.job
    lines = [f"<b>{job_title(job)}</b>", _source_line(job), ""]
    done = {step.stage: step for step in job.steps}
    for stage in STAGES[:-1]:
        step = done.get(stage)
        if step is not None:
            note = f" · {escape(one_line(step.note, NOTE_CHARS))}" if step.note else ""
            lines.append(f"✅ {STEP_WORDS[stage]}{note}")
        elif stage == job.stage:
            lines.append(_current(job))
        else:
            lines.append(f"▫️ {TO_COME_WORDS[stage]}")
    lines += ["", *_standing(facts)]
    if model := _model(facts):
        lines.append(f"<i>Made by {escape(model)}</i>")
    waits = any(item.open for item in facts.items)
    offer = Offer("Show what waits", "open", job.id, Role.VIEWER)
    return View(Content("\n".join(lines)), offers=((offer,),) if waits else ())


def _current(job: Job) -> str:
    """The step at which the job stands; it is not said to be done before it is."""
    match job.state:
        case NeedsPerson():
            return f"⚠️ {DOING_WORDS[job.stage]} · needs a person"
        case Stopped():
            return f"⏹ {DOING_WORDS[job.stage]} · stopped here"
        case Running() | Done():
            return f"▶️ {DOING_WORDS[job.stage]}"


def _source_line(job: Job) -> str:
    source = job.source
    size = f" · {source.text_chars:,} characters" if source.text_chars else ""
    return f"Source: {escape(one_line(source.name, TITLE_CHARS))} ({source.kind}){size}"


def _standing(facts: JobFacts) -> list[str]:
    """What is true about the job as a whole."""
    job = facts.job
    lines: list[str] = []
    match job.state:
        case Running():
            waiting = [item for item in facts.items if item.open]
            lines += [f"Waits for a person: {escape(item.title)}" for item in waiting[:3]]
            if not waiting:
                lines.append("Working.")
        case NeedsPerson(reason=reason):
            lines.append(f"Cannot go on without a person: {escape(one_line(reason, 400))}")
        case Stopped(how=how, reason=reason):
            lines.append(f"Stopped ({how}): {escape(one_line(reason, 400))}")
        case Done(at=at):
            lines.append(f"Done at {moment(at)}.")
        case _:
            assert_never(job.state)
    if facts.command is not None:
        lines.append(effect_line(facts.command, facts.receipt, facts.verification))
    return lines


def _model(facts: JobFacts) -> str:
    made = [
        revision
        for revision in (facts.analysis, facts.strategy, facts.draft, facts.review)
        if revision is not None and revision.trust is Trust.MODEL
    ]
    return made[-1].author if made else ""


# --- other items and questions -------------------------------------------------------------------

ITEM_WORDS: Final = {
    "uncertain_effect": "Uncertain effect",
    "policy_block": "Blocked by policy",
    "credential_required": "Missing account",
    "approval": "Approval",
    "strategy_decision": "Strategy",
    "failed_stage": "Stopped",
    "escalation": "The agent asks",
    "missing_asset": "Something is missing",
    "undelivered": "Not delivered",
    "conflict": "Two contents under one ID",
}


def item_card(item: NeedsYouItem, around: JobFacts | None) -> View:
    """An item that is not a decision about content."""
    lines = [f"<b>{ITEM_WORDS[item.kind]}</b>"]
    if around is not None:
        lines.append(job_title(around.job))
    lines.append(escape(item.title))
    if item.reason:
        lines.append(escape(one_line(item.reason, 1_500)))
    if item.kind == "uncertain_effect":
        lines.append("It may have happened. It is looked up, and never repeated by itself.")
    lines.append(f"Since {moment(item.created_at)}." if item.open else "Settled since.")
    if around is not None and around.command is not None:
        lines.append(effect_line(around.command, around.receipt, around.verification))
    return View(Content("\n".join(lines)), offers=_rescue(item, around))


def _rescue(item: NeedsYouItem, around: JobFacts | None) -> tuple[tuple[Offer, ...], ...]:
    """What a person may do about work that cannot go on by itself."""
    if item.open and item.kind == "uncertain_effect" and around and around.command:
        looker = reconcile_id(around.command)
        return ((Offer("Look again", "retry", looker, Role.APPROVER),),)
    if not item.open or item.kind not in {"failed_stage", "escalation", "undelivered"}:
        return ()
    lost = item.kind == "undelivered"
    again = Offer("Send again" if lost else "Try again", "retry", item.subject, Role.APPROVER)
    stop = Offer("Leave it" if lost else "Stop it", "stop", item.subject, Role.APPROVER)
    return ((again, stop),)


def question_card(question: Question) -> View:
    """A question, and what became of it."""
    text = escape(question.text)
    match question.state:
        case Open():
            offer = Offer("Leave it", "abandon", question.id, Role.VIEWER)
            waits = f"I wait for your answer until {moment(question.expires_at)}."
            return View(
                Content(f"{text}\n\n<i>{waits}</i>"),
                offers=((offer,),),
                expires_at=question.expires_at,
            )
        case Answered(at=at):
            return View(Content(f"{text}\n\n<i>Answered at {moment(at)}.</i>"))
        case Abandoned(at=at):
            return View(Content(f"{text}\n\n<i>Left at {moment(at)}; nothing was changed.</i>"))
        case QuestionExpired():
            return View(Content(f"{text}\n\n<i>Not answered in time; nothing was changed.</i>"))
        case _:
            assert_never(question.state)


def invitation_card(invitation: PairingCode, code: str, word: str) -> View:
    """An invitation while it is good; afterwards only what became of it."""
    role = invitation.role.word
    if word != "open":
        return View(Content(f"The code for one {role} is {word}."))
    text = (
        f"A code for one {role}, good once, until {moment(invitation.expires_at)}:\n\n"
        f"<code>/start {escape(code)}</code>\n\nYour colleague sends it to me in a private chat."
    )
    return View(Content(text))
