"""The registry: connectors by ID and by effect type, from code and from entry points.

A third party adds a connector with an entry point of the group `harmonia.connectors`, a callable
that takes a `Context`. A connector that breaks the contract of its descriptor, or does not load, is
inactive: it carries nothing, the bot goes on, and whoever asks for it is told why. No effect type
has two connectors; the first one keeps it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Final

from runtime.domain.effect import EFFECT_TYPE, Descriptor, Finding
from runtime.ports import Clock, Connector, Secrets

GROUP: Final = "harmonia.connectors"
METHOD: Final = "registry"
CALLS: Final = ("validate_connection", "prepare", "execute", "verify", "reconcile")


@dataclass(frozen=True, slots=True)
class Context:
    """What a connector is made from. Its files stand below `data_dir`, under its own name."""

    clock: Clock
    secrets: Secrets
    data_dir: Path


Factory = Callable[[Context], Connector]


class Registry:
    """Which connector carries what. Unchanging once made."""

    def __init__(self, connectors: Iterable[Connector], inactive: Iterable[Finding] = ()) -> None:
        """Take each connector that keeps the contract, in order; `inactive` failed to load."""
        self._by_id: dict[str, Connector] = {}
        self._by_effect: dict[str, Connector] = {}
        self._why_not: dict[str, str] = {}
        self._inactive = list(inactive)
        for connector in connectors:
            self._add(connector)

    @property
    def descriptors(self) -> tuple[Descriptor, ...]:
        """Of the active connectors, in order."""
        return tuple(connector.descriptor for connector in self._by_id.values())

    @property
    def inactive(self) -> tuple[Finding, ...]:
        """Why each inactive connector is inactive."""
        return tuple(self._inactive)

    def by_id(self, id_: str) -> Connector | Finding:
        """The active connector of this ID, or why there is none."""
        connector = self._by_id.get(id_)
        return connector or _none(f"No connector {id_} is active here.")

    def for_effect(self, effect: str) -> Connector | Finding:
        """The active connector of this effect type, or why there is none."""
        connector = self._by_effect.get(effect)
        if connector is not None:
            return connector
        return _none(self._why_not.get(effect, f"No connector for {effect} is set up here."))

    def _add(self, connector: Connector) -> None:
        descriptor = connector.descriptor
        flaws = [*contract_flaws(descriptor), *_call_flaws(connector)]
        if descriptor.id in self._by_id:
            flaws.append("its ID is taken")
        taken = sorted(effect for effect in set(descriptor.effects) if effect in self._by_effect)
        flaws.extend(f"{effect} is carried by another connector" for effect in taken)
        if flaws:
            reason = f"Connector {descriptor.id} is inactive: {'; '.join(flaws)}."[:2_000]
            self._inactive.append(_none(reason))
            for effect in descriptor.effects:
                self._why_not.setdefault(effect, reason)
            return
        self._by_id[descriptor.id] = connector
        self._by_effect.update(dict.fromkeys(descriptor.effects, connector))


def contract_flaws(descriptor: Descriptor) -> list[str]:
    """What keeps a connector from being active, by its descriptor alone."""
    flaws = [
        f"{name} are listed twice"
        for name in ("capabilities", "effects", "required_scopes")
        if len(set(getattr(descriptor, name))) != len(getattr(descriptor, name))
    ]
    flaws.extend(
        f"{effect} is no effect type"
        for effect in descriptor.effects
        if not EFFECT_TYPE.fullmatch(effect)
    )
    if descriptor.independent_verification and "verify" not in descriptor.capabilities:
        flaws.append("it promises independent verification without the capability to verify")
    if descriptor.undo == "delete" and "delete" not in descriptor.capabilities:
        flaws.append("it promises to undo by deleting without the capability to delete")
    return flaws


def load(context: Context, built_in: Sequence[Factory]) -> Registry:
    """The registry of this installation: what is built in, then what is installed beside it."""
    connectors = [factory(context) for factory in built_in]
    inactive: list[Finding] = []
    for entry in _installed():
        made = _made(entry, context)
        if isinstance(made, Finding):
            inactive.append(made)
        else:
            connectors.append(made)
    return Registry(connectors, inactive)


def _installed() -> Iterator[EntryPoint]:
    """In the order of their names: which of two connectors keeps an effect is no accident."""
    yield from sorted(entry_points(group=GROUP), key=lambda entry: (entry.name, entry.value))


def _made(entry: EntryPoint, context: Context) -> Connector | Finding:
    try:
        made = entry.load()(context)
        described = made.descriptor
    except Exception as error:  # noqa: BLE001 - foreign code; the bot goes on without it
        return _none(f"Connector {entry.name} did not load ({type(error).__name__}).")
    if not isinstance(described, Descriptor):
        return _none(f"Connector {entry.name} did not load (it has no descriptor of ours).")
    return made  # type: ignore[no-any-return]  # its calls are checked when it is added


def _call_flaws(connector: Connector) -> list[str]:
    """The five calls exist and can be awaited."""
    return [
        f"it has no awaitable {name}"
        for name in CALLS
        if not inspect.iscoroutinefunction(getattr(connector, name, None))
    ]


def _none(reason: str) -> Finding:
    return Finding(ok=False, method=METHOD, evidence=reason)
