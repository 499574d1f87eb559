"""Waiting for a condition, never for a time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

__all__ = ["wait_until"]

T = TypeVar("T")


def wait_until(what: str, condition: Callable[[], T], seconds: float = 30.0) -> T:
    """The first true answer of ``condition``; fails with ``what`` if there is none in time."""
    deadline = time.monotonic() + seconds
    while not (answer := condition()):
        if time.monotonic() >= deadline:
            raise AssertionError(f"within {seconds:g} s it did not come about that {what}")
        time.sleep(0.02)
    return answer
