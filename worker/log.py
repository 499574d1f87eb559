"""The worker's log: one line a record, with the connector or task it belongs to."""

from __future__ import annotations

import logging
import os
from typing import Final

from worker.recent_log import RecentLog
from worker.security.redaction import Redaction

__all__ = ["configure_logging", "hide_in_log"]

_COLOURS: Final = ((logging.ERROR, "31"), (logging.WARNING, "33"))
_FORMAT: Final = "[%(asctime)s] %(levelname)s [%(context)s] %(message)s (%(name)s)"


class _Context(logging.Filter):
    """Gives log records of the worker itself their context; those of children have one already."""

    def filter(self, record: logging.LogRecord) -> bool:
        if not hasattr(record, "context"):
            record.context = "worker"
        return True


class _Coloured(logging.Formatter):
    """Shows at a glance, on a terminal, which lines are warnings and errors."""

    def format(self, record: logging.LogRecord) -> str:
        text = super().format(record)
        colour = next((code for level, code in _COLOURS if record.levelno >= level), None)
        return text if colour is None else f"\x1b[{colour}m{text}\x1b[0m"


class _Hiding(logging.Formatter):
    """Formats records as another formatter does, with secrets hidden."""

    def __init__(self, formatter: logging.Formatter, redaction: Redaction) -> None:
        super().__init__()
        self._formatter = formatter
        self._redaction = redaction

    def format(self, record: logging.LogRecord) -> str:
        return self._redaction.hide(self._formatter.format(record))


def hide_in_log(redaction: Redaction) -> None:
    """Hide the secrets of ``redaction``, present and future ones, in the log (invariant I8)."""
    for handler in logging.getLogger().handlers:
        handler.setFormatter(_Hiding(handler.formatter or logging.Formatter(), redaction))


def configure_logging(level: int = logging.INFO) -> RecentLog:
    """Write the log to standard error, in colours if that is a terminal and ``NO_COLOR`` is not set.

    What is logged for connectors is kept in memory, too, and returned.
    """
    handler = logging.StreamHandler()
    in_colours = handler.stream.isatty() and not os.environ.get("NO_COLOR")
    handler.setFormatter(_Coloured(_FORMAT) if in_colours else logging.Formatter(_FORMAT))
    handler.addFilter(_Context())
    root = logging.getLogger()
    recent = RecentLog()
    recent.setFormatter(logging.Formatter(_FORMAT))
    root.handlers[:] = [handler, recent]
    root.setLevel(level)
    # A line for each request is for a proxy in front to log.
    logging.getLogger("werkzeug").setLevel(logging.WARNING)
    return recent
