"""INV-20 over a whole job: no log, stored reason or error repeats what was read, said or written.

Every text of the job holds a word of its own; each stage also fails once in every way that carries
a text (a defect, a fault of the model, of the source, of the provider), and the words are looked
for in everything that was logged and in everything that operations and errors say.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from runtime.domain.operation import RETRY_CEILING
from runtime.domain.proposal import Draft, Notes, Quote, Section, Strategy
from runtime.errors import CognitionError, StoreUnavailable
from runtime.ports import Ask
from runtime.stores.collections import OPERATIONS
from tests.runtime.engine.playing import Desk, Play, Scripted, play
from tests.world import ACME

TEXT = "Quokka launches on Friday. Narwhal costs nothing. Axolotl is for everyone."
WORDS = ("quokka", "narwhal", "axolotl", "okapi", "pangolin")


def worded() -> Scripted:
    """A model whose results, and whose every fault, repeat the texts."""
    model = Scripted(TEXT)
    defect = ValueError(f"cannot parse: {TEXT}")
    fault = CognitionError(agent="a", kind="busy", detail="503")
    lie = Quote(id="F1", text="Okapi was never there.", start=0)
    section = Section(text="Pangolin everywhere.", quotes=("F9",))
    strategy = Strategy(
        headline="Okapi", audience="Okapi", angle="Okapi", points=("F9",), rationale="Okapi"
    )
    model.script = {
        "reader": [defect, Notes(quotes=(lie,))],
        "analyst": [fault],
        "strategist": [strategy, defect],
        "writer": [Draft(title="Pangolin", sections=(section,)), defect],
        "reviewer": [defect],
    }
    return model


async def to_done(one: Play) -> None:
    for _ in range(40):
        await one.settle()
        await one.approve()
        one.clock.advance(RETRY_CEILING)
        if (await one.job()).state.name == "done":
            return
    message = f"it ended {(await one.job()).state}"
    raise AssertionError(message)


@pytest.fixture
def told() -> Callable[[str], list[str]]:
    def words_in(text: str) -> list[str]:
        return [word for word in WORDS if word in text.casefold()]

    return words_in


async def test_nothing_that_was_read_or_written_is_logged_or_given_as_a_reason(
    tmp_path: Path, told: Callable[[str], list[str]]
) -> None:
    fault = StoreUnavailable(cause="the other side reset the connection")
    source: list[bytes | Exception] = [fault, TEXT.encode()]
    one = await play(tmp_path, cognition=worded(), desk=Desk(source))
    with capture_logs() as logs:
        await one.begin()
        await to_done(one)
    said = json.dumps(logs, default=repr)
    assert {"attempt_failed", "handler_broke"} <= {str(line["event"]) for line in logs}
    assert told(said) == []
    assert told(TEXT + " okapi pangolin") == list(WORDS), "the words are there to be found"
    page = await one.kit.store.find(Ask(OPERATIONS, "of_job", ACME, equals=("job-1",)))
    for row in page.rows:
        assert told(row.record.model_dump_json()) == [], row.record.id


async def test_a_defect_that_quotes_the_text_reaches_people_without_it(
    tmp_path: Path, told: Callable[[str], list[str]]
) -> None:
    one = await play(tmp_path, cognition=worded())
    one.desk.unreadable = ValueError(f"cannot convert: {TEXT}")
    await one.begin()
    with capture_logs() as logs:
        for _ in range(10):
            await one.settle()
            one.clock.advance(RETRY_CEILING)
    operation = await one.operation("job-1:read")
    assert operation.state.name == "operator_required"
    assert "ValueError" in operation.state.reason
    assert told(operation.state.reason) == []
    assert told(json.dumps(logs, default=repr)) == []
