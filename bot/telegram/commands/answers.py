"""Answers to open questions: the new text of a draft, the reason of a rejection, a new source.

Keeps: an edit makes a new revision and a new request, and supersedes the old one in one commit; a
reason is added to a decision that already stands; what cannot be used leaves the question open.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from bot.telegram.commands import jobs
from bot.telegram.commands.turn import Desk, Turn
from bot.telegram.errors import FileNotText, FileTooLarge
from bot.telegram.html import escape
from bot.telegram.intents import Answer, FileRef
from bot.telegram.questions import closed
from runtime.domain.approval import VoteRefused
from runtime.domain.effect import Finding, Terms
from runtime.domain.proposal import Draft, Section
from runtime.domain.question import Answered, Question, open_at
from runtime.domain.revision import Revision, revise
from runtime.domain.values import Trust
from runtime.engine.approvals import explain, replace
from runtime.engine.work import Work
from runtime.errors import BadInput
from runtime.ports import Write
from runtime.stores.collections import APPROVALS, JOBS, QUESTIONS, REVISIONS

TITLE_CHARS_MAX: Final = 300
SECTION_CHARS_MAX: Final = 8_000
SECTIONS_MAX: Final = 20
EDIT_BYTES_MAX: Final = 600_000
EDIT_LIMIT: Final = "600 KB of text"
TOO_LATE: Final = "That question is closed; nothing was changed."


@dataclass(frozen=True, slots=True)
class Edited:
    """A finished edit: the new revision and its exact terms."""

    revision: Revision
    terms: Terms


@dataclass(frozen=True, slots=True)
class Hint:
    """Why an answer cannot be used; the question stays open."""

    sentence: str


async def prepared(desk: Desk, work: Work, intent: Answer, person: str) -> Edited | Hint | None:
    """What an edit becomes, made before the commit (files and connectors are slow)."""
    if intent.question.kind != "edit_text":
        return None
    try:
        words = intent.text if intent.file is None else await _words(desk, intent.file)
    except BadInput as refusal:
        return Hint(refusal.sentence)
    store, scope = work.store, work.scope
    approval = await store.get(APPROVALS.key(scope, intent.question.subject))
    job = None if approval is None else await store.get(JOBS.key(scope, approval.job))
    if approval is None or job is None or not {"draft", "analysis"} <= set(job.heads):
        return Hint(TOO_LATE)
    before = await store.get(REVISIONS.key(scope, approval.subject.id))
    analysis = await store.get(REVISIONS.key(scope, job.heads["analysis"].id))
    if before is None or analysis is None or not isinstance(before.body, Draft):
        return Hint(TOO_LATE)
    draft = as_draft(words, before.body.title)
    if draft is None:
        return Hint(f"A draft has 1 to {SECTIONS_MAX * SECTION_CHARS_MAX:,} characters of text.")
    if draft.text == before.body.text:
        return Hint("That is the text as it stands; nothing was changed.")
    revision = revise(
        job.id,
        draft,
        job.heads["draft"],
        author=person,
        trust=Trust.OPERATOR,
        based_on=tuple(job.heads[kind] for kind in sorted(job.heads)),
        operation=work.operation.id,
        now=work.now(),
    )
    terms = await desk.terms(work.scope, job, revision, analysis)
    return Hint(terms.evidence) if isinstance(terms, Finding) else Edited(revision, terms)


async def _words(desk: Desk, file: FileRef) -> str:
    if (file.bytes or 0) > EDIT_BYTES_MAX:
        raise FileTooLarge(limit=EDIT_LIMIT)
    data = await desk.messenger.download(file.id)
    try:
        return data[: EDIT_BYTES_MAX + 1].decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise FileNotText(position=error.start) from None


def as_draft(words: str, title: str) -> Draft | None:
    """Plain text as a draft: of several paragraphs, a short first line is the title."""
    body = words.strip()
    first, _, rest = body.partition("\n")
    if rest.strip() and len(first.strip()) <= TITLE_CHARS_MAX:
        title, body = first.strip(), rest.strip()
    pieces = _sections(body)
    if not pieces or len(pieces) > SECTIONS_MAX:
        return None
    return Draft(title=title, sections=tuple(Section(text=piece, quotes=()) for piece in pieces))


def _sections(body: str) -> list[str]:
    """The text in parts that fit a section, cut at paragraphs where that is possible."""
    pieces: list[str] = []
    while body:
        if len(body) <= SECTION_CHARS_MAX:
            pieces.append(body)
            break
        cut = body.rfind("\n\n", 1, SECTION_CHARS_MAX)
        cut = cut if cut > 0 else SECTION_CHARS_MAX
        pieces.append(body[:cut])
        body = body[cut:].strip("\n")
    return pieces


async def answer(turn: Turn, intent: Answer, made: Edited | Hint | None) -> list[Write]:
    """Use an answer, if its question is still open."""
    if isinstance(made, Hint):
        return [turn.say(f"{escape(made.sentence)} The question stays open.")]
    question = await _still(turn, intent.question)
    if question is None:
        return [turn.say(TOO_LATE)]
    event = turn.operation.event or turn.operation.id
    ends = await closed(turn.at, question, Answered(at=turn.now, by=event))
    match question.kind:
        case "new_source" if intent.source is not None:
            if sentence := jobs.too_large(intent.source):
                return [turn.say(f"{sentence} The question stays open.")]
            return [*ends, *await jobs.new(turn, intent.source)]
        case "edit_text" if made is not None:
            return [*ends, *await _edit(turn, question, made)]
        case "reject_reason":
            noted = await explain(turn.at, question.subject, turn.person, intent.text[:2_000])
            text = "Thank you, the reason is noted." if noted else "Nothing was there to explain."
            return [*ends, *noted, turn.say(text)]
        case _:
            return [turn.say(TOO_LATE)]


async def _still(turn: Turn, asked: Question) -> Question | None:
    question = await turn.reads.get(QUESTIONS.key(turn.scope, asked.id))
    return question if open_at(question, turn.now) else None


async def _edit(turn: Turn, question: Question, made: Edited) -> list[Write]:
    display = turn.who.display
    job = await turn.reads.get(JOBS.key(turn.scope, made.revision.job))
    head = None if job is None else job.heads.get("draft")
    if head is None or head.number + 1 != made.revision.number:
        return [turn.say("The draft has changed meanwhile; use the newest card.")]
    editor = (turn.person, display)
    said, writes = await replace(turn.at, question.subject, editor, made.revision, made.terms)
    if isinstance(said, VoteRefused):
        return [turn.say(escape(said.sentence))]
    text = (
        f"Draft {made.revision.number} is stored. Nothing is approved yet: a new card follows, and "
        "the earlier one no longer counts."
    )
    return [*writes, turn.say(text)]
