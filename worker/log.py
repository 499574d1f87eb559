"""The worker's log: one line per record, with the connector or task it belongs to."""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

from connect.internals.status_line import TerminalHandler, is_in_place, stderr_handler
from worker.loggers import level_name
from worker.recent_log import RecentLog
from worker.security.redaction import Redaction

__all__ = ["configure_logging", "hide_in_log", "log_as_json"]

_COLOURS: Final = ((logging.ERROR, "31"), (logging.WARNING, "33"))
_FORMAT: Final = "[%(asctime)s] %(levelname)s [%(place)s%(context)s] %(message)s (%(name)s)"

_CONTROLS: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
"""All but the tab and the end of a line."""


class _Context(logging.Filter):
    """Adds the context to the worker's own log records; records from child processes already have one.

    ``place`` is what the worker is a part of, such as a flow of a mirror.
    """

    def __init__(self, place: str) -> None:
        super().__init__()
        self._place = f"{place} " if place else ""

    def filter(self, record: logging.LogRecord) -> bool:
        record.place = self._place
        if not hasattr(record, "context"):
            record.context = "worker"
        return True


class _Lines(logging.Formatter):
    """Formats log lines. Control characters become codes, which cannot move the cursor or make the log binary.

    A line that stands at the foot of a terminal is its message alone.
    """

    def __init__(self) -> None:
        super().__init__(_FORMAT)

    def format(self, record: logging.LogRecord) -> str:
        text = record.getMessage() if is_in_place(record) else super().format(record)
        return _CONTROLS.sub(lambda found: f"\\x{ord(found[0]):02x}", text)


class _Coloured(_Lines):
    """Highlights warnings and errors on a terminal."""

    def format(self, record: logging.LogRecord) -> str:
        text = super().format(record)
        colour = next((code for level, code in _COLOURS if record.levelno >= level), None)
        return text if colour is None else f"\x1b[{colour}m{text}\x1b[0m"


class _Hiding(logging.Formatter):
    """Formats records with another formatter and hides secrets."""

    def __init__(self, formatter: logging.Formatter, redaction: Redaction) -> None:
        super().__init__()
        self._formatter = formatter
        self._redaction = redaction

    def format(self, record: logging.LogRecord) -> str:
        return self._redaction.hide(self._formatter.format(record))


class _JsonLines(logging.Formatter):
    """Formats records as one JSON object per line. Secrets are hidden first: JSON may escape their characters."""

    def __init__(self, hide: Callable[[str], str]) -> None:
        super().__init__()
        self._hide = hide

    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        connector, task = _unit(str(getattr(record, "context", "")))
        exception = self.formatException(record.exc_info) if record.exc_info else record.exc_text
        line = {
            "time": time,
            "level": level_name(record.levelno),
            "logger": record.name,
            "flow": str(getattr(record, "place", "")).strip() or None,
            "connector": connector,
            "task": task,
            "message": self._hide(record.getMessage()),
            "exception": None if exception is None else self._hide(exception),
        }
        return json.dumps({key: value for key, value in line.items() if value is not None}, ensure_ascii=False)


def _unit(context: str) -> tuple[str | None, int | None]:
    """Return the connector that a context names, and the task number."""
    connector, mark, part = context.rpartition("|")
    if not mark:
        return None, None
    number = part.removeprefix("task-")
    return connector, int(number) if part.startswith("task-") and number.isdecimal() else None


def hide_in_log(redaction: Redaction) -> None:
    """Hide the current and future secrets of ``redaction`` in the log (invariant I8)."""
    for handler in logging.getLogger().handlers:
        handler.setFormatter(_Hiding(handler.formatter or logging.Formatter(), redaction))


def log_as_json(redaction: Redaction) -> None:
    """Write the log as JSON from now on, with the secrets of ``redaction`` hidden; lines kept in memory stay text."""
    for handler in logging.getLogger().handlers:
        if not isinstance(handler, RecentLog):
            handler.setFormatter(_JsonLines(redaction.hide))
        if isinstance(handler, TerminalHandler):
            handler.stands = False


def configure_logging(level: int = logging.INFO, place: str = "") -> RecentLog:
    """Write the log to standard error, in colours if that is a terminal and ``NO_COLOR`` is not set.

    Return the log of connectors that is kept in memory. ``place`` is shown before each context if several workers
    write to one log.
    """
    handler = stderr_handler()
    in_colours = handler.stream.isatty() and not os.environ.get("NO_COLOR")
    handler.setFormatter(_Coloured() if in_colours else _Lines())
    handler.addFilter(_Context(place))
    root = logging.getLogger()
    recent = RecentLog()
    recent.addFilter(_Context(place))
    recent.setFormatter(_Lines())
    root.handlers[:] = [handler, recent]
    root.setLevel(level)
    # A line for each request is for a proxy in front to log.
    logging.getLogger("werkzeug").setLevel(logging.WARNING)
    return recent
