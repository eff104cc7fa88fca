"""What a run did, counted afterwards in the store, the sandbox's ledger, the logs and the packs.

Keeps: every figure is read or computed here from what is on the disk or in the ledger; a promise
is broken by what was found, never kept by assumption.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from bot.telegram.sending import COPY_NOTE
from tests.acceptance.people import Json
from tests.acceptance.truth import DIRECTORY, Truth, open_pack
from tests.acceptance.world import World

SENT: Final = ("sendMessage", "sendDocument", "sendPhoto")
EDITED: Final = ("editMessageText", "editMessageCaption", "editMessageMedia")
ENDED: Final = frozenset({"succeeded", "failed", "cancelled"})


@dataclass(slots=True)
class Found:
    """Figures in the order of the table, and promises with what was found about each."""

    figures: dict[str, object] = field(default_factory=dict)
    promises: list[tuple[str, bool, str]] = field(default_factory=list)

    def figure(self, name: str, value: object) -> None:
        """One row of the table."""
        self.figures[name] = value

    def promise(self, text: str, kept: object, found: object) -> None:
        """One promise, whether it was kept, and by what one sees it."""
        self.promises.append((text, bool(kept), str(found)))

    @property
    def broken(self) -> list[str]:
        """The promises that were not kept."""
        return [f"{text} — found: {found}" for text, kept, found in self.promises if not kept]


@dataclass(frozen=True, slots=True)
class Killed:
    """A process that was killed and what the store said right after."""

    process: str
    operation: str
    state: str
    command: str
    journaled: frozenset[str]
    """The model calls that were finished by then."""
    at: datetime


def measure(found: Found, world: World, ledger: Json, kills: list[Killed]) -> None:
    """Count everything, except what was timed while it happened."""
    truth = world.truth
    _events(found, truth, ledger)
    _operations(found, truth, kills)
    _takeovers(found, world, kills)
    _thinking(found, truth, kills)
    _effects(found, world)
    _messages(found, truth, ledger)


def _events(found: Found, truth: Truth, ledger: Json) -> None:
    events = truth.records("events")
    handed = {int(row["update_id"]): int(row["times"]) for row in ledger["deliveries"]}
    counted = {int(row["source_id"].rpartition(":")[2]): row["deliveries"] for row in events}
    found.figure("updates from people", len(handed))
    found.figure("deliveries of them (ledger)", sum(handed.values()))
    found.figure("events stored", len(events))
    found.figure("deliveries counted on events", sum(counted.values()))
    found.promise("each update is one event", handed.keys() == counted.keys(), len(counted))
    differing = [number for number in handed if handed[number] != counted.get(number)]
    # A poll that was answered while its process died was handed over and never stored.
    lost = sum(handed[number] - counted.get(number, 0) for number in differing)
    found.figure("deliveries lost with a killed process", lost)
    operations = {row["id"] for row in truth.records("operations")}
    born = [row for row in events if row["operation"] in operations]
    found.promise("each event has its operation", len(born) == len(events), len(born))


def _operations(found: Found, truth: Truth, kills: list[Killed]) -> None:
    operations = truth.records("operations")
    states = Counter(row["state"]["name"] for row in operations)
    found.figure("operations", ", ".join(f"{count} {name}" for name, count in states.items()))
    again = [row for row in operations if row["epoch"] > 1]
    found.figure("operations taken over or resumed", len(again))
    open_ = [row["id"] for row in operations if row["state"]["name"] not in ENDED]
    found.promise("nothing is left unfinished", not open_, open_ or "all ended")
    for kill in kills:
        record = truth.record("operations", kill.operation)
        epoch = 0 if record is None else record["epoch"]
        found.promise(
            f"{kill.operation.rpartition(':')[2]} was claimed when its worker was killed",
            kill.state == "claimed",
            kill.state,
        )
        found.promise("… and another worker took it over", epoch > 1, f"epoch {epoch}")


def _takeovers(found: Found, world: World, kills: list[Killed]) -> None:
    for kill in kills:
        after = [
            (datetime.fromisoformat(entry["timestamp"]) - kill.at).total_seconds()
            for entry in world.logged("attempt")
            if entry["operation"] == kill.operation and entry["process"] != kill.process
        ]
        stage = kill.operation.rpartition(":")[2]
        found.figure(f"{stage}: kill → next attempt (s)", round(min(after), 1) if after else "none")


def _thinking(found: Found, truth: Truth, kills: list[Killed]) -> None:
    """A call's projection is stored before the call, its answer after it: both are counted."""
    calls = truth.records("model_calls")
    begun = truth.records("projections")
    found.figure("model calls begun", len(begun))
    found.figure("model calls finished and journaled", len(calls))
    found.figure("model calls begun, then lost with their worker", len(begun) - len(calls))
    found.figure(
        "model calls finished before the first kill", len(kills[0].journaled) if kills else 0
    )
    repeated = repeats(begun, calls)
    found.figure("finished model calls made again", len(repeated))
    found.promise("a crash repeats no finished model call", not repeated, repeated or "none")


def repeats(begun: list[Json], calls: list[Json]) -> list[str]:
    """The steps whose finished call was begun once more: by a later claim than the one it is of.

    A call that was lost before it was finished is rightly begun again, and counts as lost.
    """
    finished = {(row["operation"], row["step"], row["basis"]): row["epoch"] for row in calls}
    return [
        row["step"]
        for row in begun
        if row["epoch"] > finished.get((row["operation"], row["step"], row["basis"]), row["epoch"])
    ]


def senders_of(sends: list[Json]) -> dict[int, set[str]]:
    """Which processes dispatched each attempt; a commit that is run again logs it again."""
    senders: dict[int, set[str]] = {}
    for row in sends:
        senders.setdefault(int(row["attempt"]), set()).add(str(row["process"]))
    return dict(sorted(senders.items()))


def _effects(found: Found, world: World) -> None:
    truth = world.truth
    job = truth.job()
    commands, receipts = truth.records("commands"), truth.records("receipts")
    looks = [row for row in truth.records("verifications") if row["verified"]]
    sends = world.logged("effect_dispatched")
    found.figure("commands", ", ".join(f"{row['state']['name']}" for row in commands))
    found.figure("attempts opened on the command", sum(row["attempt"] for row in commands))
    found.figure("receipts", len(receipts))
    found.figure("verifications that say yes", len(looks))
    packs = truth.packs()
    found.figure("packs on disk", len(packs))
    found.promise("one pack, never two", len(packs) == 1, len(packs))
    found.promise("one command, one receipt", (len(commands), len(receipts)) == (1, 1), commands)
    for attempt, senders in senders_of(sends).items():
        found.promise(f"attempt {attempt} was sent by one worker", len(senders) == 1, senders)
    if len(packs) != 1 or len(receipts) != 1 or len(commands) != 1:
        return
    pack = open_pack(packs[0])
    found.figure("pack's SHA-256, computed now", pack.sha256)
    found.promise("the pack is whole", not pack.problems, pack.problems or pack.names)
    said = receipts[0]["content_digest"]
    found.promise("the receipt says that digest", said == pack.sha256, said[:12])
    found.promise("the verification saw it", [row["digest"] for row in looks] == [said], len(looks))
    approval = truth.record("approvals", job["approval"])
    assert approval is not None
    terms = {approval["digest"], commands[0]["terms_digest"], receipts[0]["terms_digest"]}
    found.promise("what was approved is what was done", len(terms) == 1, min(terms)[:12])
    source = truth.text(job)
    missing = [
        quote["id"]
        for quote in pack.sources["quotes"]
        if source[quote["start"] : quote["end"]] != quote["text"]
    ]
    found.figure("quotes in the pack", len(pack.sources["quotes"]))
    found.promise("each quote is in the source at its position", not missing, missing or "all")


def _messages(found: Found, truth: Truth, ledger: Json) -> None:
    good = [call for call in ledger["calls"] if call.get("answer", {}).get("ok")]
    methods = Counter(call["method"] for call in good)
    sent = [call for call in good if call["method"] in SENT]
    found.figure("messages sent by the bot", len(sent))
    found.figure("messages edited by the bot", sum(methods[name] for name in EDITED))
    cards = truth.records("cards")
    found.figure("cards", len(cards))
    behind = [row["id"] for row in cards if row["shown"] != row["wanted"]]
    found.promise("every card shows what is stored", not behind, behind or len(cards))
    copies = [call for call in sent if COPY_NOTE in str(call["params"])]
    found.figure("copies marked as such, since an answer was lost", len(copies))
    strangers = [row for row in truth.in_scope("operations", DIRECTORY) if row["job"]]
    found.promise("no job's work stands in the directory", not strangers, len(strangers))
