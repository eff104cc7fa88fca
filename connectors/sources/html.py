"""An HTML page as lines of text.

What a browser would not show is not read: scripts, styles, comments, templates, and elements that
are marked hidden (a place where instructions for models are put). What a style sheet hides by a
class cannot be told from here and is read: it is untrusted text like the rest. Block elements
become lines of their own, headings and list items get Markdown's signs, table cells stand on one
line. The walk is a loop, not a recursion, so that deep nesting costs time and memory but no stack.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from bs4 import BeautifulSoup
from bs4.element import NavigableString, PageElement, PreformattedString, Tag

from connectors.errors import SourceExploded
from connectors.sources.limits import HTML_TAGS_MAX
from connectors.sources.text import Extract, Section

_UNSEEN = frozenset(
    [
        "script",
        "style",
        "noscript",
        "template",
        "head",
        "title",
        "meta",
        "link",
        "svg",
        "math",
        "canvas",
        "iframe",
        "object",
        "embed",
        "audio",
        "video",
        "select",
        "datalist",
        "textarea",
        "input",
        "button",
        "nav",
    ]
)
_BLOCKS = frozenset(
    [
        "address",
        "article",
        "aside",
        "blockquote",
        "body",
        "caption",
        "dd",
        "details",
        "dialog",
        "div",
        "dl",
        "dt",
        "fieldset",
        "figcaption",
        "figure",
        "footer",
        "form",
        "header",
        "hr",
        "html",
        "li",
        "main",
        "ol",
        "p",
        "pre",
        "section",
        "summary",
        "table",
        "tbody",
        "tfoot",
        "thead",
        "tr",
        "ul",
        "center",
    ]
)
_HEADINGS = {f"h{level}": "#" * level + " " for level in range(1, 7)}
_PARAGRAPHS = frozenset(
    ["p", "blockquote", "pre", "ul", "ol", "table", "section", "article", "figure", "dl"]
)
_CELLS = frozenset({"td", "th"})
_ROWS = frozenset({"tr", "table", "tbody", "thead", "tfoot"})
_PARAGRAPHS_AND_HEADINGS = _PARAGRAPHS | _HEADINGS.keys()
_HIDING_STYLE = re.compile(
    r"display\s*:\s*none|visibility\s*:\s*hidden|font-size\s*:\s*0(?![.\d]*[1-9])|opacity\s*:\s*0(?![.\d])",
    re.IGNORECASE,
)
_BLANKS = re.compile(r"[ \t\n\r\f\v\u00a0]+")
MAIN_CHARS_MIN = 200
"""A `<main>` shorter than this is a shell that a script would fill."""


def read_html(markup: str, name: str) -> Extract:
    """Sections of one page; raises SourceExploded for a page with too many tags."""
    if markup.count("<") > HTML_TAGS_MAX:  # before parsing: the tree is what costs
        raise SourceExploded(name=name, what="the number of tags", limit=HTML_TAGS_MAX)
    soup = BeautifulSoup(markup, "html.parser")
    title = soup.title.get_text() if soup.title is not None else None
    notes: list[str] = []
    root: Tag = soup
    mains = soup.find_all("main", limit=2)
    if len(mains) == 1 and isinstance(mains[0], Tag):
        whole, main = len(_Lines(soup).text()), _Lines(mains[0]).text()
        if len(main) >= MAIN_CHARS_MIN and len(main) < whole:
            root = mains[0]
            notes.append("Only the main part of the page was read.")
    lines = _Lines(root)
    text = lines.text()
    if lines.hidden:
        notes.append(f"Elements that the page hides from readers were left out: {lines.hidden}.")
    return Extract(sections=(Section(text=text),), title=title, notes=tuple(notes))


class _Lines:
    """Collects the visible text of an element, line by line."""

    def __init__(self, root: Tag) -> None:
        self.hidden = 0
        self._out: list[str] = []
        self._line: list[str] = []
        self._cells = 0
        self._sign = ""
        for token, tag in self._walk(root):
            if tag is None:
                self._line.append(token)
            else:
                self._border(tag, opening=token == "open")  # noqa: S105 - not a password
        self._flush()

    def text(self) -> str:
        """The lines, with at most one blank line between them."""
        return re.sub(r"\n{3,}", "\n\n", "\n".join(self._out)).strip("\n")

    def _walk(self, root: Tag) -> Iterator[tuple[str, Tag | None]]:
        """Document order: ("open", tag), ("close", tag) and (characters, None)."""
        stack: list[tuple[PageElement, bool]] = [(root, False)]
        while stack:
            node, leaving = stack.pop()
            if isinstance(node, Tag):
                if leaving:
                    yield "close", node
                elif self._seen(node):
                    yield "open", node
                    stack.append((node, True))
                    stack.extend((child, False) for child in reversed(node.contents))
            elif isinstance(node, NavigableString) and not isinstance(node, PreformattedString):
                kept = str(node)
                yield (kept if _in_pre(node) else _BLANKS.sub(" ", kept)), None

    def _seen(self, tag: Tag) -> bool:
        if tag.name in _UNSEEN:
            return False
        style = tag.get("style")
        concealed = (
            tag.has_attr("hidden")
            or tag.get("aria-hidden") == "true"
            or (isinstance(style, str) and _HIDING_STYLE.search(style) is not None)
        )
        self.hidden += concealed
        return not concealed

    def _border(self, tag: Tag, *, opening: bool) -> None:
        name = tag.name
        if name in _CELLS:
            self._cells += 1 if opening else -1
            if opening and "".join(self._line).strip():
                self._line.append(" | ")
        elif self._cells and name not in _ROWS:
            if name == "br" or name in _BLOCKS or name in _HEADINGS:
                self._line.append(" ")  # one row of a table stays one line
        elif name == "br":
            if opening:
                self._flush()
        elif name in _HEADINGS or name in _BLOCKS:
            self._flush()
            if name in _PARAGRAPHS_AND_HEADINGS and not _inside_item(tag):
                self._out.append("")
            if name in _HEADINGS or name == "li":
                # A sign waits for its words; without any it goes when the element ends.
                self._sign = _HEADINGS.get(name, "- ") if opening else ""

    def _flush(self) -> None:
        text = "".join(self._line)
        self._line.clear()
        if "\n" in text:  # only preformatted text brings line breaks here
            lines = text.strip("\n").split("\n")
        else:
            lines = [re.sub(r" {2,}", " ", text).strip(" ")]
        if not any(lines):
            return
        self._out.append(self._sign + lines[0])
        self._out.extend(lines[1:])
        self._sign = ""


def _in_pre(node: NavigableString) -> bool:
    parent = node.parent
    for _ in range(4):  # <pre><code><span>: deeper markup inside <pre> is not seen in practice
        if parent is None:
            return False
        if parent.name == "pre":
            return True
        parent = parent.parent
    return False


def _inside_item(tag: Tag) -> bool:
    return tag.parent is not None and tag.parent.name == "li"
