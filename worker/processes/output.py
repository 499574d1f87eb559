"""The standard output and error of a child: from Python's ``print`` to the stacks of a crash.

Each line becomes a line of the unit's log. Stacks that :mod:`faulthandler` writes become reports: those of a crash tell
why the child ended, those of a child in which no Python has run for a while tell where it is.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from typing import Final

from worker.messages import messages
from worker.messages.messages import Report

__all__ = ["OUTPUT", "Lines", "Output"]

OUTPUT: Final = "output"
"""The name of the logger for what plugins print."""

_INFO: Final = 20
_CHUNK_BYTES: Final = 64 * 1024
_MOST_CHUNKS: Final = 64
_LONGEST_LINE: Final = 8 * 1024
_MOST_STACK_LINES: Final = 1000
_SILENT: Final = re.compile(r"Timeout \((\d+):(\d\d):(\d\d(?:\.\d+)?)\)!$")
_FATAL: Final = "Fatal Python error: "
_OF_STACKS: Final = re.compile("$|  |Thread |Current thread|Extension modules: |Stack |Python runtime")


class Lines:
    """Joins pieces of text and cuts them into lines of bounded length."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> Iterator[str]:
        """Yield the lines that these bytes complete."""
        *whole, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > _LONGEST_LINE:
            whole.append(self._rest)
            self._rest = b""
        for line in whole:
            for start in range(0, max(len(line), 1), _LONGEST_LINE):
                yield line[start : start + _LONGEST_LINE].decode("utf-8", "backslashreplace").rstrip("\r")

    def end(self) -> Iterator[str]:
        """Yield the last line, if it has no line end."""
        if self._rest:
            yield from self.feed(b"\n")


class Output:
    """The worker's end of a child's output. Used by the supervisor's thread alone, and never blocks."""

    def __init__(self, descriptor: int) -> None:
        os.set_blocking(descriptor, False)
        self._descriptor: int | None = descriptor
        self._lines = Lines()
        self._stacks: list[str] = []
        self.crash: str | None = None
        """The text that the interpreter wrote when it crashed, with the stacks of its threads."""

    @property
    def descriptor(self) -> int | None:
        """The descriptor to wait for; ``None`` once nothing more can come."""
        return self._descriptor

    def receive(self) -> Iterator[Report]:
        """Yield the reports of one read."""
        if (data := self._read()) is not None:
            yield from self._take(self._lines.feed(data))

    def drain(self) -> Iterator[Report]:
        """Yield the remaining reports of a child that is gone, and close this end.

        Processes that the child has started may still hold the other end, and write to it forever.
        """
        for _ in range(_MOST_CHUNKS):
            data = self._read()
            if not data:
                break
            yield from self._take(self._lines.feed(data))
        yield from self._take(self._lines.end())
        yield from self._stacks_end()
        self.close()

    def close(self) -> None:
        """Close this end."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _read(self) -> bytes | None:
        if self._descriptor is None:
            return None
        try:
            data = os.read(self._descriptor, _CHUNK_BYTES)
        except BlockingIOError:
            return None
        if not data:
            self.close()
        return data

    def _take(self, lines: Iterator[str]) -> Iterator[Report]:
        for line in lines:
            silent = _SILENT.match(line)
            if silent is not None or line.startswith(_FATAL):
                yield from self._stacks_end()
                self._stacks = [line]
            elif self._stacks and len(self._stacks) < _MOST_STACK_LINES and _OF_STACKS.match(line):
                self._stacks.append(line)
            else:
                yield from self._stacks_end()
                if line.strip():
                    yield messages.LogRecord(OUTPUT, _INFO, time.time(), line)

    def _stacks_end(self) -> Iterator[Report]:
        """Keep a crash, or report a silence, once all of its stacks are read: when another line follows."""
        if not self._stacks:
            return
        first, *rest = self._stacks
        self._stacks = []
        if (silent := _SILENT.match(first)) is None:
            self.crash = "\n".join([first, *rest]).rstrip()
        else:
            hours, minutes, seconds = silent.groups()
            lasted = int(hours) * 3600 + int(minutes) * 60 + float(seconds)
            yield messages.Silent(lasted, "\n".join(rest).rstrip())
