"""Waiting for the coordinator of a consumer group; a new or restarted cluster needs a moment until it has one."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, TypeVar

__all__ = ["once_coordinated"]

T = TypeVar("T")

_LOOK_AGAIN: Final = 0.2


def once_coordinated(ask: Callable[[], T], is_moving: Callable[[Exception], bool], timeout: float) -> T:
    """The answer to a request, which is made again as long as ``is_moving`` says that the coordinator was not found."""
    deadline = time.monotonic() + timeout
    while True:
        try:
            return ask()
        except Exception as error:
            if not is_moving(error) or time.monotonic() >= deadline:
                raise
        time.sleep(_LOOK_AGAIN)
