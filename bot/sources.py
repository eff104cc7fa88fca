"""Where a job's source comes from: a file that a person sent or a link, and how it becomes text."""

from __future__ import annotations

from ipaddress import ip_network

from bot.telegram.errors import TextNotKept
from connectors.sources.fetch import GuardedFetch, LinkPolicy
from connectors.sources.sandboxed import SandboxedConverter
from runtime.domain.job import Source
from runtime.engine.reading import Converted
from runtime.ports import Fetch, Fetched, Messenger


class SourceDesk:
    """Brings sources over the messenger or the link guard, and converts them in confinement."""

    def __init__(self, messenger: Messenger, fetch: Fetch, converter: SandboxedConverter) -> None:
        """Keep the three ways."""
        self._messenger = messenger
        self._fetch = fetch
        self._converter = converter

    async def bring(self, source: Source) -> Fetched:
        """The bytes of a file or a link.

        Raises:
            BadInput: with a sentence for the operator.
            StoreUnavailable: the messenger could not be reached; the attempt is repeated.
        """
        if source.kind == "link":
            return await self._fetch.fetch(source.link)
        if source.kind == "file":
            data = await self._messenger.download(source.file)
            return Fetched(data, "telegram", source.declared_type, source.name)
        raise TextNotKept

    async def convert(self, data: bytes, name: str, content_type: str) -> Converted:
        """The text in those bytes."""
        text = await self._converter.convert(data, name=name, content_type=content_type)
        return Converted(text.text, text.title or "", text.notes)


def guarded_fetch(allowed: str) -> GuardedFetch:
    """The link guard; `allowed` are private ranges that it may enter nevertheless."""
    networks = tuple(ip_network(part.strip()) for part in allowed.split(",") if part.strip())
    if not networks:
        return GuardedFetch()
    # Only somebody who opens private ranges on purpose needs ports that are not the web's own.
    return GuardedFetch(LinkPolicy(allow_addresses=networks, ports=frozenset(range(1, 65536))))
