"""Failed attempts to sign in: after too many of them, a caller has to wait, so that passwords cannot be guessed."""

from __future__ import annotations

import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

__all__ = ["Attempts"]

_MOST_KEPT: Final = 10_000
_Key: TypeAlias = tuple[str, str]


@dataclass(frozen=True, slots=True)
class _Allowance:
    """A number of failures allowed at once, and one more after each interval."""

    failures: float
    seconds: float


_OF_BOTH: Final = _Allowance(5, 10)
_OF_ADDRESS: Final = _Allowance(50, 2)
_OF_USER: Final = _Allowance(100, 1)
"""Shared by all addresses that try one user's password. Large, so that a user is not easily locked out by others."""


@dataclass(slots=True)
class _Used:
    failures: float
    since: float


class Attempts:
    """Counts failures by address, by user and by both together. May be used by any thread.

    The latest 10,000 are kept (invariant I9), so displacing one's own failures takes as many others.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._used: OrderedDict[_Key, _Used] = OrderedDict()
        self._one_at_a_time = threading.Lock()

    def wait(self, address: str, user: str) -> float:
        """Return how many seconds this user has to wait at this address before the next attempt; 0 if not at all."""
        with self._one_at_a_time:
            return max(self._wait(key, allowance) for key, allowance in _counted(address, user).items())

    def failed(self, address: str, user: str) -> None:
        """Count a failure."""
        with self._one_at_a_time:
            for key, allowance in _counted(address, user).items():
                used = self._now(key, allowance)
                self._used[key] = _Used(used + 1, self._clock())
                self._used.move_to_end(key)
            while len(self._used) > _MOST_KEPT:
                self._used.popitem(last=False)

    def _wait(self, key: _Key, allowance: _Allowance) -> float:
        too_many = self._now(key, allowance) - (allowance.failures - 1)
        return math.ceil(too_many * allowance.seconds) if too_many > 0 else 0

    def _now(self, key: _Key, allowance: _Allowance) -> float:
        """Return the failures that still count."""
        used = self._used.get(key)
        return 0.0 if used is None else max(0.0, used.failures - (self._clock() - used.since) / allowance.seconds)


def _counted(address: str, user: str) -> dict[_Key, _Allowance]:
    return {(address, user): _OF_BOTH, (address, ""): _OF_ADDRESS, ("", user): _OF_USER}
