"""What threads take of a core."""

from __future__ import annotations

import contextlib
import ctypes
import threading
import time
from collections.abc import Callable, Iterable
from typing import Final

__all__ = ["ThreadTimes", "give_back", "share_arenas"]

_CLOCK_OF_THREAD: Final = 0b110
"""How Linux marks the number of a clock as the one of the CPU time of a thread, beside the thread's id."""

_ARENA_MAX: Final = -8
_ARENAS: Final = 2


class ThreadTimes:
    """The CPU time of the thread that asks and of some others, those that have ended as they were seen last.

    Threads that no Python has started, such as those of a Kafka client, are not counted, and need no lock of Python.
    """

    def __init__(self, threads: Callable[[], Iterable[threading.Thread]]) -> None:
        self._threads = threads
        self._seen: dict[int, float] = {}
        self._ended = 0.0

    def __call__(self) -> float:
        """How many seconds of a core they have taken so far."""
        seen: dict[int, float] = {}
        for thread in self._threads():
            # By its id: the clock of a thread that has just ended may not be asked for by what Python has for that.
            if (number := thread.native_id) is not None and number != threading.get_native_id():
                with contextlib.suppress(OSError):
                    seen[number] = time.clock_gettime(~number << 3 | _CLOCK_OF_THREAD)
        self._ended += sum(seconds for number, seconds in self._seen.items() if number not in seen)
        self._seen = seen
        return time.thread_time() + self._ended + sum(seen.values())


def share_arenas() -> None:
    """Let all threads that start from now on share a few arenas: by default there are eight for each processor.

    Each keeps what its threads have needed at their busiest.
    """
    with contextlib.suppress(AttributeError):
        ctypes.CDLL(None).mallopt(_ARENA_MAX, _ARENAS)


def give_back() -> None:
    """Give memory back that is not used any more, such as that of starts; takes some milliseconds."""
    with contextlib.suppress(AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
