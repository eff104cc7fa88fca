"""A front end to test against: the sandbox over HTTP, a real store, and a hand at the crank.

Nothing runs by itself: `settle` polls, works, projects and delivers until nothing is left to do.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from bot.sandbox.client import labels
from bot.telegram.client import PtbMessenger
from bot.telegram.commands.handlers import telegram_handlers
from bot.telegram.commands.turn import Desk
from bot.telegram.delivery import Deliverer
from bot.telegram.intake import take
from bot.telegram.poll import Poller
from runtime.blobs.files import FileBlobs
from runtime.domain.approval import Approval
from runtime.domain.canonical import canonical_text
from runtime.domain.card import Card
from runtime.domain.effect import Finding, Terms
from runtime.domain.job import Job, Source
from runtime.domain.people import Binding, Member, PairingCode, Role, code_digest
from runtime.domain.policy import Policy
from runtime.domain.proposal import Analysis, Draft, Quote, Section, Strategy
from runtime.domain.revision import Body, Revision, revise
from runtime.domain.values import DIRECTORY, Scope, Trust
from runtime.engine.approvals import request
from runtime.engine.kit import Kit
from runtime.engine.marks import dirty
from runtime.engine.pipeline import TermsMaker
from runtime.engine.projector import Projector
from runtime.engine.spill import Spill
from runtime.engine.stages import stage_operation
from runtime.engine.worker import Worker
from runtime.ports import Ask, Commit, Create, Put, Reads, Write
from runtime.stores.collections import (
    APPROVALS,
    BINDINGS,
    CARDS,
    COUNTERS,
    JOBS,
    MEMBERS,
    OPERATIONS,
    PAIRING_CODES,
    REVISIONS,
    Counter,
)
from tests.bot.sandbox.world_kit import Sandbox, sandbox
from tests.world import ACME, ManualClock, make_kit

KEY = b"a key for tests, long enough"
ANA, BO, SAM = 5120045101, 6034417202, 7281190303
ROUNDS_MAX = 20


async def made_terms(scope: Scope, job: Job, draft: Revision, analysis: Revision) -> Terms:
    """Terms that carry the draft's text, as a connector's `prepare` would make them."""
    assert isinstance(draft.body, Draft)
    payload = canonical_text({"text": draft.body.text, "analysis": analysis.digest})
    return Terms(effect="content_pack.export", account="packs", revision=draft.ref, payload=payload)


async def refused_terms(scope: Scope, job: Job, draft: Revision, analysis: Revision) -> Finding:
    return Finding(ok=False, method="policy", evidence="the text is forbidden here")


@dataclass
class Front:
    """One process of the bot, and the sandbox it talks to."""

    box: Sandbox
    kit: Kit
    clock: ManualClock
    spill: Spill
    desk: Desk
    poller: Poller
    worker: Worker
    deliverer: Deliverer
    projector: Projector
    folder: Path

    # --- turning the crank ---

    async def poll(self) -> None:
        updates, _ = await self.poller.fetch(0)
        await self.poller.store(updates)

    async def work(self) -> bool:
        did = await self.worker.idle()
        await self.worker.drain()
        return did

    async def settle(self) -> None:
        """Until nothing moves any more."""
        for _ in range(ROUNDS_MAX):
            await self.poll()
            moved = await self.work()
            moved = await self.projector.once() or moved
            moved = await self.deliverer.once() or moved
            if not moved:
                return
        pytest.fail("the front end does not settle")

    def later(self, **by: float) -> None:
        self.clock.advance(timedelta(**by))

    # --- people ---

    async def pair(self, person: str = "ana", role: Role = Role.ADMIN) -> None:
        """A code is made and the person sends it."""
        code = f"code-for-{person}"
        now = self.clock.now()
        invitation = PairingCode(
            id=code_digest(code),
            tenant=ACME,
            role=role,
            by="harmonia",
            expires_at=now + timedelta(hours=1),
        )
        await self.put(Create(PAIRING_CODES.key(DIRECTORY, invitation.id), invitation))
        await self.say(person, f"/start {code}")

    async def say(self, person: str, text: str, **options: object) -> dict[str, Any]:
        sent = await self.box.people.send_text(person, "bot", text, **options)
        await self.settle()
        return sent

    async def press(self, person: str, message: dict[str, Any], label: str, **how: object) -> str:
        """Press a button and settle; the toast."""
        pressed = await self.box.people.press(person, "bot", message["message_id"], label, **how)
        await self.settle()
        answer = await self.box.people.answer_to(pressed)
        return str(answer["text"])

    async def seen(self, person: str, chat: str | int = "bot") -> list[dict[str, Any]]:
        """What the bot wrote, as a person sees it, oldest first."""
        page = await self.box.people.messages(person, chat)
        return [message for message in page if message.get("from", {}).get("is_bot")]

    async def last(self, person: str, chat: str | int = "bot") -> str:
        page = await self.seen(person, chat)
        return str(page[-1].get("text") or page[-1].get("caption") or "") if page else ""

    async def with_button(self, person: str, label: str) -> dict[str, Any]:
        """The newest message that has this button."""
        fits = [message for message in await self.seen(person) if label in labels(message)]
        assert fits, f"nothing with {label}: {[m.get('text') for m in await self.seen(person)]}"
        return fits[-1]

    # --- the store ---

    async def put(self, *writes: Write) -> None:
        async def body(reads: Reads) -> Commit[None]:
            del reads
            return Commit(None, writes)

        await self.kit.commit(body)

    async def member(self, number: int, role: Role) -> None:
        """A member and the private chat, without pairing."""
        id_, now = f"telegram:{number}", self.clock.now()
        await self.put(
            Put(
                MEMBERS.key(ACME, id_),
                Member(id=id_, role=role, display=str(number), since=now, by="harmonia"),
            ),
            Put(BINDINGS.key(DIRECTORY, id_), Binding(id=id_, tenant=ACME, by=id_, since=now)),
        )

    async def cards(self) -> list[Card]:
        """Every pending card."""
        page = await self.kit.store.find(Ask(CARDS, "due", None, equals=(True,), limit=100))
        return [row.record for row in page.rows]

    # --- work to decide about ---

    async def job(self, *, home: int = ANA, number: int = 1) -> Job:
        """A job that stands before the decision about its draft, without a draft yet."""
        now = self.clock.now()
        job = Job(
            id=f"job-{number}",
            number=number,
            title="Spring release",
            home=f"telegram:{home}",
            by=f"telegram:{home}",
            source=Source(kind="text", name="notes.md"),
            stage="decide_draft",
            correlation=f"job-{number}",
            created_at=now,
            updated_at=now,
        )
        quote = Quote(id="F1", text="It is faster.", start=0)
        analysis = self.revision(
            job, Analysis(title="Spring", topics=(), summary=("F1",), quotes=(quote,))
        )
        strategy = self.revision(
            job,
            Strategy(
                headline="Faster",
                audience="users",
                angle="speed",
                points=("F1",),
                rationale="it is measured",
            ),
        )
        heads = {"analysis": analysis.ref, "strategy": strategy.ref}
        job = job.model_copy(update={"heads": heads})
        await self.put(
            Put(COUNTERS.key(ACME, "jobs"), Counter(id="jobs", value=number)),
            Create(REVISIONS.key(ACME, analysis.id), analysis),
            Create(REVISIONS.key(ACME, strategy.id), strategy),
            Create(JOBS.key(ACME, job.id), job),
        )
        return job

    def revision(self, job: Job, body: Body) -> Revision:
        return revise(
            job.id,
            body,
            job.heads.get(body.result),
            author="offline-1",
            trust=Trust.MODEL,
            based_on=tuple(job.heads[kind] for kind in sorted(job.heads)),
            operation="made-in-a-test",
            now=self.clock.now(),
        )

    async def ask_about(
        self, job: Job, text: str = "It is faster.", *, needed: int = 1
    ) -> Approval:
        """Put a draft of `text` in front of people."""
        now = self.clock.now()
        stored = await self.kit.store.get(JOBS.key(ACME, job.id))
        assert stored is not None
        draft = self.revision(stored, as_draft(text))
        analysis = await self.kit.store.get(REVISIONS.key(ACME, f"{job.id}:analysis:1"))
        assert analysis is not None
        terms = await made_terms(ACME, stored, draft, analysis)
        policy = Policy(since=now, approvals_needed=needed)
        export = f"{job.id}:export"
        approval = request(stored, draft, policy, terms=terms, operation=export, now=now)
        waiting = stage_operation(stored, "export", None, now, waits=approval)
        moved = stored.model_copy(
            update={
                "heads": {**stored.heads, "draft": draft.ref},
                "approval": approval.id,
                "operation": export,
            }
        )
        await self.put(
            Create(REVISIONS.key(ACME, draft.id), draft),
            Create(APPROVALS.key(ACME, approval.id), approval),
            Put(OPERATIONS.key(ACME, export), waiting),
            Put(JOBS.key(ACME, job.id), moved),
            dirty(ACME, "job", job.id, now, self.kit.ids.new("test")),
        )
        return approval

    async def approval(self, id_: str) -> Approval:
        found = await self.kit.store.get(APPROVALS.key(ACME, id_))
        assert found is not None
        return found

    async def decided_setting(self, text: str = "It is faster.") -> tuple[Approval, dict[str, Any]]:
        """Ana is admin, a draft waits in her chat; the approval and its card."""
        await self.pair("ana")
        approval = await self.ask_about(await self.job(), text)
        await self.settle()
        return approval, await self.with_button("ana", "Approve")


def as_draft(text: str) -> Draft:
    """A draft of one text, in sections that fit."""
    pieces = [text[start : start + 8_000] for start in range(0, len(text), 8_000)]
    sections = tuple(Section(text=piece, quotes=("F1",)) for piece in pieces)
    return Draft(title="News", sections=sections)


@contextlib.asynccontextmanager
async def process(
    box: Sandbox,
    folder: Path,
    clock: ManualClock,
    seed: int = 0,
    terms: TermsMaker = made_terms,
) -> AsyncIterator[Front]:
    """One process over a folder; several may share it."""
    kit = await make_kit(folder, clock=clock, seed=seed)
    messenger = PtbMessenger(box.bot)
    spill = Spill(kit, FileBlobs(folder / "blobs"))
    deliverer = Deliverer(kit, messenger, KEY, box.bot.id, spill)
    desk = Desk(
        bot_id=box.bot.id,
        bot_username=box.bot.username,
        messenger=messenger,
        spill=spill,
        model="offline-1",
        key=KEY,
        terms=terms,
    )
    worker = Worker(kit, telegram_handlers(desk))
    poller = Poller(kit, box.bot)
    await poller.open()
    front = Front(box, kit, clock, spill, desk, poller, worker, deliverer, Projector(kit), folder)
    try:
        yield front
    finally:
        await worker.drain()
        await poller.close()
        await kit.store.close()


@contextlib.asynccontextmanager
async def alone(folder: Path, terms: TermsMaker = made_terms) -> AsyncIterator[Front]:
    """A sandbox with one process."""
    async with sandbox() as box, process(box, folder, ManualClock(), terms=terms) as front:
        yield front


__all__ = ["ANA", "BO", "KEY", "SAM", "Front", "alone", "process", "take"]
