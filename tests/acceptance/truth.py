"""What is stored, read past the bot: the SQLite file by its rows, the packs as files on the disk.

The store's own code takes no part in this, so that what the bot says of itself can be compared with
something. Nothing here writes.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

from runtime.errors import HarmoniaError
from runtime.system import SystemClock

Json = dict[str, Any]
T = TypeVar("T")
LOOK_SECONDS: Final = 0.005
WAIT_SECONDS: Final = 30.0
DIRECTORY: Final = "directory"


class NotSeen(HarmoniaError):
    """A condition of the store did not come true in time."""


class Truth:
    """The stored records of one data directory."""

    def __init__(self, data: Path) -> None:
        self.data = data
        self._file: sqlite3.Connection | None = None

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _rows(self, collection: str, where: str = "", *values: str) -> list[tuple[str, bytes]]:
        if self._file is None:
            path = self.data / "truth.sqlite"
            if not path.exists():
                return []
            self._file = sqlite3.connect(f"file:{path}?mode=ro", uri=True, isolation_level=None)
        assert collection.isidentifier()
        question = f'SELECT scope, body FROM "r_{collection}" {where} ORDER BY rowid'  # noqa: S608 - the name is an identifier of ours
        try:
            return self._file.execute(question, values).fetchall()
        except sqlite3.OperationalError as error:
            if "no such table" in str(error):
                return []
            raise

    def records(self, collection: str, **fields: object) -> list[Json]:
        """The records of a collection in the order of their first write, by equal fields."""
        found = [json.loads(body) for _, body in self._rows(collection)]
        return [row for row in found if all(row[name] == fields[name] for name in fields)]

    def record(self, collection: str, id_: str) -> Json | None:
        rows = self._rows(collection, "WHERE id = ?", id_)
        return json.loads(rows[0][1]) if rows else None

    def in_scope(self, collection: str, scope: str) -> list[Json]:
        """The records of one scope."""
        return [json.loads(body) for name, body in self._rows(collection) if name == scope]

    def job(self, number: int = 1) -> Json:
        """The job that people call by this number."""
        (found,) = self.records("jobs", number=number)
        return found

    def state(self, collection: str, id_: str) -> str:
        """The name of a record's state; "" if there is no record."""
        record = self.record(collection, id_)
        return "" if record is None else str(record["state"]["name"])

    def event(self, update_id: int) -> Json:
        """The one event of an update."""
        ending = f":{update_id}"
        (found,) = [row for row in self.records("events") if row["source_id"].endswith(ending)]
        return found

    def body(self, job: Json, kind: str) -> Json:
        """The newest revision's body of a kind."""
        revision = self.record("revisions", job["heads"][kind]["id"])
        assert revision is not None
        body: Json = revision["body"]
        return body

    def text(self, job: Json) -> str:
        """The source as text, from the blob itself, its digest recomputed."""
        artifact = self.record("artifacts", job["source"]["text"])
        assert artifact is not None
        for path in (self.data / "blobs").rglob("*"):
            if path.is_file() and path.stat().st_size == artifact["bytes"]:
                data = path.read_bytes()
                if hashlib.sha256(data).hexdigest() == artifact["sha256"]:
                    return data.decode()
        raise NotSeen(awaited="the blob of the source's text", artifact=artifact["id"])

    def packs(self) -> list[Path]:
        """Every pack on the disk; the connector's workshop is not one."""
        found = (self.data / "packs").rglob("*.zip")
        return sorted(path for path in found if ".work" not in path.parts)

    async def until(self, look: Callable[[], T], awaited: str, seconds: float = WAIT_SECONDS) -> T:
        """The first true value of a look at the store, which tells nobody when it changes."""
        clock = SystemClock()
        ends = clock.monotonic() + seconds
        while not (found := look()):
            if clock.monotonic() > ends:
                raise NotSeen(awaited=awaited, seconds=seconds)
            await clock.sleep(LOOK_SECONDS)
        return found


@dataclass(frozen=True, slots=True)
class Pack:
    """A content pack, opened and recomputed."""

    path: Path
    sha256: str
    names: tuple[str, ...]
    draft: str
    sections: list[Json]
    title: str
    sources: Json
    manifest: Json
    problems: tuple[str, ...]
    """What does not add up inside; empty for a whole pack."""


def open_pack(path: Path) -> Pack:
    """Read a pack with the standard library alone and compute each digest in it again."""
    data = path.read_bytes()
    with zipfile.ZipFile(path) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    manifest = json.loads(files["manifest.json"])
    draft = json.loads(files["draft.json"])
    sources = json.loads(files["sources.json"])
    problems = [
        f"{entry['name']} is not what the manifest says"
        for entry in manifest["entries"]
        if hashlib.sha256(files.get(entry["name"], b"")).hexdigest() != entry["sha256"]
        or len(files.get(entry["name"], b"")) != entry["bytes"]
    ]
    listed = {entry["name"] for entry in manifest["entries"]} | {"manifest.json"}
    problems += [f"{name} is not listed" for name in files if name not in listed]
    problems += [
        f"quote {quote['id']} has another digest"
        for quote in sources["quotes"]
        if hashlib.sha256(quote["text"].encode()).hexdigest() != quote["sha256"]
    ]
    text = files["draft.md"].decode()
    problems += [
        f"section {number} is not in draft.md"
        for number, section in enumerate(draft["sections"])
        if section["text"] not in text
    ]
    return Pack(
        path=path,
        sha256=hashlib.sha256(data).hexdigest(),
        names=tuple(files),
        draft=text,
        sections=draft["sections"],
        title=draft["title"],
        sources=sources,
        manifest=manifest,
        problems=tuple(problems),
    )
