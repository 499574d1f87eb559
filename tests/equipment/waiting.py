"""Waits for conditions, never for fixed times."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, TypeVar

__all__ = ["wait_until"]

T = TypeVar("T")

_PAUSE: Final = 0.02
_LONGEST_PAUSE: Final = 0.25


def wait_until(what: str, condition: Callable[[], T], seconds: float = 60.0) -> T:
    """Return the first true result of ``condition``; fail with ``what`` if there is none in time."""
    asked = time.monotonic()
    deadline = asked + seconds
    while not (answer := condition()):
        now = time.monotonic()
        if now >= deadline:
            raise AssertionError(f"within {seconds:g} s it did not come about that {what}")
        # After an expensive check, pause longer: the awaited work needs the machine.
        time.sleep(min(max(_PAUSE, 2 * (now - asked)), _LONGEST_PAUSE))
        asked = time.monotonic()
    return answer
