"""What truly happened, whatever the bot was told.

Keeps: every Bot API call and every delivery of an update has one entry, in order of arrival; the
bot token and webhook secret are never in it; entries survive a restart when the world does.
"""

from __future__ import annotations

from collections import deque
from pathlib import Path
from typing import Any

from bot.sandbox.journal import Journal
from bot.sandbox.params import Params
from runtime.ports import Clock

ENTRIES_MAX = 20_000
_SECRET = frozenset({"secret_token", "certificate"})
_QUIET = frozenset({"getupdates"})


class Ledger:
    """Calls and deliveries."""

    def __init__(self, clock: Clock, directory: Path | None = None) -> None:
        self._clock = clock
        path = None if directory is None else directory / "ledger.jsonl"
        self._journal = Journal(path)
        self.calls: deque[dict[str, Any]] = deque(maxlen=ENTRIES_MAX)
        self.deliveries: dict[int, dict[str, Any]] = {}
        self.seq = 0
        for entry in self._journal.replay():
            self._keep(entry)

    def called(self, method: str, params: Params, caller: str) -> dict[str, Any]:
        """A call came in; its answer is added by `answered`."""
        self.seq += 1
        return {
            "what": "call",
            "seq": self.seq,
            "at": self._clock.now().isoformat(),
            "method": method,
            "caller": caller,
            "params": redacted(params),
        }

    def answered(
        self, entry: dict[str, Any], answer: dict[str, Any], *, applied: bool, fault: str | None
    ) -> None:
        """The call is over: what was answered, whether it was applied, which fault was laid on."""
        entry |= {"answer": answer, "applied": applied, "fault": fault}
        entry["replied"] = fault not in {"drop_reply", "drop_before"}
        if entry["method"].lower() not in _QUIET or not answer.get("ok"):
            self._keep(entry)
            self._journal.append(entry)

    def delivered(self, update_id: int, kind: str, by: str, answer: str = "") -> None:
        """An update was handed over (poll) or posted (webhook, with its answer)."""
        self._note(
            {
                "what": "delivery",
                "update_id": update_id,
                "kind": kind,
                "by": by,
                "at": self._clock.now().isoformat(),
                "answer": answer,
            }
        )

    def confirmed(self, update_id: int) -> None:
        """The bot confirmed an update."""
        self._note({"what": "confirmed", "update_id": update_id})

    def calls_after(self, seq: int) -> list[dict[str, Any]]:
        """The calls with a higher sequence number, oldest first."""
        return [entry for entry in self.calls if entry["seq"] > seq]

    def close(self) -> None:
        """Let go of the file."""
        self._journal.close()

    def _note(self, entry: dict[str, Any]) -> None:
        self._keep(entry)
        self._journal.append(entry)

    def _keep(self, entry: dict[str, Any]) -> None:
        if entry["what"] == "call":
            self.seq = max(self.seq, entry["seq"])
            self.calls.append(entry)
            return
        record = self.deliveries.setdefault(
            entry["update_id"],
            {"update_id": entry["update_id"], "times": 0, "confirmed": False, "by": []},
        )
        if entry["what"] == "confirmed":
            record["confirmed"] = True
        else:
            record["kind"] = entry["kind"]
            record["times"] += 1
            record["by"].append(entry["by"])
        while len(self.deliveries) > ENTRIES_MAX:
            self.deliveries.pop(next(iter(self.deliveries)))


def redacted(params: Params) -> dict[str, Any]:
    """The arguments without secrets and without file contents."""
    shown: dict[str, Any] = {
        name: "***" if name in _SECRET else value for name, value in params.values.items()
    }
    for name, upload in params.uploads.items():
        shown[name] = {"file": upload.name, "bytes": len(upload.content)}
    return shown
