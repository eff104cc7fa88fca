"""Misbehaviour laid over the Bot API on demand.

    drop_before      the connection closes, nothing was applied
    drop_reply       applied, then the connection closes without an answer
    fail_before      5xx (`code`, default 500), nothing was applied
    too_many         429 with `retry_after`, nothing was applied
    forbidden        403 with `text`, nothing was applied
    bad_request      400 with `text`, nothing was applied
    delay_before     waits `seconds`, then applies
    delay_reply      applies, then waits `seconds` before the answer

Keeps: a rule fires for its method (any letter case, `*` for all) and chat (or any), at most `times`
times, the oldest rule first, one rule a call; with no rules the server behaves.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, get_args

from bot.sandbox.errors import ControlRefusal

FaultKind = Literal[
    "drop_before",
    "drop_reply",
    "fail_before",
    "too_many",
    "forbidden",
    "bad_request",
    "delay_before",
    "delay_reply",
]
SERVER_ERRORS = {
    500: "Internal Server Error",
    502: "Bad Gateway",
    503: "Service Unavailable",
    504: "Gateway Timeout",
}


@dataclass(frozen=True)
class Fault:
    """One rule."""

    kind: FaultKind
    method: str = "*"
    chat_id: int | None = None
    times: int = 1
    code: int = 500
    retry_after: int = 1
    seconds: float = 1.0
    text: str = ""

    def fits(self, method: str, chat_id: int | None) -> bool:
        """Whether the rule is meant for this call."""
        named = self.method == "*" or self.method.lower() == method.lower()
        return named and (self.chat_id is None or self.chat_id == chat_id)


class Faults:
    """The rules that are in force."""

    def __init__(self) -> None:
        self._rules: list[Fault] = []

    @property
    def rules(self) -> tuple[Fault, ...]:
        """What is still to come."""
        return tuple(self._rules)

    def add(self, fault: Fault) -> None:
        """Lay a rule over the next calls."""
        if fault.kind not in get_args(FaultKind):
            raise ControlRefusal(kind=fault.kind, known=", ".join(get_args(FaultKind)))
        if fault.times < 1:
            raise ControlRefusal(times=fault.times, least=1)
        self._rules.append(fault)

    def clear(self) -> None:
        """Behave again."""
        self._rules = []

    def take(self, method: str, chat_id: int | None) -> Fault | None:
        """The rule for this call, used up by one."""
        for index, rule in enumerate(self._rules):
            if rule.fits(method, chat_id):
                if rule.times == 1:
                    del self._rules[index]
                else:
                    self._rules[index] = replace(rule, times=rule.times - 1)
                return rule
        return None
