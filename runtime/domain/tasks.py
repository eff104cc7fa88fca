"""What each agent is asked for, as fixed lines of the compiler: never made from data."""

from __future__ import annotations

from typing import Final

from runtime.domain.projection import Agent

TASKS: Final[dict[Agent, tuple[str, ...]]] = {
    "reader": (
        "Return notes: the quotes of this window of the source that carry facts.",
        "A quote is copied exactly; its start is the header's start plus its place in the block.",
        "A sentence cut by the border is not quoted: the neighbouring window has it whole.",
    ),
    "analyst": (
        "Return one analysis made of the quotes in the notes, unchanged, most telling first.",
        "What the omissions name was not read: claim nothing about it.",
    ),
    "strategist": (
        "Return one strategy: headline, audience, angle, and the quotes to build on, by their IDs.",
        "Keep to the operator's brief, to the reasons of decisions, and to the policy.",
    ),
    "writer": (
        "Return one draft that carries out the current strategy.",
        "Each section names the quotes that it rests on and says nothing beyond them.",
        "Use none of the policy's blocked terms.",
    ),
    "reviewer": (
        "Return one review of the current draft against the strategy, the quotes and the policy.",
        "It informs a person; it decides nothing.",
    ),
    "chat": (
        "Return one answer to the person's question, from what is shown here alone.",
        "Where it is not shown, say so; a bot command may be named, none can be run.",
    ),
}
