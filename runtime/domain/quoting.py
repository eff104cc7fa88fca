"""Quoting: text of others inside a projection, so that it can never pass for the projection's own.

A block is a header line (``┌`` and canonical ASCII JSON), the text with ``│`` and a blank before
each of its lines, and a footer line (``└`` and the digest of the text). Whatever breaks a line in
any reader breaks it here too, so every line of the text carries the mark; a line that begins
otherwise is the projection's own. `unquote` gives back exactly the text, or refuses.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Annotated, Final, Literal

from pydantic import Field, ValidationError

from runtime.domain.canonical import canonical_bytes
from runtime.domain.values import Digest, Record, Trust, sha256
from runtime.errors import BadInput, NotCanonical

HEADER: Final = "┌ "
QUOTED: Final = "│ "
FOOTER: Final = "└ "

LINE_BREAKS: Final = "\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"
"""Every character at which `str.splitlines` and Unicode break a line."""

_BREAK: Final = re.compile(f"\r\n|[{LINE_BREAKS}]")

Kind = Literal[
    "source",  # a window of the source text
    "notes",  # what a reader found (model-made)
    "revision",  # the body of an analysis, strategy, draft or review
    "brief",  # what the operator asked for
    "decision",  # why a person said no
    "report",  # what a provider or a verification said in words
    "question",  # what a person asks in the chat
    "jobs",  # lines of jobs, for the chat agent
    "items",  # lines of needs-you items, for the chat agent
    "memory",  # one remembered fact; never authority
]


class Header(Record):
    """Where a block's text comes from. `start` and `end` are characters of the whole.

    `whole` is the digest of the whole text or bytes, `total` its characters; `label` says which
    one it is (a step, a revision kind, a file name).
    """

    kind: Kind
    record: Annotated[str, Field(max_length=700)]
    label: str = ""
    trust: Trust
    start: int
    end: int
    total: int
    whole: Digest


class Block(Record):
    """One block of quoted text with its header."""

    header: Header
    text: str


def quote(header: Header, text: str) -> str:
    """The block's lines, each ending in a line feed.

    Raises:
        NotCanonical: the text holds a lone surrogate, so it has no bytes.
    """
    try:
        digest = sha256(text.encode())
    except UnicodeEncodeError:
        raise NotCanonical(path=header.record, cause="lone surrogate") from None
    shown = json.dumps(header.model_dump(mode="json"), sort_keys=True, separators=(",", ":"))
    marked = "".join(f"{QUOTED}{line}" for line in broken(text))
    return f"{HEADER}{shown}\n{marked}\n{FOOTER}{digest}\n"


def quoted_chars(text: str) -> int:
    """How many characters `quote` needs for the text itself, without header and footer."""
    return len(text) + len(QUOTED) * (len(_BREAK.findall(text)) + 1) + 1


def broken(text: str) -> Iterator[str]:
    """The lines of a text with their breaks; the last has none and may be empty."""
    start = 0
    for found in _BREAK.finditer(text):
        yield text[start : found.end()]
        start = found.end()
    yield text[start:]


def unquote(projection: str) -> tuple[Block, ...]:
    """The blocks of a projection's text, in order.

    Raises:
        BadInput: a block without its footer, a line that does not belong, or text that does not
            have the digest its footer says.
    """
    blocks: list[Block] = []
    header: Header | None = None
    lines: list[str] = []
    for line in broken(projection):
        if header is None:
            if line.startswith(HEADER):
                header, lines = _header(line), []
            elif line.startswith((QUOTED, FOOTER)):
                raise BadInput(projection="line", cause="quoted text outside a block")
        elif line.startswith(QUOTED):
            lines.append(line[len(QUOTED) :])
        elif line.startswith(FOOTER):
            blocks.append(_block(header, lines, line))
            header = None
        else:
            raise BadInput(projection="line", cause="an unmarked line inside a block")
    if header is not None:
        raise BadInput(projection="end", cause="a block without its footer")
    return tuple(blocks)


def canonical_line(value: object) -> str:
    """A value as one line of ASCII that cannot break or close anything around it."""
    plain = json.loads(canonical_bytes(value))
    return json.dumps(plain, sort_keys=True, separators=(",", ":"))


def _header(line: str) -> Header:
    try:
        return Header.model_validate_json(line[len(HEADER) :])
    except ValidationError:
        raise BadInput(projection="header", cause="not a block's header") from None


def _block(header: Header, lines: list[str], footer: str) -> Block:
    text = "".join(lines).removesuffix("\n")
    if footer[len(FOOTER) :].rstrip("\n") != sha256(text.encode()):
        raise BadInput(projection="footer", cause="the text is not what its digest says")
    return Block(header=header, text=text)
