"""Stacks: which line of a plugin they show, and what to do about a child that keeps writing them.

Stacks come from the running process or from the text of :mod:`faulthandler`. A child in which C code lets no thread run
Python writes its stacks again and again while that lasts. The first time does not count: the machine may have been
suspended, and the child with it.
"""

from __future__ import annotations

import os
import re
import time
import traceback
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from worker.messages.hangs import Hanging, Silent, Watched, hang_trace
from worker.messages.messages import Failed

__all__ = ["Silence", "hang_place", "hang_places", "last_words", "line_of_plugin"]

_ROOT: Final = Path(__file__).parents[2]
_OF_THE_RUNTIME: Final = (f"{_ROOT / 'worker'}/", f"{_ROOT / 'connect'}/")
_OF_PYTHON: Final = f"{Path(os.__file__).parent}/"
_PACKAGES: Final = f"{_OF_PYTHON}site-packages/"
_FRAME: Final = re.compile(r'  File "(?P<file>.*)", line (?P<line>\d+|\?\?\?) in (?P<name>.*)$')
_UNKNOWN: Final = "an unknown line"

_GROWTH = 2


def line_of_plugin(stack: Sequence[traceback.FrameSummary]) -> str:
    """Return the line of the plugin that a call has reached; the most recent frame comes last."""
    own = next((frame.filename for frame in stack if _is_of_plugin(frame.filename)), None)
    shown = [frame for frame in stack if frame.filename == own] or list(stack)
    return f"{Path(shown[-1].filename).name}:{shown[-1].lineno}" if shown else _UNKNOWN


def last_words(sentence: str, stacks: str | None) -> str:
    """Complete the sentence about an ended process: if it crashed, with the method, the line and the stacks."""
    if stacks is None:
        return f"{sentence}."
    method, line = _place(stacks.split("Current thread 0x")[1:])
    where = f", in {method}: {line}" if method else ""
    return f"{sentence}{where}\n\n{stacks}"


def hang_place(stacks: str) -> tuple[str, str]:
    """Return the method and line of the plugin in the main thread, whose stack is the last that faulthandler writes."""
    return _place(stacks.split("Thread 0x")[-1:])


def hang_places(stacks: str) -> dict[int, tuple[str, str]]:
    """Return the method and line of each thread in which code of a plugin runs, by id, without threads that
    wait here.
    """
    found = {}
    for thread in stacks.split("Thread 0x")[1:]:
        files = [frame["file"] for line in thread.splitlines() if (frame := _FRAME.match(line)) is not None]
        own = [file for file in files if file.startswith(_OF_THE_RUNTIME) or _is_of_plugin(file)]
        if own and _is_of_plugin(own[0]):
            found[int(thread.split(maxsplit=1)[0], 16)] = _place([thread])
    return found


def _place(threads: Sequence[str]) -> tuple[str, str]:
    for thread in threads:
        frames = [frame for line in thread.splitlines() if (frame := _FRAME.match(line)) is not None]
        if (called := _called(frames)) is not None:
            inner = next(frame for frame in frames if frame["file"] == called["file"])
            return called["name"], f"{Path(inner['file']).name}:{inner['line']}"
    return "", _UNKNOWN


def _called(frames: Iterable[re.Match[str]]) -> re.Match[str] | None:
    """Return the frame of the plugin's method that the runtime has called; the most recent frame comes first."""
    called = None
    for frame in frames:
        if _is_of_plugin(frame["file"]):
            called = frame
        elif called is not None and frame["file"].startswith(_OF_THE_RUNTIME):
            break
    return called


def _is_of_plugin(file: str) -> bool:
    of_python = file.startswith(_OF_PYTHON) and not file.startswith(_PACKAGES)
    return not (file.startswith((*_OF_THE_RUNTIME, "<")) or of_python)


class Silence:
    """How long a child has run no Python, and what to do about it."""

    def __init__(self) -> None:
        self._limits = Watched(0, 0)
        self._seconds = 0.0
        self._next_report = 0.0

    def watched(self, limits: Watched) -> None:
        """Set the limits of the child."""
        self._limits = limits

    def heard(self, silent: Silent) -> Hanging | Failed | None:
        """Take in a further silence. Return what to report; the child has to be killed if that is a failure."""
        self._seconds += silent.seconds
        if self._seconds < _GROWTH * silent.seconds:
            return None
        method, line = hang_place(silent.stacks)
        trace = f"No Python runs in this process; its stacks are:\n{silent.stacks}"
        hanging = Hanging(method or "C code", self._seconds, time.time() - self._seconds, line, trace)
        if self._limits.timeout and self._seconds >= self._limits.timeout:
            return Failed(hang_trace(hanging))
        if self._limits.warning and self._seconds >= max(self._limits.warning, self._next_report):
            self._next_report = _GROWTH * self._seconds
            return hanging
        return None

    def over(self) -> bool:
        """Note that Python runs again. Return whether the silence was reported."""
        was_reported = self._next_report > 0
        self._seconds = self._next_report = 0.0
        return was_reported
