"""`connectors/sources/sandboxed.py`: whatever a reader does, the bot gets a text or a sentence."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from connectors.errors import (
    ConversionFailed,
    EncryptedSource,
    SourceError,
    SourceExploded,
    SourceTooLarge,
)
from connectors.sources.convert import convert
from connectors.sources.limits import MIB, SOURCE_BYTES_MAX
from connectors.sources.sandboxed import Confinement, SandboxedConverter
from tests.sources_made import (
    encrypted_pdf,
    hour_of_speech_vtt,
    small_docx,
    twenty_page_pdf,
    zip_bomb_docx,
)

pytestmark = pytest.mark.processes
PAGE = b"<p>Hello</p>"
READ = "import sys; sys.stdin.buffer.read(); "


def reader(program: str, *arguments: str, seconds: float = 30.0) -> SandboxedConverter:
    """A converter whose process runs another program."""
    return SandboxedConverter(Confinement(command=("-c", program, *arguments), seconds=seconds))


@pytest.mark.parametrize(
    ("raw", "name"),
    [
        (twenty_page_pdf(), "a.pdf"),
        (small_docx(), "a.docx"),
        (hour_of_speech_vtt(), "a.vtt"),
        (PAGE, "a.html"),
        (b"plain", "a.txt"),
        (b"# much\n" * 300_000, "a.md"),
    ],
)
async def test_a_text_is_the_same_from_the_process_and_from_the_function(
    raw: bytes, name: str
) -> None:
    assert await SandboxedConverter().convert(raw, name=name) == convert(raw, name=name)


@pytest.mark.parametrize(
    ("raw", "kind"), [(encrypted_pdf(), EncryptedSource), (zip_bomb_docx(), SourceExploded)]
)
async def test_a_refusal_is_the_same_from_the_process_and_from_the_function(
    raw: bytes, kind: type[SourceError]
) -> None:
    with pytest.raises(kind) as there:
        await SandboxedConverter().convert(raw)
    with pytest.raises(kind) as here:
        convert(raw)
    assert there.value.sentence == here.value.sentence


async def test_too_many_bytes_start_no_process() -> None:
    with pytest.raises(SourceTooLarge):
        await reader("raise SystemExit(9)").convert(b"x" * (SOURCE_BYTES_MAX + 1))


@pytest.mark.parametrize(
    ("program", "cause"),
    [
        ("import os; os.abort()", "the reader stopped with SIGABRT"),
        (READ + "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "SIGSEGV"),
        (READ + "raise SystemExit(3)", "the reader stopped with code 3"),
        ("raise SystemExit(0)", "the reader gave no clear answer"),
        (READ + "print('hello')", "the reader gave no clear answer"),
        (READ + "sys.stdout.write('\\0\\0\\0\\2{}')", "the reader gave no clear answer"),
        (
            READ + "from connectors.sources.worker import frame;"
            "sys.stdout.buffer.write(frame({'source': {'format': 'exe'}}, b'x'))",
            "the reader gave no clear answer",
        ),
        (
            READ + "from connectors.sources.worker import frame;"
            "sys.stdout.buffer.write(frame({'refused': 'SystemExit', 'fields': {}}, b''))",
            "the reader gave no clear answer",
        ),
        (READ + "exec('while True: sys.stdout.write(chr(120) * 65536)')", "SIGKILL"),
    ],
)
async def test_a_reader_that_fails_in_any_way_is_a_sentence(program: str, cause: str) -> None:
    with pytest.raises(ConversionFailed) as refused:
        await reader(program).convert(PAGE, name="page.html")
    assert cause in str(refused.value.fields["cause"])
    assert "“page.html” could not be read" in refused.value.sentence


async def test_a_line_of_millions_of_blanks_is_no_work() -> None:
    """Cutting blanks before a line break must not look at each blank of every other run."""
    raw = b"a" + b" " * (4 * MIB) + b"b"
    found = await SandboxedConverter().convert(raw, name="a.txt")
    assert len(found.text) == len(raw)


async def test_marks_without_end_on_one_letter_never_hold_up_the_bot() -> None:
    """Composing them takes quadratic time, so they are composed where a deadline ends it."""
    raw = ("a" + "\u0301" * 50_000 + "\u0316" * 50_000).encode()
    with pytest.raises(SourceExploded):
        await SandboxedConverter(Confinement(seconds=0.2)).convert(raw, name="a.txt")


async def test_a_reader_that_hangs_is_stopped_at_its_deadline() -> None:
    with pytest.raises(SourceExploded) as refused:
        await reader(READ + "import signal; signal.pause()", seconds=0.2).convert(
            PAGE, name="a.html"
        )
    assert refused.value.fields["what"] == "seconds"


async def test_a_reader_that_does_not_even_read_is_stopped_at_its_deadline() -> None:
    raw = b"<p>" + b"x" * (4 * MIB)
    with pytest.raises(SourceExploded):
        await reader("import signal; signal.pause()", seconds=0.2).convert(raw, name="a.html")


async def test_a_reader_that_spends_its_processor_time_is_a_sentence() -> None:
    program = (
        READ + "import signal, os; signal.signal(signal.SIGXCPU, signal.SIG_DFL);"
        "os.kill(os.getpid(), signal.SIGXCPU)"
    )
    with pytest.raises(SourceExploded) as refused:
        await reader(program).convert(PAGE, name="a.html")
    assert refused.value.fields["what"] == "processor time"


async def test_a_page_that_needs_more_memory_than_allowed_is_a_sentence() -> None:
    tight = SandboxedConverter(Confinement(memory_bytes=160 * MIB))
    page = b"<p>" + b"<b>x</b>" * 140_000
    with pytest.raises(SourceExploded) as refused:
        await tight.convert(page, name="a.html")
    assert refused.value.fields["what"] == "memory"


async def test_a_cancelled_conversion_leaves_no_process(tmp_path: Path) -> None:
    told = tmp_path / "pid"
    os.mkfifo(told)
    program = (
        "import os, signal, sys; open(sys.argv[1], 'w').write(str(os.getpid())); signal.pause()"
    )
    task = asyncio.create_task(reader(program, str(told)).convert(PAGE, name="a.html"))
    pid = int(await asyncio.to_thread(told.read_text))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


async def test_the_process_gets_no_setting_and_no_credential(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TELEGRAM_BOT_TOKEN", "123:abc")
    told = tmp_path / "env"
    program = READ + "import os; open(sys.argv[1], 'w').write(' '.join(sorted(os.environ)))"
    with pytest.raises(ConversionFailed):
        await reader(program, str(told)).convert(PAGE, name="a.html")
    assert told.read_text().split() == ["LC_ALL", "PYTHONHASHSEED", "PYTHONPATH"]


async def test_a_failed_conversion_gives_its_slot_back() -> None:
    one = SandboxedConverter(Confinement(command=("-c", "raise SystemExit(1)")), concurrent_max=1)
    for _ in range(3):
        with pytest.raises(ConversionFailed):
            await one.convert(PAGE, name="a.html")
