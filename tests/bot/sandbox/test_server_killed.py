"""A sandbox process that is killed in the middle of traffic keeps what it answered."""

from __future__ import annotations

import asyncio
import signal
import socket
import sys
from pathlib import Path

import httpx
import pytest

from bot.sandbox.client import SandboxClient
from tests.bot.sandbox.world_kit import PAGE_TOKEN, TOKEN

GROUP = -1002150001001
PROGRAM = """
import sys
from pathlib import Path
import uvicorn
from bot.sandbox.cast import open_world
from bot.sandbox.server import create_app
from runtime.system import SystemClock, SystemIds
folder, port, token, page = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4]
world = open_world(SystemClock(), SystemIds(), folder, token=token)
app = create_app(world, page_token=page, directory=folder)
uvicorn.run(app, host="127.0.0.1", port=port, log_level="critical")
"""


async def started(folder: Path, port: int) -> asyncio.subprocess.Process:
    """A sandbox process that answers."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", PROGRAM, str(folder), str(port), TOKEN, PAGE_TOKEN
    )
    transport = httpx.AsyncHTTPTransport(retries=12)
    async with httpx.AsyncClient(transport=transport, timeout=30) as http:
        answer = await http.get(f"http://127.0.0.1:{port}/bot{TOKEN}/getMe")
        assert answer.json()["ok"] is True
    return process


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


async def flood(url: str, answered: list[str]) -> None:
    """Send until the process is gone; note what was answered."""
    async with httpx.AsyncClient(base_url=url, timeout=30, trust_env=False) as http:
        for number in range(100_000):
            text = f"message {number}"
            try:
                answer = await http.post(
                    f"/bot{TOKEN}/sendMessage", json={"chat_id": GROUP, "text": text}
                )
            except httpx.HTTPError:
                return
            assert answer.json()["ok"] is True
            answered.append(text)


@pytest.mark.processes
async def test_what_was_answered_before_sigkill_is_there_after_it(tmp_path: Path) -> None:
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    process = await started(tmp_path, port)
    answered: list[str] = []
    async with SandboxClient(url, PAGE_TOKEN) as people:
        sent = await people.send_text("ana", "bot", "/start")
        flooding = asyncio.ensure_future(flood(url, answered))
        await people.wait_for("bo", GROUP, "message 25", seconds=30)
        process.send_signal(signal.SIGKILL)
        await process.wait()
        await flooding
    assert len(answered) >= 25
    process = await started(tmp_path, port)
    try:
        async with SandboxClient(url, PAGE_TOKEN) as people:
            texts = [row["text"] for row in await people.messages("bo", GROUP)]
            # One more may have been applied without its answer; none that was answered is lost.
            assert set(answered[-400:]) <= set(texts)
            assert len(texts) == len(set(texts))
            calls = (await people.ledger())["calls"]
            assert len([row for row in calls if row["applied"]]) >= len(answered)
            assert (await people.message("ana", "bot", sent["message_id"])) is not None
        async with httpx.AsyncClient(timeout=30, trust_env=False) as http:
            updates = (await http.get(f"{url}/bot{TOKEN}/getUpdates")).json()["result"]
            assert [row["message"]["text"] for row in updates] == ["/start"]
    finally:
        process.kill()
        await process.wait()
