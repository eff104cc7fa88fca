"""The team: one ADK agent per role and attempt, without tools, peers, memory or history.

Importing this module imports ADK (about a second), so it is imported at the first thought. ADK logs
tracebacks with provider bodies and, by default, writes messages into spans; both are switched off
here (INV-20): its loggers are silent, since everything that matters comes back as a value.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from google.adk.agents import LlmAgent
from google.adk.agents.run_config import RunConfig
from google.adk.apps.app import App
from google.adk.models import BaseLlm
from google.adk.runners import Runner
from google.adk.sessions import BaseSessionService
from google.adk.telemetry import ContentCapturingMode, TelemetryConfig
from google.genai import types

from bot.agent.answers import asked_schema
from bot.agent.guard import Guard
from bot.agent.instructions import instruction
from runtime.domain.projection import Agent

APP: Final = "harmonia"
SILENT: Final = logging.CRITICAL + 1
# Thinking counts against the output; the corrective attempt has room for an answer that was cut.
OUTPUT_TOKENS: Final = 16_384
OUTPUT_TOKENS_CORRECTIVE: Final = 32_768


def quiet() -> None:
    """Silence the libraries' own loggers; they print prompts at DEBUG and bodies on errors."""
    for name in ("google_adk", "google_genai"):
        logger = logging.getLogger(name)
        logger.setLevel(SILENT)
        logger.propagate = False
        for child in list(logger.manager.loggerDict):
            if child.startswith(f"{name}."):
                logging.getLogger(child).setLevel(logging.NOTSET)


def run_config() -> RunConfig:
    """One model call per run, and no content in telemetry whatever the environment says."""
    return RunConfig(
        max_llm_calls=1,
        telemetry=TelemetryConfig(capture_message_content=ContentCapturingMode.NO_CONTENT),
    )


class Team:
    """The runners of all agents, made when first needed."""

    def __init__(self, backend: Callable[[Agent], BaseLlm], sessions: BaseSessionService) -> None:
        """`backend` gives the model of an agent; `sessions` may lose anything at any time."""
        quiet()
        self._backend = backend
        self.sessions = sessions
        self._runners: dict[tuple[Agent, bool], Runner] = {}

    def runner(self, agent: Agent, *, corrective: bool) -> Runner:
        """The runner of one agent, for its first or its corrective attempt."""
        key = (agent, corrective)
        if key not in self._runners:
            self._runners[key] = Runner(
                app=App(name=APP, root_agent=self._agent(agent, corrective=corrective)),
                session_service=self.sessions,
                auto_create_session=True,
            )
        return self._runners[key]

    def _agent(self, agent: Agent, *, corrective: bool) -> LlmAgent:
        return LlmAgent(
            name=agent,
            model=Guard(model=self._backend(agent).model, inner=self._backend(agent)),
            instruction=instruction(agent, corrective=corrective),
            output_schema=asked_schema(agent),
            include_contents="none",
            disallow_transfer_to_parent=True,
            disallow_transfer_to_peers=True,
            generate_content_config=types.GenerateContentConfig(
                temperature=0,
                candidate_count=1,
                max_output_tokens=OUTPUT_TOKENS_CORRECTIVE if corrective else OUTPUT_TOKENS,
            ),
        )
