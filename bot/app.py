"""The composition root: settings become ports, ports become services, services run until stopped.

Nothing else in the project chooses an adapter. Everything durable lives in the store and the blobs;
killing this process at any moment loses nothing that was acknowledged.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from bot.keys import FileKeys
from bot.settings import Settings
from runtime.domain.people import PAIRING_VALID, PairingCode, Role, code_digest
from runtime.domain.policy import Policy
from runtime.domain.values import DIRECTORY
from runtime.engine.kit import Kit
from runtime.ports import Ask, Commit, Put, Reads
from runtime.stores.collections import ALL, MEMBERS, PAIRING_CODES, POLICIES
from runtime.stores.sqlite import SqliteStore
from runtime.system import SystemClock, SystemIds
from runtime.wakes.local import LocalWakes


@dataclass(frozen=True, slots=True)
class Base:
    """What every process opens: the kit, the keys and the folders."""

    settings: Settings
    kit: Kit
    wakes: LocalWakes
    keys: FileKeys

    @property
    def blobs_dir(self) -> Path:
        """Where artifact bytes live."""
        return self.settings.harmonia_data_dir / "blobs"

    @property
    def packs_dir(self) -> Path:
        """Where content packs are exported to."""
        return self.settings.harmonia_data_dir / "packs"

    @property
    def sandbox_dir(self) -> Path:
        """Where the Telegram sandbox keeps its world."""
        return self.settings.harmonia_data_dir / "sandbox"


@contextlib.asynccontextmanager
async def base(settings: Settings) -> AsyncIterator[Base]:
    """Open store and keys; close the store at the end."""
    clock, ids, wakes = SystemClock(), SystemIds(), LocalWakes()
    folder = settings.harmonia_data_dir
    keys = FileKeys(folder / "keys", ids)
    store = SqliteStore.open(folder / "truth.sqlite", ALL, clock, ids)
    try:
        yield Base(settings, Kit(clock, ids, store, wakes), wakes, keys)
    finally:
        await store.close()


async def seed(parts: Base) -> str | None:
    """Store the policy as set, and make a pairing code while nobody is admin.

    A changed setting is a new version of the policy; requests that stand keep the terms that they
    were made under.

    Returns:
        The code, to be shown once to whoever started the process, or None if an admin exists. A
        code is made at each start until it is used: only its digest is stored.
    """
    kit, tenant = parts.kit, parts.settings.tenant
    now = kit.clock.now()
    code = kit.ids.token()[:12]
    within = timedelta(hours=parts.settings.harmonia_decide_within_hours)

    async def body(reads: Reads) -> Commit[bool]:
        writes: list[Put[Policy] | Put[PairingCode]] = []
        key = POLICIES.key(tenant, "current")
        stored = await reads.get(key)
        if stored is None:
            writes.append(Put(key, Policy(since=now, decide_within=within)))
        elif stored.decide_within != within:
            changed = {"version": stored.version + 1, "decide_within": within, "since": now}
            writes.append(Put(key, stored.model_copy(update=changed)))
        admins = await reads.find(
            Ask(MEMBERS, "by_role", tenant, equals=(Role.ADMIN.value,), limit=1)
        )
        if admins.rows:
            return Commit(False, tuple(writes))
        invitation = PairingCode(
            id=code_digest(code),
            tenant=tenant,
            role=Role.ADMIN,
            by="harmonia",
            expires_at=now + PAIRING_VALID,
        )
        writes.append(Put(PAIRING_CODES.key(DIRECTORY, invitation.id), invitation))
        return Commit(True, tuple(writes))

    return code if await kit.commit(body) else None
