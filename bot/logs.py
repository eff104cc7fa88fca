"""Structured logs: one JSON line per event, names and fields only.

Keeps INV-20: no logger in this project is given a prompt, a draft, a credential or a provider's
body, and the libraries' own loggers, which may quote requests, are kept to errors.
"""

from __future__ import annotations

import logging
import sys
from typing import Final

import structlog

CHATTY: Final = ("httpx", "httpcore", "telegram", "google", "google_adk", "google_genai", "uvicorn")


def configure(level: str) -> None:
    """Send our events to standard error at `level` and above."""
    number = logging.getLevelNamesMapping()[level.upper()]
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr, format="%(name)s %(message)s")
    for name in CHATTY:
        logging.getLogger(name).setLevel(logging.ERROR)
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.JSONRenderer(),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
