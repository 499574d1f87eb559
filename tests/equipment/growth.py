"""Asserts how the run time of a function grows with its input, or with what is odd about it."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["assert_cost_at_most", "assert_grows_evenly"]

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


def assert_cost_at_most(ordinary: Callable[[], object], odd: Mapping[str, tuple[Callable[[], object], float]]) -> None:
    """Assert that each odd run takes at most so many times the CPU time of the ordinary one; timed in turn, too."""
    least = float("inf")
    best = dict.fromkeys(odd, float("inf"))
    for _ in range(8):
        least = min(least, _timed(_call, ordinary))
        for name, (run, _) in odd.items():
            best[name] = min(best[name], _timed(_call, run))
        dear = {name: found / least for name, found in best.items() if found > odd[name][1] * least}
        if not dear:
            return
    raise AssertionError(f"the cost in ordinary runs: {dear}")


def _timed(run: Callable[[Any], object], item: object) -> float:
    gc.disable()
    try:
        start = time.thread_time()
        run(item)
        return time.thread_time() - start
    finally:
        gc.enable()


def _call(run: Callable[[], object]) -> None:
    run()
