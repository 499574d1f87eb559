"""The line at the foot of a terminal that says how far long work is, where each takes the place of the one before."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, TextIO

__all__ = ["IN_PLACE", "TerminalHandler", "bar", "is_in_place", "on_terminal", "stderr_handler", "time_left"]

_ATTRIBUTE: Final = "in_place"
IN_PLACE: Final[Mapping[str, object]] = MappingProxyType({_ATTRIBUTE: True})
"""The ``extra`` of log records that take the place of the one before; an empty one leaves none. Only for terminals."""

_BAR_CHARACTERS: Final = 20
_STANDS_SECONDS: Final = 6.0
"""A line that was not renewed for so long is not written again below others: whoever wrote it may be gone."""
_COLUMNS: Final = 80
_ERASE: Final = "\r\x1b[K"
_STANDARD_ERROR: Final = 2
_SPANS: Final = ((3600, "h"), (60, "min"), (1, "s"))


def on_terminal() -> bool:
    """Return whether standard error is a terminal, also in a process that sends what Python prints elsewhere."""
    return os.isatty(_STANDARD_ERROR)


def bar(share: float) -> str:
    """Return a bar for a share from 0 to 1."""
    done = int(share * _BAR_CHARACTERS)
    return f"[{'#' * done}{'.' * (_BAR_CHARACTERS - done)}]"


def time_left(seconds: float) -> str:
    """Return how long something will take: ``about 12 min to go``."""
    length, unit = next(((length, unit) for length, unit in _SPANS if seconds >= 2 * length), _SPANS[-1])
    return f"about {seconds / length:,.0f} {unit} to go"


def is_in_place(record: logging.LogRecord) -> bool:
    """Return whether a record takes the place of the one before."""
    return bool(getattr(record, _ATTRIBUTE, False))


def stderr_handler() -> logging.StreamHandler[TextIO]:
    """Create the handler for the standard error of this process."""
    handler: logging.StreamHandler[TextIO] = logging.StreamHandler()
    return TerminalHandler() if handler.stream.isatty() else handler


class TerminalHandler(logging.StreamHandler[TextIO]):
    """Writes log lines to a terminal, and keeps the line that stands in place below them.

    ``stands`` is whether there is such a line at all; otherwise its records are left out.
    """

    def __init__(self) -> None:
        super().__init__()
        self.stands = True
        self._line = ""
        self._renewed = 0.0

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record above the line that stands, or in its place."""
        try:
            if not is_in_place(record):
                self._write(f"{self.format(record)}{self.terminator}", self._standing())
            elif self.stands:
                self._renewed = time.monotonic()
                self._write("", self.format(record)[: self._columns() - 1])
        except Exception:
            self.handleError(record)

    def _standing(self) -> str:
        return self._line if time.monotonic() - self._renewed < _STANDS_SECONDS else ""

    def _write(self, above: str, line: str) -> None:
        self.stream.write(f"{_ERASE if self._line else ''}{above}{line}")
        self._line = line
        self.flush()

    def _columns(self) -> int:
        try:
            return os.get_terminal_size(self.stream.fileno()).columns or _COLUMNS
        except OSError:
            return _COLUMNS
