"""Telegram's two Markdown styles, read the way its server reads them.

Keeps: the same counting as the HTML reader (UTF-16 units out, UTF-8 byte offsets in refusals).
MarkdownV2 covers every mark except custom emoji and dates, which are refused in plain words.
"""

from __future__ import annotations

from dataclasses import dataclass

from bot.sandbox.markup_html import refuse
from bot.sandbox.markup_text import Raw, checked_link, mentioned_user, units

_RESERVED = "_*[]()~`>#+-=|{}.!\n"
_NAMES = {
    "bold": "Bold",
    "italic": "Italic",
    "underline": "Underline",
    "strikethrough": "Strikethrough",
    "spoiler": "Spoiler",
    "code": "Code",
    "pre": "Pre",
    "text_link": "TextUrl",
    "blockquote": "BlockQuote",
}
_SINGLE = {"_": "italic", "*": "bold", "~": "strikethrough", "`": "code", "[": "text_link"}
_LAST_ESCAPABLE = 126


def _link(url: str, offset: int, length: int) -> list[Raw]:
    user = mentioned_user(url)
    if user is not None:
        return [Raw(offset, length, {"type": "text_mention", "user_id": user})]
    link = checked_link(url)
    return [Raw(offset, length, {"type": "text_link", "url": link})] if link else []


def _bytes_before(text: str, place: int) -> int:
    return len(text[:place].encode())


def read_markdown(text: str) -> tuple[str, list[Raw]]:
    """The old style: no nesting, four marks."""
    out: list[str] = []
    entities: list[Raw] = []
    at, size, padded = 0, len(text), text + "\0\0\0"
    while at < size:
        character = padded[at]
        if character == "\\" and padded[at + 1] in "_*`[":
            out.append(padded[at + 1])
            at += 2
        elif character not in "_*`[":
            out.append(character)
            at += 1
        else:
            at = _old_entity(text, at, out, entities)
    return "".join(out), entities


def _old_entity(text: str, begin: int, out: list[str], entities: list[Raw]) -> int:
    padded = text + "\0\0\0"
    mark = padded[begin]
    fence = padded[begin : begin + 3] == "```"
    closing = "```" if fence else {"[": "]"}.get(mark, mark)
    at, language = begin + len("```" if fence else mark), ""
    if fence:
        at, language = _fence_head(padded, at, len(text))
    end = text.find(closing, at)
    if end < 0:
        place = _bytes_before(text, begin)
        raise refuse(detail=f"Can't find end of the entity starting at byte offset {place}")
    inner = text[at:end]
    offset, length = units("".join(out)), units(inner)
    out.append(inner)
    after = end + len(closing)
    if mark == "[":
        url = inner
        if padded[after] == "(":
            stop = text.find(")", after)
            stop = len(text) if stop < 0 else stop
            url, after = text[after + 1 : stop], stop + 1
        entities += _link(url, offset, length) if length else []
    elif length:
        kind = {"_": "italic", "*": "bold", "`": "pre" if fence else "code"}[mark]
        data = {"type": kind, **({"language": language} if language else {})}
        entities.append(Raw(offset, length, data))
    return after


def _fence_head(padded: str, at: int, size: int) -> tuple[int, str]:
    """Skip the language and one line break after an opening fence."""
    end = at
    while end < size and not padded[end].isspace() and padded[end] != "`":
        end += 1
    language = ""
    if end != at and end < size and padded[end] != "`":
        language, at = padded[at:end], end
    if padded[at] in "\n\r":
        both = padded[at + 1] in "\n\r" and padded[at] != padded[at + 1]
        at += 2 if both else 1
    return at, language


@dataclass
class _Nested:
    kind: str
    language: str
    start: int
    place: int
    out_place: int


class MarkdownV2Reader:
    """Reads one text of the nested style."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._padded = text + "\0\0\0\0"
        self._at = 0
        self._out: list[str] = []
        self._units = 0
        self._open: list[_Nested] = []
        self._entities: list[Raw] = []
        self._quoting = False
        self._line_start = True

    def read(self) -> tuple[str, list[Raw]]:
        """Plain text and entities."""
        while self._at < len(self._text):
            character, following = self._padded[self._at], self._padded[self._at + 1]
            if character == "\\" and 0 < ord(following) <= _LAST_ESCAPABLE:
                self._at += 2
                self._emit(following)
            elif character not in self._reserved():
                self._at += 1
                self._emit(character)
            elif self._ends(character):
                self._end(character)
            else:
                self._begin(character)
        if self._quoting:
            self._end_quote()
        if self._open:
            raise self._unended(self._open[-1])
        return "".join(self._out), self._entities

    def _emit(self, character: str) -> None:
        self._out.append(character)
        self._units += units(character)
        if character != "\r":
            self._line_start = character == "\n"

    def _reserved(self) -> str:
        return "`" if self._open and self._open[-1].kind in {"code", "pre"} else _RESERVED

    def _ahead(self, mark: str) -> bool:
        return self._padded.startswith(mark, self._at)

    def _ends(self, character: str) -> bool:
        if not self._open:
            return False
        if self._quoting and character == "\n":
            return self._padded[self._at + 1] != ">"
        double = self._ahead("__")
        return {
            "bold": character == "*",
            "italic": character == "_" and not double,
            "underline": double,
            "strikethrough": character == "~",
            "spoiler": self._ahead("||"),
            "code": character == "`",
            "pre": self._ahead("```"),
            "text_link": character == "]",
            "blockquote": False,
        }[self._open[-1].kind]

    def _begin(self, character: str) -> None:
        place, language = self._at, ""
        if character == "\n":
            self._at += 1
            self._emit("\n")
            return
        if character == ">" and self._line_start and self._quoting:
            self._at += 1
            return
        if character == ">" and self._line_start:
            kind, width, self._quoting = "blockquote", 1, True
        elif self._ahead("__"):
            kind, width = "underline", 2
        elif self._ahead("||"):
            kind, width = "spoiler", 2
        elif self._ahead("```"):
            kind, width = "pre", 3
        elif character in _SINGLE:
            kind, width = _SINGLE[character], 1
        elif self._ahead("!["):
            raise refuse(detail="The sandbox does not read custom emoji in MarkdownV2; use HTML")
        else:
            raise refuse(
                detail=f"Character '{character}' is reserved and must be escaped "
                "with the preceding '\\'"
            )
        self._at += width
        if kind == "pre":
            self._at, language = _fence_head(self._padded, self._at, len(self._text))
        self._open.append(_Nested(kind, language, self._units, place, len(self._out)))

    def _end(self, character: str) -> None:
        if character == "\n":
            self._end_quote(line_break=True)
            return
        nested = self._open.pop()
        self._at += {"underline": 2, "spoiler": 2, "pre": 3}.get(nested.kind, 1)
        url = self._url(nested) if nested.kind == "text_link" else ""
        length = self._units - nested.start
        if not length:
            return
        if nested.kind == "text_link":
            self._entities += _link(url, nested.start, length)
            return
        data = {"type": nested.kind, **({"language": nested.language} if nested.language else {})}
        self._entities.append(Raw(nested.start, length, data))

    def _url(self, nested: _Nested) -> str:
        if self._padded[self._at] != "(":
            return "".join(self._out[nested.out_place :])
        self._at += 1
        begin, url = self._at, ""
        while self._at < len(self._text) and self._padded[self._at] != ")":
            escaped = self._padded[self._at] == "\\"
            escaped = escaped and 0 < ord(self._padded[self._at + 1]) <= _LAST_ESCAPABLE
            url += self._padded[self._at + escaped]
            self._at += 1 + escaped
        if self._padded[self._at] != ")":
            raise refuse(
                detail=f"Can't find end of a URL at byte offset {_bytes_before(self._text, begin)}"
            )
        self._at += 1
        return url

    def _end_quote(self, *, line_break: bool = False) -> None:
        """A quote ends with its line; a closing `||` that opened there makes it expandable."""
        kind = "blockquote"
        last = self._open[-1]
        if last.kind == "spoiler" and last.place == self._at - 2:
            self._open.pop()
            kind, last = "expandable_blockquote", self._open[-1]
        if last.kind != "blockquote":
            raise self._unended(last)
        self._open.pop()
        self._quoting = False
        if line_break:  # the server counts the line break as part of the quote
            self._at += 1
            self._emit("\n")
        if self._units > last.start:
            self._entities.append(Raw(last.start, self._units - last.start, {"type": kind}))

    def _unended(self, nested: _Nested) -> Exception:
        place = _bytes_before(self._text, nested.place)
        name = "PreCode" if nested.language else _NAMES[nested.kind]
        return refuse(f"Can't find end of {name} entity at byte offset {place}")
