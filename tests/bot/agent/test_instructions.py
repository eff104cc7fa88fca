"""The fixed words say what matters and hold nothing that ADK would fill in."""

from __future__ import annotations

import pytest

from bot.agent.answers import SHAPES
from bot.agent.instructions import COMMON, CORRECTION, TASKS, instruction
from runtime.domain.projection import Agent


def test_every_agent_has_its_task() -> None:
    assert set(TASKS) == set(SHAPES)


@pytest.mark.parametrize("agent", SHAPES)
def test_an_instruction_is_the_common_part_and_the_task(agent: Agent) -> None:
    first = instruction(agent, corrective=False)
    assert first == f"{COMMON}\n{TASKS[agent]}"
    assert instruction(agent, corrective=True) == f"{first}\n{CORRECTION}"
    assert not {"{", "}"}.intersection(first + CORRECTION)
