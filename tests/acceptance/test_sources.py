"""Real sources, from the file to the verified pack, each step as the operator sees it.

In offline mode the approved text holds nothing that the source lacks, each quote stands at its
position, and another source changes every stage.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from typing import Final

import pytest

from tests.acceptance.people import PACK, STRATEGY, Json
from tests.acceptance.truth import Pack, open_pack
from tests.acceptance.world import World
from tests.sources_made import (
    CHANGELOG_BYTES_MIN,
    hour_of_speech_vtt,
    long_changelog,
    prose,
    twenty_page_pdf,
)

pytestmark = [pytest.mark.processes, pytest.mark.asyncio(loop_scope="module")]

SOURCES: Final[dict[str, Callable[[], bytes]]] = {
    "CHANGELOG.md": long_changelog,
    "reading.vtt": hour_of_speech_vtt,
    "python.pdf": twenty_page_pdf,
}
STEPS: Final = (
    "Source read",
    "Analysed",
    "Strategy proposed",
    "Strategy approved",
    "Draft written",
    "Draft reviewed",
    "Draft approved",
    "Content pack exported",
    "Verified",
)


async def carried(world: World, name: str, data: bytes) -> tuple[Json, Pack]:
    """Take a source all the way as Ana does; its job and its pack, opened."""
    ana = world.ana
    sent = await ana.sends(name, data)
    strategy = await ana.approves(STRATEGY, after=sent)
    number = number_of(strategy)
    draft = await ana.approves(PACK, after=int(strategy["message_id"]))
    assert number_of(draft) == number
    done = await ana.verified(number)
    for step in STEPS:
        assert f"✅ {step}" in done["text"], f"the job's card does not say {step!r}"
    job = world.truth.job(number)
    (receipt,) = world.truth.records("receipts", job=job["id"])
    (look,) = world.truth.records("verifications", job=job["id"])
    assert look["verified"]
    assert receipt["origin"] == "observation"
    pack = open_pack(world.data / "packs" / receipt["reference"])
    assert pack.sha256 == receipt["content_digest"] == look["digest"]
    given = await ana.sees(
        lambda row: "Done and verified" in str(row.get("caption")), after=int(draft["message_id"])
    )
    data = await ana.client.download(given["document"]["file_id"])
    assert hashlib.sha256(data).hexdigest() == pack.sha256, "the chat got another file"
    return job, pack


def number_of(card: Json) -> int:
    """The job that a card is about."""
    found = re.search(r"Job (\d+) ·", card["text"])
    assert found is not None, card["text"]
    return int(found[1])


def plain(text: str) -> str:
    """Words and signs; how lines are broken is not content."""
    return " ".join(text.split())


@pytest.mark.parametrize("name", SOURCES)
async def test_a_real_source_becomes_a_verified_pack_with_nothing_that_it_lacks(
    alone: World, name: str
) -> None:
    data = SOURCES[name]()
    job, pack = await carried(alone, name, data)
    assert pack.problems == ()
    assert set(pack.names) == {"draft.md", "draft.json", "sources.json", "manifest.json"}
    source = alone.truth.text(job)
    quotes = pack.sources["quotes"]
    assert len(quotes) > 10
    for quote in quotes:
        assert source[quote["start"] : quote["end"]] == quote["text"]
    whole = plain(source)
    assert plain(pack.title) in whole
    for section in pack.sections:
        assert section["quotes"], "a section rests on no quote"
        assert plain(section["heading"]) in whole
        for sentence in section["text"].split("\n\n"):
            assert plain(sentence) in whole, f"not in the source: {sentence!r}"
    assert pack.sources["source"]["text_chars"] == len(source)
    assert pack.manifest["job"] == job["id"]


async def test_the_sources_are_as_large_as_real_ones(alone: World) -> None:
    del alone
    assert len(long_changelog()) >= CHANGELOG_BYTES_MIN
    cues = re.findall(rb"\n(\d+):(\d\d):\d\d\.\d+ -->", hour_of_speech_vtt())
    assert int(cues[-1][0]) >= 1
    assert len(re.findall(rb"/Type /Page\b", twenty_page_pdf())) >= 20


async def test_the_source_alone_decides_every_stage(alone: World) -> None:
    texts = prose()
    first, second, other = [
        (await carried(alone, f"{name}.txt", "\n\n".join(part).encode()))[0]
        for name, part in (("one", texts[:12]), ("one", texts[:12]), ("two", texts[60:72]))
    ]
    assert first["id"] != second["id"]
    for stage in ("analysis", "strategy", "draft"):
        made = alone.truth.body(first, stage)
        assert made == alone.truth.body(second, stage), f"{stage} differs for the same source"
        assert made != alone.truth.body(other, stage), f"{stage} does not depend on the source"
    said = [
        {section["text"] for section in alone.truth.body(job, "draft")["sections"]}
        for job in (first, other)
    ]
    assert not said[0] & said[1], "two sources share a whole section"
