"""Logs the output of Spark's Java process, with the levels in it."""

from __future__ import annotations

import logging
import os
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Final

__all__ = ["JavaLog", "java_output"]

logger = logging.getLogger("spark")
_LINE: Final = re.compile(r"\|(FATAL|ERROR|WARN|INFO|DEBUG|TRACE)\| (.*)", re.DOTALL)
_LEVELS: Final = {"FATAL": logging.CRITICAL, "ERROR": logging.ERROR, "WARN": logging.WARNING, "DEBUG": logging.DEBUG}
_LONGEST: Final = 8 * 1024
_MOST: Final = 200
_PERIOD: Final = 60.0


class JavaLog:
    """Logs lines, at most 200 different ones a minute, and counts the ones it leaves out.

    A line of Spark's own log begins with its level, as configured in ``log4j2.properties``; any other output is logged
    at INFO.
    """

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._lines: set[str] = set()
        self._left_out = 0

    def read(self, stream: IO[bytes]) -> None:
        """Log all output until it ends."""
        with stream:
            while data := stream.readline(_LONGEST):
                self.line(data.decode("utf-8", "backslashreplace").rstrip("\r\n"))
        self._tell_left_out()

    def line(self, text: str) -> None:
        """Log one line."""
        if not text.strip():
            return
        if time.monotonic() - self._began >= _PERIOD:
            self._tell_left_out()
            self._began, self._lines = time.monotonic(), set()
        if text in self._lines or len(self._lines) >= _MOST:
            self._left_out += 1
            return
        self._lines.add(text)
        if (match := _LINE.fullmatch(text)) is None:
            logger.info("%s", text)
        else:
            # Line ends are written as \r and \n, so that an entry is one line.
            entry = match[2].replace("\\r", "").replace("\\n", "\n").rstrip()
            logger.log(_LEVELS.get(match[1], logging.INFO), "%s", entry)

    def _tell_left_out(self) -> None:
        if self._left_out:
            logger.warning(
                "%d more lines from Spark were left out: repeated, or beyond the limit per minute.",
                self._left_out,
            )
            self._left_out = 0


@contextmanager
def java_output() -> Iterator[int]:
    """Yield a descriptor for a process to write to; its lines are logged until the last writer closes it."""
    reading, writing = os.pipe()
    stream = os.fdopen(reading, "rb")
    threading.Thread(target=JavaLog().read, args=(stream,), name="spark-log", daemon=True).start()
    try:
        yield writing
    finally:
        os.close(writing)
