"""What the tests of packs on a disk share."""

from __future__ import annotations

from pathlib import Path

from connectors.content_pack.connector import ContentPack
from runtime.domain.effect import AnswerApplied, Command
from tests.effects_made import command
from tests.world import ManualClock


def pack_in(folder: Path) -> ContentPack:
    """A connector that writes to `folder/packs`."""
    return ContentPack(folder / "packs", ManualClock())


async def applied(pack: ContentPack, sent: Command | None = None) -> AnswerApplied:
    answer = await pack.execute(sent or command())
    assert isinstance(answer, AnswerApplied), answer
    return answer


def files(root: Path) -> list[str]:
    """Every file below a folder."""
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())
