"""What a process opens at its start, and what it stores before anybody is there."""

from __future__ import annotations

from pathlib import Path

from bot.app import base, seed
from bot.settings import Settings
from runtime.domain.people import Member, Role, code_digest
from runtime.domain.values import DIRECTORY
from runtime.ports import Commit, Put, Reads
from runtime.stores.collections import MEMBERS, PAIRING_CODES, POLICIES
from tests.world import START


def settings(folder: Path, hours: float = 168) -> Settings:
    return Settings(
        _env_file=None,  # a developer's own .env stays out
        harmonia_data_dir=folder,
        harmonia_decide_within_hours=hours,
    )


async def test_a_fresh_instance_has_a_policy_and_a_code_for_its_first_admin(tmp_path: Path) -> None:
    async with base(settings(tmp_path)) as parts:
        code = await seed(parts)
        assert code is not None
        policy = await parts.kit.store.get(POLICIES.key(parts.settings.tenant, "current"))
        assert policy is not None
        assert policy.version == 1
        stored = await parts.kit.store.get(PAIRING_CODES.key(DIRECTORY, code_digest(code)))
        assert stored is not None
        assert stored.role is Role.ADMIN
        assert code not in stored.model_dump_json()


async def test_with_an_admin_there_is_no_code(tmp_path: Path) -> None:
    async with base(settings(tmp_path)) as parts:
        key = MEMBERS.key(parts.settings.tenant, "telegram:1")
        admin = Member(id="telegram:1", role=Role.ADMIN, display="Ana", since=START, by="harmonia")

        async def body(reads: Reads) -> Commit[None]:
            del reads
            return Commit(None, (Put(key, admin),))

        await parts.kit.commit(body)
        assert await seed(parts) is None


async def test_a_changed_setting_is_a_new_version_of_the_policy(tmp_path: Path) -> None:
    versions = []
    for hours in (168, 168, 24, 24):
        async with base(settings(tmp_path, hours)) as parts:
            await seed(parts)
            policy = await parts.kit.store.get(POLICIES.key(parts.settings.tenant, "current"))
            assert policy is not None
            versions.append((policy.version, policy.decide_within.total_seconds() / 3600))
    assert versions == [(1, 168), (1, 168), (2, 24), (2, 24)]
