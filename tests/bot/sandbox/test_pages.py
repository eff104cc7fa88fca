"""The chat page in a real browser: pressing, writing, no overflow, contrast, keyboard."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from playwright.async_api import Page, async_playwright
from telegram import InlineKeyboardButton, InlineKeyboardMarkup

from tests.bot.sandbox.world_kit import Sandbox

GROUP = -1002150001001
BROWSER = (
    shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
)
ARGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(BROWSER is None, reason="no Chromium on the path"),
]
RICH = (
    "<b>Approve</b> <i>this</i> <u>or</u> <s>not</s> <code>9f2c41</code> "
    "<tg-spoiler>hidden</tg-spoiler>\n"
    "<blockquote expandable>one\ntwo\nthree\nfour\nfive</blockquote>"
    '<pre><code class="language-json">{"a": 1}</code></pre>'
    '<a href="https://example.org/x">link</a> @ana_lima #tag '
)
LONG = "Donaudampfschifffahrtsgesellschaftskapitän" * 8 + "x" * 300

# The lowest contrast of any visible text against what is painted behind it.
CONTRAST = """
() => {
  const parse = (text) => {
    const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
    canvas.fillStyle = text; canvas.fillRect(0, 0, 1, 1);
    const [r, g, b] = canvas.getImageData(0, 0, 1, 1).data;
    const parts = (text.match(/rgba?\\(([^)]+)\\)/) || [])[1]?.split(",").map(Number)
      || (text.match(/color\\(srgb ([^)]+)\\)/) || [])[1]?.split(/[ /]+/).map(Number);
    const alpha = parts && parts.length === 4 ? parts[3] : text === "transparent" ? 0 : 1;
    if (alpha > 0 && alpha < 1 && parts) {
      const scale = text.startsWith("color(") ? 255 : 1;
      return { rgb: parts.slice(0, 3).map((part) => part * scale), alpha };
    }
    return { rgb: [r, g, b], alpha };
  };
  const behind = (node) => {
    const layers = [];
    for (let at = node; at; at = at.parentElement) {
      const colour = parse(getComputedStyle(at).backgroundColor);
      if (colour.alpha > 0) layers.push(colour);
      if (colour.alpha === 1) break;
    }
    return layers.reverse().reduce(
      (under, { rgb, alpha }) => under.map((part, i) => part * (1 - alpha) + rgb[i] * alpha),
      [255, 255, 255]);
  };
  const light = (rgb) => {
    const [r, g, b] = rgb.map((part) => {
      const s = part / 255;
      return s <= 0.04045 ? s / 12.92 : ((s + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const found = [];
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const node = walk.currentNode.parentElement;
    if (!walk.currentNode.textContent.trim() || !node.checkVisibility()) continue;
    if (node.closest(".spoiler:not(.shown)")) continue;
    const [a, b] = [light(parse(getComputedStyle(node).color).rgb), light(behind(node))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    found.push({ ratio, text: walk.currentNode.textContent.trim().slice(0, 40) });
  }
  found.sort((one, other) => one.ratio - other.ratio);
  return { count: found.length, worst: found.slice(0, 3) };
}
"""
OVERFLOW = """
() => [...document.querySelectorAll("body *")]
  .filter((node) => node.checkVisibility() && node.getBoundingClientRect().width > 0)
  .filter((node) => !node.closest(".hidden-file"))
  .filter((node) => {
    const box = node.getBoundingClientRect();
    return box.right > innerWidth + 0.5 || box.left < -0.5
      || (node.scrollWidth > node.clientWidth + 1 && getComputedStyle(node).display !== "inline"
          && node.tagName !== "TEXTAREA" && node.tagName !== "SELECT");
  })
  .map((node) => `${node.tagName}.${node.className}`)
"""


@contextlib.asynccontextmanager
async def opened(box: Sandbox, *, width: int = 390, scheme: str = "light") -> AsyncIterator[Page]:
    """The page in a browser; an error in its console fails the test."""
    async with async_playwright() as driver:
        browser = await driver.chromium.launch(executable_path=BROWSER, args=ARGS)
        context = await browser.new_context(
            viewport={"width": width, "height": 844},
            color_scheme="dark" if scheme == "dark" else "light",
        )
        page = await context.new_page()
        problems: list[str] = []
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on(
            "console", lambda line: problems.append(line.text) if line.type == "error" else None
        )
        await page.goto(box.url)
        await page.wait_for_selector(".panel.chosen .chat")
        try:
            yield page
        finally:
            await browser.close()
        assert problems == []


async def furnish(box: Sandbox) -> int:
    """Every kind of message in Ana's chat; her ID."""
    ana = await box.started()
    await box.bot.set_my_commands([("start", "pair or status"), ("needs", "what waits for me")])
    keys = InlineKeyboardMarkup(
        [
            [
                InlineKeyboardButton("Approve", callback_data="yes", style="success"),
                InlineKeyboardButton("Reject", callback_data="no", style="danger"),
            ],
            [InlineKeyboardButton(LONG[:60], callback_data="long")],
            [InlineKeyboardButton("Open", url="https://example.org/")],
        ]
    )
    await box.bot.send_message(ana, LONG)
    await box.people.send_file("ana", "bot", f"{LONG[:120]}.md", b"# x", caption="take this")
    await box.bot.send_document(ana, b"zip" * 900, filename="pack.zip", caption="<b>c</b>")
    await box.people.send_text("bo", GROUP, f"{LONG[:200]} hello")
    await box.people.send_text("ana", GROUP, "in the topic", thread_id=2)
    await box.bot.send_message(ana, RICH, parse_mode="HTML", reply_markup=keys)
    return ana


async def test_a_pressed_button_reaches_the_bot_and_its_answer_is_shown(box: Sandbox) -> None:
    await furnish(box)
    async with opened(box) as page:
        await page.click("#panel-ana .key:text-is('Approve')")
        update = (await box.bot.get_updates(timeout=10))[-1]
        assert update.callback_query is not None
        assert update.callback_query.data == "yes"
        assert update.callback_query.from_user.first_name == "Ana"
        await update.callback_query.answer("Approved by Ana")
        await update.callback_query.edit_message_text("Approved · queued")
        await page.wait_for_selector("#panel-ana .toast:text-is('Approved by Ana')")
        await page.wait_for_selector("#panel-ana .text:text-is('Approved · queued')")
        assert await page.locator("#panel-ana .key:text-is('Approve')").count() == 0


async def test_an_alert_is_a_dialog(box: Sandbox) -> None:
    await furnish(box)
    async with opened(box) as page:
        await page.click("#panel-ana .key:text-is('Reject')")
        update = (await box.bot.get_updates(timeout=10))[-1]
        assert update.callback_query is not None
        await update.callback_query.answer("Too late: Bo approved at 13:58", show_alert=True)
        await page.wait_for_selector("dialog[open] p:text-is('Too late: Bo approved at 13:58')")
        await page.keyboard.press("Enter")
        await page.wait_for_selector("dialog[open]", state="detached")


async def test_a_text_and_a_file_can_be_sent_with_the_keyboard(
    box: Sandbox, tmp_path: Path
) -> None:
    async with opened(box) as page:
        await page.focus("#tab-ana")
        await page.keyboard.press("ArrowRight")
        assert await page.locator("#panel-bo").is_visible()
        await page.focus("#text-bo")
        await page.keyboard.type("/start now")
        await page.keyboard.press("Enter")
        first = (await box.bot.get_updates(timeout=10))[0]
        assert first.message is not None
        assert first.message.text == "/start now"
        assert first.message.from_user is not None
        assert first.message.from_user.first_name == "Bo"
        await page.wait_for_selector("#panel-bo .own .text")
        source = tmp_path / "brief.md"
        source.write_bytes(b"# Brief")
        await page.set_input_files("#file-bo", source)
        second = (await box.bot.get_updates(offset=first.update_id + 1, timeout=10))[0]
        assert second.message is not None
        assert second.message.document is not None
        assert second.message.document.file_name == "brief.md"
        async with page.expect_download() as downloading:
            await page.click("#panel-bo .file")
        await (await downloading.value).save_as(tmp_path / "back.md")
        assert (tmp_path / "back.md").read_text() == "# Brief"


async def test_a_forced_reply_is_offered_and_answers_its_question(box: Sandbox) -> None:
    ana = await box.started()
    async with opened(box) as page:
        question = await box.call(
            "sendMessage",
            chat_id=ana,
            text="Why?",
            reply_markup={"force_reply": True, "input_field_placeholder": "Your reason"},
        )
        result = question["result"]
        assert isinstance(result, dict)
        await page.wait_for_selector("#text-ana[placeholder='Your reason']")
        await page.fill("#text-ana", "Because")
        await page.click("#panel-ana .send")
        message = (await box.bot.get_updates(timeout=10))[0].message
        assert message is not None
        assert message.reply_to_message is not None
        assert message.reply_to_message.message_id == result["message_id"]


async def test_markup_in_a_text_stays_text(box: Sandbox) -> None:
    ana = await box.started()
    nasty = "<img src=x onerror=alert(1)> <script>document.title='owned'</script>"
    await box.bot.send_message(ana, nasty)
    async with opened(box) as page:
        await page.wait_for_selector("#panel-ana .text >> text=onerror")
        assert await page.locator("#panel-ana .text img").count() == 0
        assert await page.title() == "Harmonia sandbox"


@pytest.mark.parametrize("width", [320, 390, 768, 1400])
async def test_nothing_overflows(box: Sandbox, width: int) -> None:
    await furnish(box)
    async with opened(box, width=width) as page:
        await page.wait_for_selector("#panel-ana .key")
        assert await page.evaluate(OVERFLOW) == []
        await page.click("#panel-ana .chat:has-text('Acme ops')")
        await page.wait_for_selector("#panel-ana .text >> text=in the topic")
        assert await page.evaluate(OVERFLOW) == []
        assert await page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1400])
async def test_every_text_has_the_contrast_of_wcag_aa(
    box: Sandbox, width: int, scheme: str
) -> None:
    await furnish(box)
    async with opened(box, width=width, scheme=scheme) as page:
        await page.wait_for_selector("#panel-ana .key")
        await page.click("#panel-ana .tool:text-is('/')")
        measured = await page.evaluate(CONTRAST)
        assert measured["count"] > 30
        assert measured["worst"][0]["ratio"] >= 4.5, measured["worst"]
        await page.click("#panel-ana .chat:has-text('Acme ops')")
        await page.wait_for_selector("#panel-ana .text >> text=in the topic")
        measured = await page.evaluate(CONTRAST)
        assert measured["worst"][0]["ratio"] >= 4.5, measured["worst"]


async def test_it_says_that_it_is_not_telegram(box: Sandbox) -> None:
    async with opened(box) as page:
        assert "A sandbox, not Telegram" in await page.inner_text(".notice")


IN_SIGHT = """
(text) => [...document.querySelectorAll(".panel.chosen .messages .text")]
  .filter((node) => node.textContent.includes(text))
  .map((node) => node.getBoundingClientRect())
  .some((box) => box.top < innerHeight && box.bottom > 0)
"""


async def test_the_newest_message_is_in_sight_on_a_phone(box: Sandbox, tmp_path: Path) -> None:
    """At first, after another person was looked at meanwhile, and after a file was sent."""
    ana = await box.started()
    for number in range(40):
        await box.bot.send_message(ana, f"line {number}\n" * 6)
    await box.bot.send_message(ana, "decide now")
    async with opened(box) as page:
        await page.wait_for_function(IN_SIGHT, arg="decide now")
        await page.click("#tab-bo")
        await box.bot.send_message(ana, "decide again")
        await page.wait_for_selector("#panel-ana .text:text-is('decide again')", state="attached")
        await page.click("#tab-ana")
        await page.wait_for_function(IN_SIGHT, arg="decide again")
        await page.evaluate("document.querySelector('#panel-ana .messages').scrollTop = 0")
        file = tmp_path / "brief.md"
        file.write_text("# brief")
        await page.set_input_files("#panel-ana input[type=file]", file)
        await page.wait_for_function(
            "() => { const l = document.querySelector('#panel-ana .messages');"
            " return l.scrollHeight - l.scrollTop - l.clientHeight < 200; }"
        )
