"""The CPU time and memory that the units of a shared process use, and means to use less of them."""

from __future__ import annotations

import contextlib
import ctypes
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Final

__all__ = ["ThreadTimes", "give_back", "share_arenas", "starting_patient_threads"]

_CLOCK_OF_THREAD: Final = 0b110
"""The bits by which Linux marks a clock id as the CPU clock of a thread; the others are the thread's id."""

_ARENA_MAX: Final = -8
_ARENAS: Final = 2

_PR_SET_TIMERSLACK: Final = 29
_PR_GET_TIMERSLACK: Final = 30
_NANOSECONDS: Final = 1_000_000_000


class ThreadTimes:
    """The CPU time of the calling thread and of some others; of ended threads, as it was at the last call.

    Threads that Python has not started, such as those of a Kafka client, are not counted: they run beside Python.
    """

    def __init__(self, threads: Callable[[], Iterable[threading.Thread]]) -> None:
        self._threads = threads
        self._seen: dict[int, float] = {}
        self._ended = 0.0

    def __call__(self) -> float:
        """Their CPU seconds so far."""
        seen: dict[int, float] = {}
        for thread in self._threads():
            # By its id: time.pthread_getcpuclockid may crash for a thread that has just ended.
            if (number := thread.native_id) is not None and number != threading.get_native_id():
                with contextlib.suppress(OSError):
                    seen[number] = time.clock_gettime(~number << 3 | _CLOCK_OF_THREAD)
        self._ended += sum(seconds for number, seconds in self._seen.items() if number not in seen)
        self._seen = seen
        return time.thread_time() + self._ended + sum(seen.values())


def share_arenas() -> None:
    """Let threads that start from now on share two malloc arenas, in place of eight for each processor.

    Each arena keeps the memory that its threads have needed at their busiest. Does nothing without glibc.
    """
    with contextlib.suppress(AttributeError):
        ctypes.CDLL(None).mallopt(_ARENA_MAX, _ARENAS)


@contextlib.contextmanager
def starting_patient_threads(seconds: float) -> Iterator[None]:
    """Let the system end waits of the threads started in this block up to ``seconds`` late, and so several at once.

    Each Kafka client has threads that look around once a second or more often. Only waits that run out are late: data
    and other events wake a thread at once. Threads that those start inherit this. Does nothing on a system without
    ``prctl``.
    """
    try:
        prctl = ctypes.CDLL(None).prctl
    except AttributeError:
        yield
        return
    before = prctl(_PR_GET_TIMERSLACK, 0, 0, 0, 0)
    prctl(_PR_SET_TIMERSLACK, ctypes.c_ulong(int(seconds * _NANOSECONDS)), 0, 0, 0)
    try:
        yield
    finally:
        # 0 is the default of the thread. It also stands for the -1 of a system that refuses to tell.
        prctl(_PR_SET_TIMERSLACK, ctypes.c_ulong(max(before, 0)), 0, 0, 0)


def give_back() -> None:
    """Return unused memory, such as that of starts, to the system, within milliseconds. Does nothing without glibc."""
    with contextlib.suppress(AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
