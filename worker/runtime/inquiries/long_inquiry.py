"""Tells the worker which call of a plugin a long inquiry waits for: else nobody learns why it is given up."""

from __future__ import annotations

import faulthandler
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from worker.messages import messages
from worker.processes.stacks import hang_place
from worker.runtime.java.calls import called_place
from worker.runtime.java.jvm import running_jvm

__all__ = ["telling_where"]

_LONG_SECONDS: Final = 60.0
"""Well before the worker gives an inquiry up."""
_UNNAMED: Final = "It"
"""What has not returned if no thread is in a plugin."""


@contextmanager
def telling_where(tell: Callable[[messages.Hanging], None], seconds: float = _LONG_SECONDS) -> Iterator[None]:
    """Tell where the main thread, or the JVM, is if the block lasts so long."""
    since = time.time()
    timer = threading.Timer(seconds, lambda: tell(_place(since)))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _place(since: float) -> messages.Hanging:
    """Return the call that has lasted since then: the one in the JVM, or else that of the main thread."""
    jvm = running_jvm()
    place = None if jvm is None else called_place(jvm)
    lasted = time.time() - since
    if place is not None:
        return messages.Hanging(place.method, lasted, since, place.line, place.stack)
    stacks = _stacks()
    method, line = hang_place(stacks)
    return messages.Hanging(method or _UNNAMED, lasted, since, line, stacks)


def _stacks() -> str:
    """Return the stacks of all threads of Python; that of the main thread is the last."""
    with tempfile.TemporaryFile("w+") as file:
        faulthandler.dump_traceback(file)
        file.seek(0)
        return file.read()
