"""The log of a JVM: each line goes to the connector or task that Kafka Connect's runtime wrote it for."""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Callable
from typing import Final, TypeAlias

import orjson

from worker.messages.messages import LogRecord
from worker.unit import Unit

__all__ = ["JavaLog", "parse_line"]

_CONTEXT: Final = re.compile(r"\[(?P<connector>.+)\|(worker|task-(?P<task>\d+))(\|\w+)?\] ?", re.DOTALL)
_LEVELS: Final = {
    "TRACE": 5,
    "DEBUG": logging.DEBUG,
    "INFO": logging.INFO,
    "WARN": logging.WARNING,
    "ERROR": logging.ERROR,
    "FATAL": logging.CRITICAL,
}
_PRINTED: Final = "java"

Tell: TypeAlias = Callable[[LogRecord], None]


def parse_line(line: str) -> tuple[Unit | None, LogRecord] | None:
    """Return the unit and the record of a line of the log; ``None`` if something else was printed."""
    try:
        said = orjson.loads(line)
        record = LogRecord(said["logger"], _LEVELS.get(said["level"], logging.INFO), said["at"] / 1000, said["text"])
        found = _CONTEXT.fullmatch(said["context"])
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return None
    if found is None:
        return None, record
    connector, task = found["connector"], found["task"]
    return Unit(connector) if task is None else Unit(connector, int(task)), record


class JavaLog:
    """Receives what a JVM prints. Units join and leave from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._units: dict[Unit, Tell] = {}

    def join(self, unit: Unit, tell: Tell) -> None:
        """Send the lines of a unit to ``tell`` from now on."""
        with self._lock:
            self._units[unit] = tell

    def leave(self, unit: Unit) -> None:
        """Send the lines of a unit to the log of the process."""
        with self._lock:
            self._units.pop(unit, None)

    def write(self, line: str) -> None:
        """Take in a line of standard output."""
        parsed = parse_line(line)
        if parsed is None:
            self.plain(line)
            return
        unit, record = parsed
        with self._lock:
            tell = None if unit is None else self._units.get(unit)
        if tell is not None:
            tell(record)
            return
        made = logging.makeLogRecord(
            {"name": record.logger, "levelno": record.level, "msg": record.text, "created": record.created}
        )
        logging.getLogger().handle(made)

    def plain(self, line: str) -> None:
        """Take in a line that is none of the log: a plugin, or the JVM itself, has printed it."""
        if text := line.rstrip():
            logging.getLogger(_PRINTED).info("%s", text)
