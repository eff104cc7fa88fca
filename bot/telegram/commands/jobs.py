"""/new, /needs, /jobs, /job, /why: starting work and looking at it."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

from bot.telegram.client import FILE_BYTES_MAX
from bot.telegram.commands.turn import Turn
from bot.telegram.html import escape, one_line
from bot.telegram.intents import NewSource
from bot.telegram.lineage import lineage
from bot.telegram.notices import show
from bot.telegram.questions import Wanted, ask
from bot.telegram.render import ITEM_WORDS, TITLE_CHARS
from connectors.sources.links import link_name
from runtime.domain.card import Subject
from runtime.domain.job import Job, Source
from runtime.domain.values import identity
from runtime.engine.marks import dirty
from runtime.engine.stages import stage_operation
from runtime.ports import Ask, Create, Put, Write
from runtime.stores.collections import COUNTERS, ITEMS, JOBS, OPERATIONS, SHELLS, Counter

LISTED_MAX: Final = 15
SHOWN_MAX: Final = 5
JOBS_COUNTER: Final = "jobs"
NEW_QUESTION: Final = (
    "What shall I work on? Send a file (text, Markdown, HTML, VTT, SRT, PDF, DOCX; up to 20 MB), "
    "a link, or the text itself. In a group, reply to this message."
)
TEXT_NAME: Final = "pasted.txt"


def job_id(operation: str) -> str:
    """The job that an operation starts: derived, so that a repeated attempt starts one."""
    return f"job-{identity('job', operation)[:16]}"


def too_large(source: NewSource) -> str | None:
    """The sentence about a file that a bot cannot fetch."""
    if source.file is None or (source.file.bytes or 0) <= FILE_BYTES_MAX:
        return None
    size = (source.file.bytes or 0) / 1024 / 1024
    return (
        f"This file has {size:.1f} MB, and Telegram lets a bot fetch at most 20 MB. Nothing was "
        "started. Send a link to it, or a smaller part of it."
    )


async def new(turn: Turn, source: NewSource) -> list[Write]:
    """Start a job: its record, its first operation and its card, in this one commit."""
    if sentence := too_large(source):
        return [turn.say(sentence)]
    key = COUNTERS.key(turn.scope, JOBS_COUNTER)
    counter = await turn.reads.get(key)
    number = (counter.value if counter else 0) + 1
    kept = _source(source)
    job = Job(
        id=job_id(turn.operation.id),
        number=number,
        title=_title(source, kept),
        brief=source.brief[:4_000],
        home=turn.destination,
        by=turn.person,
        source=kept,
        correlation=turn.operation.correlation,
        created_at=turn.now,
        updated_at=turn.now,
    )
    reading = stage_operation(job, "read", turn.operation, turn.now)
    job = job.model_copy(update={"operation": reading.id})
    return [
        Put(key, Counter(id=JOBS_COUNTER, value=number)),
        Create(JOBS.key(turn.scope, job.id), job),
        Create(OPERATIONS.key(turn.scope, reading.id), reading),
        dirty(turn.scope, "job", job.id, turn.now, turn.id("new")),
        *await _shown(turn, "job", job.id),
    ]


def _source(source: NewSource) -> Source:
    if source.file is not None:
        file = source.file
        return Source(
            kind="file",
            name=file.name or "file without a name",
            declared_type=file.declared_type,
            file=file.id,
        )
    if source.link:
        return Source(kind="link", name=link_name(source.link), link=source.link)
    return Source(kind="text", name=TEXT_NAME, declared_type="text/plain; charset=utf-8")


def _title(source: NewSource, kept: Source) -> str:
    """A name until the analysis gives one."""
    if source.link:
        parts = urlsplit(source.link)
        return one_line(f"{parts.netloc}{parts.path}", 200) or "link"
    if source.text:
        return one_line(source.text.strip().splitlines()[0], TITLE_CHARS)
    return one_line(kept.name, 200)


async def ask_new(turn: Turn) -> list[Write]:
    """`/new` alone: a question that the next file, link or text answers."""
    wanted = Wanted("new_source", turn.person, NEW_QUESTION)
    who = (turn.destination, turn.person)
    return await ask(turn.at, turn.id("question"), wanted, who, turn.who.message)


async def needs(turn: Turn) -> list[Write]:
    """What waits, most urgent first; the first few as fresh cards here."""
    page = await turn.reads.find(Ask(ITEMS, "open", turn.scope, equals=(True,), limit=LISTED_MAX))
    if not page.rows:
        return [turn.say("Nothing waits for a person.")]
    lines = ["<b>Waits for a person</b>"]
    lines += [
        f"• {ITEM_WORDS[row.record.kind]}: {escape(one_line(row.record.title, TITLE_CHARS))}"
        f" · {escape(one_line(row.record.reason, TITLE_CHARS))}"
        for row in page.rows
    ]
    if page.cursor is not None:
        lines.append("… and more.")
    fresh: list[Write] = []
    for row in page.rows[:SHOWN_MAX]:
        fresh += await _shown(turn, "item", row.record.id)
    return [turn.say("\n".join(lines)), *fresh]


async def _shown(turn: Turn, subject: Subject, id_: str) -> list[Write]:
    return await show(turn.reads, turn.scope, (subject, id_), turn.destination, turn.now)


async def waiting_of(turn: Turn, job: str) -> list[Write]:
    """A job's open items as fresh cards here."""
    page = await turn.reads.find(
        Ask(ITEMS, "of_job", turn.scope, equals=(job, True), limit=SHOWN_MAX)
    )
    fresh: list[Write] = []
    for row in page.rows:
        fresh += await _shown(turn, "item", row.record.id)
    return fresh


async def jobs(turn: Turn, upto: int | None) -> list[Write]:
    """The newest jobs, or those up to a number, each with its state."""
    counter = await turn.reads.get(COUNTERS.key(turn.scope, JOBS_COUNTER))
    last = min(upto or 10**9, counter.value if counter else 0)
    first = max(1, last - LISTED_MAX + 1)
    page = await turn.reads.find(
        Ask(JOBS, "by_number", turn.scope, since=first, before=last + 1, limit=LISTED_MAX)
    )
    if not page.rows:
        return [turn.say("No job yet. /new starts one.")]
    lines = ["<b>Jobs</b>"]
    for row in reversed(page.rows):
        shell = await turn.reads.get(SHELLS.key(turn.scope, row.record.id))
        word = shell.lifecycle.replace("_", " ") if shell else "active"
        steps = f" {shell.completed_steps}/{shell.total_steps}" if shell else ""
        lines.append(
            f"{row.record.number} · {escape(one_line(row.record.title, TITLE_CHARS))} · "
            f"{word}{steps}"
        )
    if first > 1:
        lines.append(f"Older: /jobs {first - 1}")
    return [turn.say("\n".join(lines))]


async def by_number(turn: Turn, number: int) -> Job | None:
    """The job that people call by this number."""
    page = await turn.reads.find(
        Ask(JOBS, "by_number", turn.scope, since=number, before=number + 1, limit=1)
    )
    return page.rows[0].record if page.rows else None


async def show_job(turn: Turn, number: int) -> list[Write]:
    """A job's card as a new message here."""
    job = await by_number(turn, number)
    if job is None:
        return [turn.say(f"There is no job {number} here.")]
    return await _shown(turn, "job", job.id)


async def why(turn: Turn, number: int) -> list[Write]:
    """Where a job's result comes from, from records alone."""
    job = await by_number(turn, number)
    if job is None:
        return [turn.say(f"There is no job {number} here.")]
    return [turn.say("\n".join(await lineage(turn.reads, turn.scope, job)))]
