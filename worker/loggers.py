"""The levels of Python's loggers, under Kafka Connect's names for levels."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from typing import Any, Final

from connect.errors import NotFoundError

__all__ = ["LEVEL_NAMES", "ROOT", "LoggerLevels", "level_name", "level_named", "set_level"]

logger = logging.getLogger(__name__)
ROOT: Final = "root"

_TRACE: Final = 5
_OFF: Final = 60
_LEVELS: Final = {
    "TRACE": _TRACE,
    "DEBUG": logging.DEBUG,
    "INFO": logging.INFO,
    "WARN": logging.WARNING,
    "ERROR": logging.ERROR,
    "FATAL": logging.CRITICAL,
    "OFF": _OFF,
}

_QUIET: Final = {
    "kafka": logging.CRITICAL,
    "opentelemetry": logging.CRITICAL,
    "py4j": logging.WARNING,
    "sqlalchemy": logging.WARNING,
    "werkzeug": logging.WARNING,
}
"""Libraries that log details such as every statement at INFO, and the level from which on they are shown."""

LEVEL_NAMES: Final = tuple(_LEVELS)
"""Kafka Connect's names of the levels."""


def level_named(name: str) -> int:
    """Return the level that Kafka Connect calls ``name``, in any case; raises ``NotFoundError`` if unknown."""
    try:
        return _LEVELS[name.upper()]
    except KeyError:
        raise NotFoundError(f"invalid log level '{name}'.") from None


def set_level(name: str, level: int) -> list[str]:
    """Set the level of the logger ``name`` and its children; return the names of those that changed.

    A library's logger that is quieter by default stays so unless it is named: setting the root back to INFO should not
    turn on every message.
    """
    logging.getLogger(name)
    levels = {below: max(level, _quiet(below, name)) for below in _at_and_below(name)}
    changed = {below: new for below, new in levels.items() if logging.getLogger(below).getEffectiveLevel() != new}
    for below, new in changed.items():
        logging.getLogger(below).setLevel(new)
    return list(changed)


class LoggerLevels:
    """The levels of this process's loggers, and when they were changed. Used by one thread.

    ``tell_children`` sets a logger's level in the processes of connectors and tasks.
    """

    def __init__(self, tell_children: Callable[[str, int], None]) -> None:
        self._tell_children = tell_children
        self._modified: dict[str, int] = {}

    def all(self) -> dict[str, dict[str, Any]]:
        """Return the levels of all loggers, by name."""
        return {name: self._describe(name) for name in sorted(_names())}

    def one(self, name: str) -> dict[str, Any]:
        """Return the level of one logger. Raises :class:`~connect.errors.NotFoundError` if it does not exist."""
        if name not in _names():
            raise NotFoundError(f"Logger {name} not found.")
        return self._describe(name)

    def set(self, name: str, level: int) -> list[str]:
        """Set the level of a logger and its children, in child processes too; return the names that changed."""
        changed = set_level(name, level)
        self._modified |= dict.fromkeys(changed, time.time_ns() // 1_000_000)
        self._tell_children(name, level)
        return changed

    def set_for_cluster(self, name: str, level: str) -> None:
        """Set a level from the cluster's config topic; an unknown level is skipped with a warning."""
        try:
            self.set(name, level_named(level))
        except NotFoundError as error:
            logger.warning("The log level that the cluster has set for %s is ignored: %s", name, error)

    def _describe(self, name: str) -> dict[str, Any]:
        level = logging.getLogger(name).getEffectiveLevel()
        return {"level": level_name(level), "last_modified": self._modified.get(name)}


def _names() -> set[str]:
    known = logging.root.manager.loggerDict.items()
    return {ROOT, *(name for name, logger in list(known) if isinstance(logger, logging.Logger))}


def _at_and_below(name: str) -> Iterator[str]:
    below = "" if name == ROOT else f"{name}."
    return (other for other in sorted(_names()) if other == name or other.startswith(below))


def _quiet(name: str, asked: str) -> int:
    """Return the level below which a library's logger stays quiet unless it is named."""
    library = name.partition(".")[0]
    return logging.NOTSET if asked.partition(".")[0] == library else _QUIET.get(library, logging.NOTSET)


def level_name(level: int) -> str:
    """Return Kafka Connect's name of a level."""
    return next((name for name, least in _LEVELS.items() if level <= least), "OFF")
