"""A watchdog for plugin code in a thread: a call that does not return fails its test at once."""

from __future__ import annotations

import sys
import threading
import time
import traceback
from collections.abc import Callable
from concurrent.futures import Future, wait
from typing import Final, TypeVar

__all__ = ["run_watched"]

T = TypeVar("T")

_LOOKS_SECONDS: Final = 0.25


def run_watched(work: Callable[[Callable[[], None]], T], patience: float) -> T:
    """Run ``work`` in a thread of its own. Return its result, or raise what it raises.

    ``work`` receives a function that it must call regularly to show that it is alive. If it does not do so for
    ``patience`` seconds, an ``AssertionError`` with its stack is raised. All methods of a task must be called from one
    thread, so run the whole life of the task in ``work``.
    """
    done: Future[T] = Future()
    alive_at = [time.monotonic()]

    def live() -> None:
        try:
            done.set_result(work(lambda: alive_at.__setitem__(0, time.monotonic())))
        except BaseException as error:
            done.set_exception(error)

    # A daemon thread, so that a hung call does not keep the tests from ending.
    thread = threading.Thread(target=live, name="watched plugin", daemon=True)
    thread.start()
    while not done.done():
        wait([done], _LOOKS_SECONDS)
        seconds = time.monotonic() - alive_at[0]
        if seconds > patience and not done.done():
            raise AssertionError(
                f"A poll has not returned for {seconds:.0f} s; wait with self.context.wait(seconds), which returns "
                f"early. It is here:\n{_stack(thread)}"
            )
    return done.result()


def _stack(thread: threading.Thread) -> str:
    frame = sys._current_frames().get(thread.ident or 0)
    return "".join(traceback.format_stack(frame)) if frame is not None else ""
