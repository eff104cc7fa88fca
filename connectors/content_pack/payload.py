"""The payload of a content pack: everything that goes into it, as one canonical text.

The approval's digest covers this text, so it covers the whole pack: the draft, each quote with its
position, where the source came from, the revisions and the folder it is written to. Who approves
is not in it; that comes later and stands in the approval.

Keeps INV-5's ground: a pack is a function of this text alone (`connectors/content_pack/pack.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final, Literal

from pydantic import Field, ValidationError

from connectors.content_pack.errors import PackRefused
from runtime.domain.canonical import canonical_text
from runtime.domain.job import Job
from runtime.domain.proposal import Analysis, Draft, Quote, Section, Short
from runtime.domain.revision import RevisionRef
from runtime.domain.values import Digest, Id, Name, Record, Tenant

EFFECT: Final = "content_pack.export"
FORMAT: Final = "harmonia-pack/1"
PAYLOAD_CHARS_MAX: Final = 190_000
"""Under the limit of a record's text, with room for what quoting it again adds."""


class PackQuote(Record):
    """A quote and whether the draft rests on it."""

    id: Annotated[str, Field(pattern=r"^F[0-9]{1,5}$")]
    text: Annotated[str, Field(min_length=1, max_length=2_000)]
    start: Annotated[int, Field(ge=0)]
    end: Annotated[int, Field(ge=1)]
    cited: bool


class PackSource(Record):
    """Where the quotes come from. Positions count characters of the text with this digest."""

    kind: Literal["file", "link", "text"]
    name: Annotated[str, Field(max_length=300)]
    link: Annotated[str, Field(max_length=2_000)] = ""
    """Without credentials, query and fragment: a pack is given away."""
    text_sha256: Digest
    text_chars: Annotated[int, Field(ge=0)]


class PackPayload(Record):
    """What is approved and packed. `format` fixes how it becomes bytes, for ever."""

    format: Literal["harmonia-pack/1"] = FORMAT
    workspace: Name
    brand: Name
    job: Id
    job_number: Annotated[int, Field(ge=0)]
    title: Short
    sections: Annotated[tuple[Section, ...], Field(min_length=1, max_length=20)]
    quotes: Annotated[tuple[PackQuote, ...], Field(max_length=80)]
    quotes_omitted: Annotated[int, Field(ge=0)] = 0
    """Uncited quotes left out because the payload would have been too large."""
    source: PackSource
    revisions: Annotated[tuple[RevisionRef, ...], Field(max_length=8)]


@dataclass(frozen=True, slots=True)
class Origin:
    """What a pack is made for: the tenant, the job, and the revisions it was approved as."""

    tenant: Tenant
    job: Job
    revisions: tuple[RevisionRef, ...]


def build_payload(draft: Draft, analysis: Analysis, origin: Origin) -> str:
    """The canonical payload of a draft.

    Raises:
        PackRefused: a section names a quote that is not there, the source was never read, or the
            draft is too large for one approval.
        NotCanonical: a text without canonical bytes.
    """
    cited = {name for section in draft.sections for name in section.quotes}
    if unknown := sorted(cited - {quote.id for quote in analysis.quotes}):
        raise PackRefused(cause=f"the draft names quotes that are not there: {unknown[:5]}")
    quotes = tuple(_quote(quote, cited) for quote in analysis.quotes)
    whole = _payload(draft, quotes, 0, origin)
    if len(text := canonical_text(whole)) <= PAYLOAD_CHARS_MAX:
        return text
    kept = tuple(quote for quote in quotes if quote.cited)
    text = canonical_text(_payload(draft, kept, len(quotes) - len(kept), origin))
    if len(text) > PAYLOAD_CHARS_MAX:
        raise PackRefused(cause=f"{len(text):,} characters, and at most {PAYLOAD_CHARS_MAX:,} fit")
    return text


def read_payload(text: str) -> PackPayload:
    """The payload of a text, if it is one and canonical.

    Raises:
        PackRefused: another shape, or other bytes than the canonical ones.
    """
    try:
        payload = PackPayload.model_validate_json(text)
    except ValidationError as error:
        fields = sorted({".".join(str(part) for part in item["loc"]) for item in error.errors()})
        raise PackRefused(cause=f"not a pack's payload: {', '.join(fields)[:300]}") from None
    if canonical_text(payload) != text:
        raise PackRefused(cause="the payload is not in its canonical form")
    if len(text) > PAYLOAD_CHARS_MAX:
        raise PackRefused(cause=f"{len(text):,} characters, and at most {PAYLOAD_CHARS_MAX:,} fit")
    cited = {name for section in payload.sections for name in section.quotes}
    if not cited <= {quote.id for quote in payload.quotes}:
        raise PackRefused(cause="the draft names quotes that are not there")
    return payload


def _payload(
    draft: Draft, quotes: tuple[PackQuote, ...], omitted: int, origin: Origin
) -> PackPayload:
    job = origin.job
    if job.source.text_digest is None:
        raise PackRefused(cause="the source was never read")
    return PackPayload(
        workspace=origin.tenant.workspace,
        brand=origin.tenant.brand,
        job=job.id,
        job_number=job.number,
        title=draft.title,
        sections=draft.sections,
        quotes=quotes,
        quotes_omitted=omitted,
        source=PackSource(
            kind=job.source.kind,
            name=job.source.name,
            link=plain_link(job.source.link),
            text_sha256=job.source.text_digest,
            text_chars=job.source.text_chars,
        ),
        revisions=origin.revisions,
    )


def _quote(quote: Quote, cited: set[str]) -> PackQuote:
    return PackQuote(
        id=quote.id, text=quote.text, start=quote.start, end=quote.end, cited=quote.id in cited
    )


def plain_link(link: str) -> str:
    """A link without credentials, query and fragment; "" if it has no host."""
    head = link.partition("#")[0].partition("?")[0]
    scheme, found, rest = head.partition("://")
    host, slash, path = rest.partition("/")
    host = host.rpartition("@")[2]
    return f"{scheme}://{host}{slash}{path}" if found and host else ""
