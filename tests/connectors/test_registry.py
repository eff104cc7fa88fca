"""The registry: who carries what, and why somebody does not."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from connectors.content_pack.connector import DESCRIPTOR, ContentPack
from connectors.registry import Context, Registry, contract_flaws, load
from runtime.domain.effect import Descriptor, Finding
from runtime.ports import Connector, Secrets
from tests.effects_made import Provider
from tests.world import ManualClock


class Other(Provider):
    """A provider of another effect."""

    def __init__(self, **changes: object) -> None:
        super().__init__()
        self._changes = changes

    @property
    def descriptor(self) -> Descriptor:
        own = {"id": "other", "effects": ("other.post",)}
        return super().descriptor.model_copy(update={**own, **self._changes})


def reason(found: Connector | Finding) -> str:
    assert isinstance(found, Finding)
    assert not found.ok
    return found.evidence


def test_a_connector_is_found_by_its_id_and_by_each_of_its_effects() -> None:
    one, two = Provider(), Other(effects=("other.post", "other.delete"))
    registry = Registry([one, two])
    assert registry.by_id("counting") is one
    assert registry.for_effect("content_pack.export") is one
    assert registry.for_effect("other.post") is registry.for_effect("other.delete") is two
    assert [descriptor.id for descriptor in registry.descriptors] == ["counting", "other"]
    assert registry.inactive == ()


def test_what_nobody_carries_is_a_finding_in_words() -> None:
    registry = Registry([])
    assert "x.post" in reason(registry.for_effect("x.post"))
    assert "x" in reason(registry.by_id("x"))


def test_no_effect_has_two_connectors_and_the_first_keeps_it() -> None:
    first, second = Provider(), Other(effects=("content_pack.export", "other.post"))
    registry = Registry([first, second])
    assert registry.for_effect("content_pack.export") is first
    assert "carried by another connector" in reason(registry.for_effect("other.post"))
    assert len(registry.inactive) == 1


def test_no_id_is_taken_twice() -> None:
    registry = Registry([Provider(), Other(id="counting")])
    assert "its ID is taken" in registry.inactive[0].evidence


@pytest.mark.parametrize(
    ("changes", "flaw"),
    [
        ({"effects": ("a.b", "a.b")}, "effects are listed twice"),
        ({"capabilities": ("verify", "export", "verify")}, "capabilities are listed twice"),
        ({"required_scopes": ("w", "w")}, "required_scopes are listed twice"),
        ({"effects": ("Not an effect",)}, "is no effect type"),
        ({"effects": ("a.b\n",)}, "is no effect type"),
        ({"capabilities": ("export",)}, "independent verification without"),
        ({"undo": "delete"}, "undo by deleting without"),
    ],
)
def test_a_descriptor_that_breaks_the_contract_makes_its_connector_inactive(
    changes: dict[str, object], flaw: str
) -> None:
    registry = Registry([Other(**changes)])
    assert registry.descriptors == ()
    assert flaw in registry.inactive[0].evidence


def test_a_promise_that_is_kept_is_no_flaw() -> None:
    assert contract_flaws(DESCRIPTOR) == []
    quiet = DESCRIPTOR.model_copy(
        update={"capabilities": ("export",), "independent_verification": False}
    )
    assert contract_flaws(quiet) == []


def test_a_connector_whose_calls_cannot_be_awaited_is_inactive() -> None:
    blocking = Other()
    setattr(blocking, "execute", print)  # noqa: B010 - a defect that types would refuse
    registry = Registry([blocking])
    assert "no awaitable execute" in registry.inactive[0].evidence
    assert "no awaitable execute" in reason(registry.for_effect("other.post"))


class NoSecrets:
    """Secrets of an installation without any."""

    def read(self, name: str) -> bytes | None:
        del name
        return None


def context(folder: Path) -> Context:
    secrets: Secrets = NoSecrets()
    return Context(ManualClock(), secrets, folder)


def packs(made: Context) -> Connector:
    return ContentPack(made.data_dir / "packs", made.clock)


def install(folder: Path, name: str, module: str, entries: str) -> None:
    """A distribution beside ours, as an installer leaves it."""
    (folder / f"{name}.py").write_text(module, encoding="utf-8")
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[harmonia.connectors]\n{entries}\n")


def test_what_is_installed_beside_the_bot_is_loaded_by_entry_point(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(
        tmp_path,
        "third_party_sound",
        "from tests.connectors.test_registry import Other\n"
        "def make(context):\n    return Other(id='third', effects=('third.post',))\n",
        "third = third_party_sound:make",
    )
    install(
        tmp_path,
        "third_party_broken",
        "from types import SimpleNamespace\n"
        "def make(context):\n    raise RuntimeError('secret text')\n"
        "def odd(context):\n    return SimpleNamespace(descriptor=SimpleNamespace(id='odd'))\n",
        "broken = third_party_broken:make\nmissing = no_such_module:make\n"
        "odd = third_party_broken:odd",
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2]))
    registry = load(context(tmp_path), [packs])
    assert [descriptor.id for descriptor in registry.descriptors] == ["content_pack", "third"]
    told = sorted(finding.evidence for finding in registry.inactive)
    assert told == [
        "Connector broken did not load (RuntimeError).",
        "Connector missing did not load (ModuleNotFoundError).",
        "Connector odd did not load (it has no descriptor of ours).",
    ]
    for name in ("third_party_sound", "third_party_broken"):
        sys.modules.pop(name, None)


def test_without_anything_installed_the_built_in_connectors_are_all(tmp_path: Path) -> None:
    registry = load(context(tmp_path), [packs])
    assert [descriptor.id for descriptor in registry.descriptors] == ["content_pack"]
    assert registry.inactive == ()
