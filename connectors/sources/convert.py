"""Any supported source, as one `SourceText`.

`convert` is a plain function of its arguments: same bytes, name and type, same text, on every
machine. It raises nothing but `runtime.errors.BadInput`. It runs parsers over hostile bytes, so a
running bot calls it through `connectors.sources.sandboxed`, in a process with limits; calling it
directly is for that process, tools and tests.

Order: size, then content (`detect`), then characters (`decode`), then the format's own reader,
then `text.source_text`, which alone decides what the final characters are.
"""

from __future__ import annotations

from collections.abc import Callable

from connectors.errors import ConversionFailed, EmptySource, SourceExploded, SourceTooLarge
from connectors.sources.decode import decode
from connectors.sources.detect import SPOKEN, agreed, binary_form, declared, text_form
from connectors.sources.limits import SOURCE_BYTES_MAX
from connectors.sources.names import shown_name
from connectors.sources.text import Extract, Format, Section, SourceText, source_text, stacked
from runtime.errors import BadInput

Reader = Callable[[str, str], Extract]
BinaryReader = Callable[[bytes, str], Extract]


def convert(raw: bytes, *, name: str | None = None, content_type: str | None = None) -> SourceText:
    """The text of a source; raises a subclass of SourceError that says why there is none."""
    shown = shown_name(name)
    if not raw.strip(b" \t\r\n"):
        raise EmptySource(name=shown)
    if len(raw) > SOURCE_BYTES_MAX:
        raise SourceTooLarge(name=shown, found=len(raw), limit=SOURCE_BYTES_MAX, unit="bytes")
    said = declared(name, content_type)
    binary = binary_form(raw, shown, said)
    if binary is not None:
        form = agreed(binary, shown, said)
        return _guarded(form, shown, lambda: _binary_reader(form)(raw, shown))
    decoded = decode(raw, shown, said, content_type)
    form = text_form(decoded.text, shown, said)

    def read() -> Extract:
        extract = _text_reader(form)(decoded.text, shown)
        if decoded.note is None:
            return extract
        return extract.model_copy(update={"notes": (decoded.note, *extract.notes)})

    return _guarded(form, shown, read)


def is_simple(raw: bytes, *, name: str | None = None, content_type: str | None = None) -> bool:
    """Whether converting takes no parser and no long time, so that no process is worth it."""
    if raw.startswith(b"PK"):
        return False  # even an archive's directory is read elsewhere
    shown = shown_name(name)
    try:
        said = declared(name, content_type)
        if binary_form(raw, shown, said) is not None:
            return False
        text = decode(raw, shown, said, content_type).text
        form = text_form(text, shown, said)
    except BadInput:
        return True  # the refusal itself needs no parser
    return form in {"text", "markdown"} and not stacked(text)


def _guarded(form: Format, name: str, read: Callable[[], Extract]) -> SourceText:
    """Whatever a parser does to hostile bytes ends as a refusal; its words stay out (INV-20)."""
    try:
        return source_text(read(), form, name)
    except BadInput:
        raise
    except MemoryError:
        raise SourceExploded(name=name, what="memory", limit="the allowed amount") from None
    except Exception as fault:  # noqa: BLE001 - parsers raise anything; each is one refusal
        cause = type(fault).__name__
        raise ConversionFailed(name=name, format=SPOKEN[form], cause=cause) from None


def _plain(text: str, _name: str) -> Extract:
    return Extract(sections=(Section(text=text),))


def _text_reader(form: Format) -> Reader:
    # Readers are imported when a source needs them: most processes never convert anything.
    if form == "html":
        from connectors.sources.html import read_html

        return read_html
    if form in {"vtt", "srt"}:
        from connectors.sources.cues import read_cues

        return read_cues
    return _plain


def _binary_reader(form: Format) -> BinaryReader:
    if form == "pdf":
        from connectors.sources.pdf import read_pdf

        return read_pdf
    from connectors.sources.docx import read_docx

    return read_docx
