"""Telegram's HTML style, read byte by byte the way its server reads it.

Keeps: offsets and lengths of entities count UTF-16 units; byte offsets in refusals count UTF-8
bytes of the sent text; what the server refuses is refused with the server's words, and what it
accepts leniently (`</>`, `&#60` without a semicolon, attributes without quotes) is accepted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bot.sandbox.errors import ApiRefusal, bad_request
from bot.sandbox.markup_text import Raw, checked_link, mentioned_user

TAGS = {
    "b": "bold",
    "strong": "bold",
    "i": "italic",
    "em": "italic",
    "s": "strikethrough",
    "strike": "strikethrough",
    "del": "strikethrough",
    "u": "underline",
    "ins": "underline",
    "tg-spoiler": "spoiler",
    "span": "spoiler",
    "tg-emoji": "custom_emoji",
    "a": "text_link",
    "pre": "pre",
    "code": "code",
    "blockquote": "blockquote",
}
_NAMED = {b"lt": "<", b"gt": ">", b"amp": "&", b"quot": '"'}
_SPACE = frozenset(b" \t\r\n\v\x00")
_LAST_CODE_POINT = 0x10FFFF
_REFERENCE_LENGTH_MAX = 10


def refuse(detail: str) -> ApiRefusal:
    """The refusal of a text whose marks cannot be read."""
    return bad_request(f"Can't parse entities: {detail}")


@dataclass
class _Open:
    tag: str
    argument: str
    start: int
    byte_start: int


class HtmlReader:
    """Reads one text; `read` gives the plain text and its entities."""

    def __init__(self, text: str) -> None:
        # The closing zero is the server's own end mark: "is this still text" needs no length check.
        self._text = text.encode() + b"\x00"
        self._size = len(self._text) - 1
        self._at = 0
        self._out = bytearray()
        self._units = 0
        self._open: list[_Open] = []
        self._entities: list[Raw] = []

    def read(self) -> tuple[str, list[Raw]]:
        """Plain text and entities, in the order in which they were closed."""
        while self._at < self._size:
            byte = self._text[self._at]
            if byte == ord("&"):
                decoded = self._reference()
                if decoded:
                    self._emit(decoded.encode("utf-8", "surrogatepass"))
                    continue
            if byte != ord("<"):
                self._emit(self._text[self._at : self._at + 1])
                self._at += 1
            elif self._text[self._at + 1] == ord("/"):
                self._end_tag()
            else:
                self._start_tag()
        if self._open:
            raise refuse(
                detail=f'Can\'t find end tag corresponding to start tag "{self._open[-1].tag}"'
            )
        try:
            return self._out.decode(), self._entities
        except UnicodeDecodeError as cause:
            raise refuse(
                detail="Text contains invalid Unicode characters after decoding HTML entities, "
                "check for unmatched surrogate code units"
            ) from cause

    def _emit(self, content: bytes) -> None:
        self._out += content
        for byte in content:
            if byte & 0xC0 != 0x80:  # noqa: PLR2004 - a UTF-8 continuation byte is 10xxxxxx
                self._units += 2 if byte >= 0xF0 else 1  # noqa: PLR2004 - 4 bytes: a surrogate pair

    def _reference(self) -> str:
        """The character of the reference at the cursor, which moves past it; "" if it is none."""
        text, end = self._text, self._at + 1
        if text[end] == ord("#"):
            end += 1
            digits, base = b"0123456789", 10
            if text[end] == ord("x"):
                end += 1
                digits, base = b"0123456789abcdefABCDEF", 16
            begin = end
            while text[end] in digits:
                end += 1
            if end == begin or end - self._at >= _REFERENCE_LENGTH_MAX:
                return ""
            code = int(text[begin:end], base)
            if code == 0 or code >= _LAST_CODE_POINT:
                return ""
            found = chr(code)
        else:
            while text[end : end + 1].isalpha():
                end += 1
            found = _NAMED.get(bytes(text[self._at + 1 : end]), "")
            if not found:
                return ""
        self._at = end + 1 if text[end] == ord(";") else end
        return found

    def _skip_space(self) -> None:
        while self._text[self._at] in _SPACE and self._text[self._at] != 0:
            self._at += 1

    def _until(self, stops: bytes) -> str:
        begin = self._at
        while self._text[self._at] not in _SPACE and self._text[self._at] not in stops:
            self._at += 1
        return self._text[begin : self._at].decode("utf-8", "replace")

    def _start_tag(self) -> None:
        begin = self._at
        self._at += 1
        name = _lower(self._until(b">"))
        if self._text[self._at] == 0:
            raise refuse(detail=f"Unclosed start tag at byte offset {begin}")
        if name not in TAGS:
            raise refuse(detail=f'Unsupported start tag "{name}" at byte offset {begin}')
        argument = ""
        while self._text[self._at] != ord(">"):
            self._skip_space()
            if self._text[self._at] == ord(">"):
                break
            argument = self._attribute(name, argument, begin)
        if name == "span" and argument != "spoiler":
            raise refuse(detail=f'Tag "span" must have class "tg-spoiler" at byte offset {begin}')
        self._at += 1
        self._open.append(_Open(name, argument, self._units, len(self._out)))

    def _attribute(self, tag: str, argument: str, begin: int) -> str:
        name = self._until(b"=>/\"'")
        if not name:
            raise refuse(detail=f'Empty attribute name in the tag "{tag}" at byte offset {begin}')
        self._skip_space()
        if self._text[self._at] != ord("="):
            if self._text[self._at] == 0:
                raise refuse(detail=f'Unclosed start tag "{tag}" at byte offset {begin}')
            return "1" if tag == "blockquote" and name == "expandable" else argument
        self._at += 1
        self._skip_space()
        if self._text[self._at] == 0:
            raise refuse(detail=f'Unclosed start tag "{tag}" at byte offset {begin}')
        value = self._value()
        if self._text[self._at] == 0:
            raise refuse(detail=f"Unclosed start tag at byte offset {begin}")
        return _argument(tag, name, value, argument)

    def _value(self) -> str:
        quote = self._text[self._at]
        if quote not in b"'\"":
            begin = self._at
            while self._text[self._at : self._at + 1].isalnum() or self._text[self._at] in b".-":
                self._at += 1
            if self._text[self._at] not in _SPACE and self._text[self._at] != ord(">"):
                raise refuse(detail=f"Unexpected end of name token at byte offset {begin}")
            return self._text[begin : self._at].decode().lower()
        self._at += 1
        value = bytearray()
        while self._text[self._at] not in (quote, 0):
            decoded = self._reference() if self._text[self._at] == ord("&") else ""
            if decoded:
                value += decoded.encode("utf-8", "surrogatepass")
                continue
            value.append(self._text[self._at])
            self._at += 1
        if self._text[self._at] == quote:
            self._at += 1
        return value.decode("utf-8", "replace")

    def _end_tag(self) -> None:
        begin = self._at
        if not self._open:
            raise refuse(detail=f"Unexpected end tag at byte offset {begin}")
        self._at += 2
        name = _lower(self._until(b">"))
        self._skip_space()
        if self._text[self._at] != ord(">"):
            raise refuse(detail=f"Unclosed end tag at byte offset {begin}")
        opened = self._open[-1]
        if name and name != opened.tag:
            raise refuse(
                detail=f'Unmatched end tag at byte offset {begin}, expected "</{opened.tag}>", '
                f'found "</{name}>"'
            )
        self._at += 1
        if self._units > opened.start:
            self._close(opened)
        self._open.pop()

    def _close(self, opened: _Open) -> None:
        length = self._units - opened.start
        entity: dict[str, Any] = {"type": TAGS[opened.tag]}
        if opened.tag == "a":
            url = opened.argument or bytes(self._out[opened.byte_start :]).decode("utf-8", "ignore")
            user = mentioned_user(url)
            link = checked_link(url)
            if user is not None:
                entity = {"type": "text_mention", "user_id": user}
            elif link:
                entity["url"] = link
            else:
                return
        elif opened.tag == "tg-emoji":
            if not opened.argument.isdigit() or int(opened.argument) == 0:
                raise refuse(detail="Invalid custom emoji identifier specified")
            entity["custom_emoji_id"] = opened.argument
        elif opened.tag == "blockquote" and opened.argument:
            entity["type"] = "expandable_blockquote"
        elif opened.tag in {"pre", "code"} and self._fuse(opened, length):
            return
        elif opened.tag == "code" and opened.argument:
            entity["maybe_language"] = opened.argument
        self._entities.append(Raw(opened.start, length, entity))

    def _fuse(self, opened: _Open, length: int) -> bool:
        """`<pre><code class="language-x">` is one entity, whichever stands outside."""
        last = self._entities[-1] if self._entities else None
        if last is None or (last.offset, last.length) != (opened.start, length):
            return False
        inner = "code" if opened.tag == "pre" else "pre"
        language = last.data.get("maybe_language") if opened.tag == "pre" else opened.argument
        if last.data["type"] != inner or not language:
            return False
        self._entities[-1] = Raw(last.offset, last.length, {"type": "pre", "language": language})
        return True


def _lower(name: str) -> str:
    """Only ASCII letters are lowered, as the server does."""
    return "".join(chr(ord(c) + 32) if "A" <= c <= "Z" else c for c in name)


def _argument(tag: str, name: str, value: str, before: str) -> str:
    """What one attribute contributes to its tag; unknown attributes contribute nothing."""
    if (tag, name) in {("a", "href"), ("tg-emoji", "emoji-id")}:
        return value
    if (tag, name) == ("code", "class") and value.startswith("language-"):
        return value.removeprefix("language-")
    if (tag, name) == ("span", "class") and value.startswith("tg-"):
        return value.removeprefix("tg-")
    if (tag, name) == ("blockquote", "expandable"):
        return "1"
    return before
