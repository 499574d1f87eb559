"""The last lines that a worker has logged for each connector, for ``sluice connectors logs``.

The handler stands beside the one that writes the log, so that what is hidden there is hidden here (invariant I8).
"""

from __future__ import annotations

import logging
import re
import threading
import time
from collections import deque
from dataclasses import dataclass, field
from typing import Final

__all__ = ["LoggedLines", "RecentLog"]

_OF_UNIT: Final = re.compile(r"(?P<connector>.+)\|(?:worker|task-\d+)", re.DOTALL)
_OF_A_CONNECTOR: Final = 256 * 1024
_OF_ALL: Final = 16 * 1024 * 1024
_LONGEST: Final = 32 * 1024
_OVERHEAD: Final = 100


@dataclass(frozen=True, slots=True)
class LoggedLines:
    """Some of the lines, oldest first, and the ``position`` after them."""

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
    """Keeps what is logged for connectors and tasks. May be read by any thread.

    Memory is bounded (invariant I9): ``of_connector`` characters for each connector, ``of_all`` for all together,
    beyond which the connector with the most lines loses the older half of them.
    """

    def __init__(self, of_connector: int = _OF_A_CONNECTOR, of_all: int = _OF_ALL) -> None:
        super().__init__()
        self._of_connector = of_connector
        self._of_all = of_all
        self._kept: dict[str, _Lines] = {}
        self._size = 0
        # Greater than any number of an earlier run: no worker logs a million lines a second.
        self._number = time.time_ns() // 1000
        self._guard = threading.Lock()

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a record, if it is of a connector or task."""
        match = _OF_UNIT.fullmatch(str(getattr(record, "context", "")))
        if match is None:
            return
        try:
            line = self.format(record)
        except Exception:
            self.handleError(record)
            return
        if len(line) > _LONGEST:
            line = f"{line[:_LONGEST]} ... ({len(line) - _LONGEST} more characters)"
        with self._guard:
            self._keep(match["connector"], line)

    def since(self, connector: str, position: int, most: int) -> LoggedLines:
        """The last lines of a connector, ``most`` of them, that were logged after ``position``.

        All lines come after a position of before the last start of this worker. One that is not reached yet, because
        the clock was set back meanwhile, counts as the beginning.
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
