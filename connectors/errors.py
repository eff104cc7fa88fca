"""Faults of the connectors, below the runtime's `BadInput`.

    runtime.errors.BadInput
    └── SourceError                 a source that cannot become text; nothing was stored from it
        ├── EmptySource             no bytes, or nothing but blanks
        ├── SourceTooLarge          more bytes or characters than are read
        ├── UnsupportedSource       a kind that is not read, or content that contradicts its name
        ├── EncryptedSource         a document that asks for a password
        ├── NoTextInSource          pages or markup, but no text (a scan)
        ├── SourceUndecodable       bytes that are not text in the stated encoding
        ├── SourceExploded          small outside, huge inside: a limit stopped the conversion
        ├── ConversionFailed        the converter gave up or died; the bot goes on
        └── LinkError
            ├── LinkRefused         a link that is never followed, whatever answers there
            └── LinkUnreachable     a link that was followed and gave no usable answer

`sentence` is what the operator reads: what is wrong with this source, and what to do. Fields are
names, numbers and reasons; never text of the source, never a link's query (INV-20). A field that
came from outside (a file name) is cleaned by `connectors.sources.names` before it gets here.
"""

from __future__ import annotations

from typing import ClassVar

from runtime.errors import BadInput

UNNAMED = "the source"
"""What a source without a usable name is called."""


class SourceError(BadInput):
    """Fields: name (of the source, cleaned), and those of the subclass."""

    rule = "a source is used only as text that was really read from it"
    remedy = "send it again in a supported form"
    telling: ClassVar[str] = "{name} could not be read"

    @property
    def sentence(self) -> str:
        """One sentence for the operator; the technical name stays in the log."""
        name = self.fields.get("name", UNNAMED)
        shown = "The source" if name == UNNAMED else f"“{name}”"
        told = self.telling.format_map({**self.fields, "name": shown})
        return f"{told}; {self.remedy}."


class EmptySource(SourceError):
    """Fields: name."""

    telling = "{name} is empty"
    remedy = "send a source that contains text"


class SourceTooLarge(SourceError):
    """Fields: name, found (at least), limit, unit (bytes | characters)."""

    rule = "what is read is bounded"
    telling = "{name} is too large: {found} {unit}, and at most {limit} are read"
    remedy = "send the part that matters"


class UnsupportedSource(SourceError):
    """Fields: name, looks_like, declared ("" unless the name or type says otherwise), supported."""

    rule = "content decides what a source is; a name that contradicts it is not believed"
    telling = "{name} looks like {looks_like}; I can read {supported}"
    remedy = "send it in one of these forms, under the right name"

    @property
    def sentence(self) -> str:
        """Names the contradiction if there is one."""
        plain = super().sentence
        said = self.fields.get("declared")
        return plain.replace("; ", f" but is declared as {said}; ", 1) if said else plain


class EncryptedSource(SourceError):
    """Fields: name, format."""

    telling = "{name} is {format} protected by a password, so I cannot read it"
    remedy = "remove the password and send it again"


class NoTextInSource(SourceError):
    """Fields: name, format, pages (0 if it has none)."""

    telling = "{name} is {format} without any text in it"
    remedy = "send the text itself"

    @property
    def sentence(self) -> str:
        """Pages without text are pictures of pages: that has a remedy of its own."""
        if not self.fields.get("pages"):
            return super().sentence
        scanned = ", probably scanned pictures of pages; run text recognition on it, or "
        return super().sentence.replace("; ", scanned, 1)


class SourceUndecodable(SourceError):
    """Fields: name, encoding, offset (of the first byte that is wrong)."""

    rule = "an encoding is stated by the source or it is UTF-8; it is never guessed"
    telling = "{name} is not valid {encoding}: the byte at position {offset} does not fit"
    remedy = "save it as UTF-8 and send it again"


class SourceExploded(SourceError):
    """Fields: name, what (the limit that stopped it), limit."""

    rule = "a small file may not become a huge one"
    telling = "{name} unpacks to more than is safe, so I stopped reading: {what} above {limit}"
    remedy = "send the text itself"


class ConversionFailed(SourceError):
    """Fields: name, format, cause (an error's name or how the process ended)."""

    telling = "{name} could not be read as {format} ({cause}); it may be damaged"
    remedy = "open it, save it anew or as plain text, and send that"


class LinkError(SourceError):
    """Fields: link (without credentials, query and fragment), reason."""

    rule = "a link is followed only to public addresses, within its limits"


class LinkRefused(LinkError):
    """Fields: link, reason. Asking again gives the same answer."""

    telling = "I do not open {link}: {reason}"
    remedy = "send the text or the file itself"


class LinkUnreachable(LinkError):
    """Fields: link, reason. Asking again later may help."""

    telling = "{link} could not be read: {reason}"
    remedy = "check the link, try later, or send the text itself"


def source_errors() -> dict[str, type[SourceError]]:
    """Every concrete source error by name, so that a process can hand one to another."""
    found: dict[str, type[SourceError]] = {}
    waiting: list[type[SourceError]] = [SourceError]
    while waiting:
        cls = waiting.pop()
        found[cls.__name__] = cls
        waiting.extend(cls.__subclasses__())
    return found
