"""The last word about a job: a new message, since edits of its card notify nobody.

Keeps INV-17: rendered from stored records. A verified pack comes with it as a file; its bytes
follow from the stored command alone, and are attached only if they are what the receipt says.
"""

from __future__ import annotations

from typing import Final

from bot.telegram.facts import JobFacts
from bot.telegram.html import escape, one_line
from bot.telegram.render import job_title
from bot.telegram.states import effect_line
from bot.telegram.view import View
from connectors.content_pack.connector import archive
from runtime.domain.job import Done, Stopped
from runtime.domain.values import sha256
from runtime.ports import Content

PACK_TYPE: Final = "application/zip"
STOPPED_WORDS: Final = {
    "rejected": "was ",
    "failed": "could not be done: ",
    "cancelled": "was ",
    "expired": "ended undecided: ",
}


def outcome_card(facts: JobFacts) -> View:
    """What became of a job that has ended."""
    job = facts.job
    lines = [f"<b>{job_title(job)}</b>"]
    match job.state:
        case Done():
            lines.append("✅ Done and verified.")
        case Stopped(how=how, reason=reason):
            why = escape(one_line(reason, 400).rstrip("."))
            lines.append(f"⏹ This job {STOPPED_WORDS[how]}{why}.")
        case _:
            lines.append("It goes on.")
    if facts.command is not None:
        lines.append(effect_line(facts.command, facts.receipt, facts.verification))
    lines.append(f"<i>/why {job.number} shows where it comes from.</i>")
    return View(Content("\n".join(lines), document=_pack(facts)))


def _pack(facts: JobFacts) -> tuple[str, str, bytes] | None:
    seen = facts.verification
    if facts.command is None or facts.receipt is None or seen is None or not seen.verified:
        return None
    name, data = archive(facts.command)
    if sha256(data) != facts.receipt.content_digest:
        return None
    return name, PACK_TYPE, data
