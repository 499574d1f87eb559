"""The last log lines of each connector, for ``sluice connectors logs``.

This handler shares the filters of the one that writes the log, so both hide the same secrets (invariant I8).
"""

from __future__ import annotations

import logging
import re
import threading
import time
from collections import deque
from dataclasses import dataclass, field
from typing import Final

from connect.internals.status_line import is_in_place

__all__ = ["LoggedLines", "RecentLog"]

_OF_UNIT: Final = re.compile(r"(?P<connector>.+)\|(?:worker|task-\d+)", re.DOTALL)
_OF_A_CONNECTOR: Final = 256 * 1024
_OF_ALL: Final = 16 * 1024 * 1024
_MOST_CHARACTERS: Final = 32 * 1024
_OVERHEAD: Final = 100


@dataclass(frozen=True, slots=True)
class LoggedLines:
    """Log lines, oldest first, and the ``position`` after them."""

    lines: tuple[str, ...]
    position: int


@dataclass(slots=True)
class _Lines:
    numbered: deque[tuple[int, str]] = field(default_factory=deque)
    size: int = 0

    def add(self, number: int, line: str) -> None:
        self.numbered.append((number, line))
        self.size += len(line) + _OVERHEAD

    def drop(self) -> None:
        _, line = self.numbered.popleft()
        self.size -= len(line) + _OVERHEAD


class RecentLog(logging.Handler):
    """Keeps the log lines of connectors and tasks. Any thread may read them.

    Memory is bounded (invariant I9): ``of_connector`` characters for each connector and ``of_all`` in total. Beyond
    that, the connector with the most lines loses the older half of them.
    """

    def __init__(self, of_connector: int = _OF_A_CONNECTOR, of_all: int = _OF_ALL) -> None:
        super().__init__()
        self._of_connector = of_connector
        self._of_all = of_all
        self._kept: dict[str, _Lines] = {}
        self._size = 0
        # Greater than any number before a restart: no worker logs a million lines a second.
        self._number = time.time_ns() // 1000
        self._guard = threading.Lock()

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a record if it belongs to a connector or task."""
        match = _OF_UNIT.fullmatch(str(getattr(record, "context", "")))
        if match is None or is_in_place(record):
            return
        try:
            line = self.format(record)
        except Exception:
            self.handleError(record)
            return
        if len(line) > _MOST_CHARACTERS:
            line = f"{line[:_MOST_CHARACTERS]} ... ({len(line) - _MOST_CHARACTERS} more characters)"
        with self._guard:
            self._keep(match["connector"], line)

    def since(self, connector: str, position: int, most: int) -> LoggedLines:
        """Return the last lines of a connector logged after ``position``, at most ``most``.

        Positions from before this worker's start are older than all its lines. A position that is ahead, because the
        clock was set back, counts as the beginning.
        """
        with self._guard:
            after = position if position <= self._number else 0
            kept = self._kept.get(connector)
            lines = [line for number, line in kept.numbered if number > after] if kept is not None else []
            return LoggedLines(tuple(lines[max(0, len(lines) - most) :]), self._number)

    def _keep(self, connector: str, line: str) -> None:
        self._number += 1
        kept = self._kept.setdefault(connector, _Lines())
        before = kept.size
        kept.add(self._number, line)
        while kept.size > self._of_connector and len(kept.numbered) > 1:
            kept.drop()
        self._size += kept.size - before
        if self._size > self._of_all:
            self._make_room()

    def _make_room(self) -> None:
        name, largest = max(self._kept.items(), key=lambda item: item[1].size)
        before = largest.size
        for _ in range((len(largest.numbered) + 1) // 2):
            largest.drop()
        self._size += largest.size - before
        if not largest.numbered:
            del self._kept[name]
