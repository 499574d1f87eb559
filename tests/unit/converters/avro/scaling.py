"""How CPU time grows with what is given."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

__all__ = ["growth"]

T = TypeVar("T")
_TRIES = 5


def growth(make: Callable[[int], T], work: Callable[[T], object], size: int) -> float:
    """How many times the CPU time is taken by what is twice as large; the best of some tries counts for each."""
    small, large = make(size), make(2 * size)
    best = [float("inf"), float("inf")]
    for _ in range(_TRIES):
        for place, given in enumerate((small, large)):
            start = time.process_time()
            work(given)
            best[place] = min(best[place], time.process_time() - start)
        if best[1] < 2.5 * best[0]:
            break
    return best[1] / best[0]
