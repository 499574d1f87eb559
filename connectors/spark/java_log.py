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
_CAUSE: Final = "|cause|"
_STOP: Final = "LoadStop: {"
"""What Spark says of a job that the sink has ended itself: the load goes on in another way."""
_KILLED: Final = "org.apache.spark.TaskKilledException"
"""What a task says that ends with its job, for whatever reason that has."""
_STAGE: Final = re.compile(r"\bin stage (\d+\.\d+)")
_MOST_CHARACTERS: Final = 8 * 1024
_LONGEST_LINE: Final = 128 * 1024
_MOST_LINES: Final = 200
_PERIOD_SECONDS: Final = 60.0


class JavaLog:
    """Logs lines, at most 200 different ones a minute, and counts the ones it leaves out.

    A line of Spark's own log begins with its level, as configured in ``log4j2.properties``; any other output is logged
    at INFO.
    """

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._lines: set[str] = set()
        self._left_out = 0
        self._stopped = ""
        """The stage of the job that the sink ended last."""

    def read(self, stream: IO[bytes]) -> None:
        """Log all output until it ends."""
        with stream:
            while data := stream.readline(_LONGEST_LINE):
                self.line(data.decode("utf-8", "backslashreplace").rstrip("\r\n"))
        self._tell_left_out()

    def line(self, text: str) -> None:
        """Log one line, unless it tells of the end of a job that the sink has ended itself."""
        if not text.strip() or self._tells_of_stop(text):
            return
        text = text.partition(_CAUSE)[0][:_MOST_CHARACTERS]
        if time.monotonic() - self._began >= _PERIOD_SECONDS:
            self._tell_left_out()
            self._began, self._lines = time.monotonic(), set()
        if text in self._lines or len(self._lines) >= _MOST_LINES:
            self._left_out += 1
            return
        self._lines.add(text)
        if (match := _LINE.fullmatch(text)) is None:
            logger.info("%s", text)
        else:
            # Line ends are written as \r and \n, so that an entry is one line.
            entry = match[2].replace("\\r", "").replace("\\n", "\n").rstrip()
            logger.log(_LEVELS.get(match[1], logging.INFO), "%s", entry)

    def _tells_of_stop(self, text: str) -> bool:
        stage = _STAGE.search(text)
        if _STOP in text:
            self._stopped = stage[1] if stage else self._stopped
            return True
        if _KILLED in text:
            return True
        return stage is not None and stage[1] == self._stopped and text.startswith(("|WARN|", "|ERROR|"))

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
