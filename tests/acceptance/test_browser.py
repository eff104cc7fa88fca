"""The chat page in a real browser, as a newcomer's phone shows it: pair, send, press, verified."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.acceptance.world import opened
from tests.sources_made import prose

CHROMIUM: Final = shutil.which("chromium") or shutil.which("chromium-browser")
WIDTH: Final = 390
HEIGHT: Final = 844
SEEN_MS: Final = 40_000

pytestmark = [
    pytest.mark.processes,
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed on this machine"),
]

FITS: Final = "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
# What sticks out of the window; what scrolls inside its own box does not.
STICKS_OUT: Final = """() => {
  const own = ['auto', 'scroll', 'hidden', 'clip'];
  const boxed = (node) => {
    for (let box = node.parentElement; box; box = box.parentElement) {
      if (box !== document.body && own.includes(getComputedStyle(box).overflowX)) {
        const edge = box.getBoundingClientRect();
        return edge.right <= innerWidth + 1;
      }
    }
    return false;
  };
  return [...document.querySelectorAll('body *')]
    .filter((node) => node.checkVisibility())
    .filter((node) => node.getBoundingClientRect().right > innerWidth + 1 && !boxed(node))
    .map((node) => `${node.tagName}.${node.className}`);
}"""
WIDER: Final = "document.body.insertAdjacentHTML('beforeend', '<p class=wide>wide</p>')"


@contextlib.asynccontextmanager
async def phone(address: str) -> AsyncIterator[Any]:
    """A page of a phone's width, at the chat page; what its console complains about is an error."""
    from playwright.async_api import async_playwright

    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-dev-shm-usage"]
        )
        page = await browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
        complaints: list[str] = []
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on(
            "console",
            lambda said: complaints.append(said.text) if said.type == "error" else None,
        )
        await page.goto(address)
        yield page
        await browser.close()
        assert complaints == []


async def write(page: Any, text: str) -> None:  # noqa: ANN401 - a page of an untyped browser
    """Type into the composer and send with the mouse."""
    await page.get_by_label("Message as Ana").fill(text)
    await page.locator(".panel.chosen").get_by_role("button", name="Send").click()


async def press(page: Any, card: str, label: str) -> None:  # noqa: ANN401 - a page of an untyped browser
    """Press a button under the newest message that begins like this."""
    message = page.locator(".panel.chosen li.message", has_text=card).last
    await message.get_by_role("button", name=label, exact=True).click(timeout=SEEN_MS)


async def test_a_newcomer_takes_a_source_to_verified_on_a_phone(tmp_path: Path) -> None:
    async with opened(tmp_path) as world:
        process = await world.up()
        code = (await process.line("/start ")).split()[-1]
        source = tmp_path / "reading.md"
        source.write_text("# A reading\n\n" + "\n\n".join(prose()[:12]), encoding="utf-8")
        async with phone(world.address) as page:
            await page.get_by_role("tab", name="Ana").click()
            await write(page, f"/start {code}")
            await page.get_by_text("you are admin here").wait_for(timeout=SEEN_MS)
            await page.get_by_label("Attach a file as Ana").set_input_files(source)
            await press(page, "Approve? · Strategy", "Approve")
            await press(page, "Approve? · Content pack", "Approve")
            await page.get_by_text("Effect: verified at").first.wait_for(timeout=SEEN_MS)
            assert await page.evaluate(FITS), "the page is wider than the phone"
            assert await page.evaluate(STICKS_OUT) == []
            # The look itself is looked at: what does stick out must be seen.
            await page.evaluate(WIDER)
            await page.locator("p.wide").evaluate("node => { node.style.width = '500px'; }")
            assert "P.wide" in await page.evaluate(STICKS_OUT)
            await page.locator("p.wide").evaluate("node => node.remove()")
            await page.screenshot(path=tmp_path / "phone.png")
        assert len(world.truth.packs()) == 1
        assert world.truth.job()["state"]["name"] == "done"
