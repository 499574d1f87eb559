"""Asking brokers again that went away while they were asked."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Final, TypeVar

from connect.errors import RetriableError

__all__ = ["until_answered"]

logger = logging.getLogger(__name__)

T = TypeVar("T")

_LEAST_WAIT: Final = 0.1
_MOST_WAIT: Final = 2.0


def until_answered(ask: Callable[[], T], seconds: float) -> T:
    """What ``ask`` gives, which is called again after each ``RetriableError``; the last one is raised after so long.

    A connection that ends fails at once what was asked on it, however long a request may take. Blocks.
    """
    deadline = time.monotonic() + seconds
    wait = _LEAST_WAIT
    while True:
        try:
            return ask()
        except RetriableError as error:
            if time.monotonic() + wait >= deadline:
                raise
            logger.warning("%s; asking again", error)
        time.sleep(wait)
        wait = min(wait * 2, _MOST_WAIT)
