"""Asserts how the run time of a function grows with its input."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from typing import Any

__all__ = ["assert_grows_evenly"]

_UNMEASURED = 0.001
"""A tolerance in seconds: shorter times are too small to compare."""


def assert_grows_evenly(run: Callable[[Any], object], make: Callable[[int], Any], size: int) -> None:
    """Assert that twice the input takes less than three times the CPU time, of this thread alone.

    Both are timed in turn until the best times show it: other processes can make one of them slow, but none fast. The
    garbage collector waits meanwhile: it goes through all that other tests have left.
    """
    given = [make(size), make(2 * size)]
    best = [float("inf"), float("inf")]
    for _ in range(8):
        for index, item in enumerate(given):
            best[index] = min(best[index], _timed(run, item))
        if best[1] < 3 * best[0] + _UNMEASURED:
            return
    raise AssertionError(f"{best[0] * 1e3:.1f} ms for {size}, {best[1] * 1e3:.1f} ms for twice as much")


def _timed(run: Callable[[Any], object], item: object) -> float:
    gc.disable()
    try:
        start = time.thread_time()
        run(item)
        return time.thread_time() - start
    finally:
        gc.enable()
