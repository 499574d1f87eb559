"""Clocks that show when the machine was suspended or paused.

The clock of ``time.monotonic`` stands still while a machine is suspended; that of ``CLOCK_BOOTTIME`` does not. While a
virtual machine is paused both may stand still, and only the wall clock jumps, as soon as somebody sets it. So the
elapsed time is the larger of the two. A wall clock that is set back shows less, which does no harm.
"""

from __future__ import annotations

import contextlib
import ctypes
import math
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

__all__ = ["FOREVER", "LONG_AGO", "Clock", "Moment", "WallTimer"]

_JUMP_SECONDS: Final = 1.0
_ABSOLUTE: Final = 1
_CANCEL_ON_SET: Final = 2


@dataclass(frozen=True, slots=True, order=True)
class Moment:
    """A moment by two clocks: the one since boot, which all processes of the machine share, and the wall clock."""

    booted: float
    wall: float

    @classmethod
    def now(cls) -> Moment:
        """Return the current moment."""
        return cls(time.clock_gettime(time.CLOCK_BOOTTIME), time.time())

    def after(self, seconds: float) -> Moment:
        """Return the moment this many seconds later."""
        return Moment(self.booted + seconds, self.wall + seconds)

    def since(self, earlier: Moment) -> float:
        """Return the seconds since an earlier moment, by the clock that shows more of them."""
        return max(self.booted - earlier.booted, self.wall - earlier.wall)

    def known_since(self, earlier: Moment) -> str:
        """Describe the time since an earlier moment, and say if the wall clock has run ahead."""
        jump = (self.wall - earlier.wall) - (self.booted - earlier.booted)
        doubt = f" (the wall clock went {jump:.1f} s forward: this machine was paused, or its clock was set)"
        return f"for {self.since(earlier):.1f} s{doubt if jump > _JUMP_SECONDS else ''}"


Clock: TypeAlias = Callable[[], Moment]

FOREVER = Moment(math.inf, math.inf)
"""A moment after all others."""

LONG_AGO = Moment(-math.inf, -math.inf)
"""A moment before all others."""


class _TimerSpec(ctypes.Structure):
    """Linux's ``itimerspec``: an interval and a moment, each in seconds and nanoseconds."""

    _fields_ = [(name, ctypes.c_long) for name in ("every", "every_nano", "at", "at_nano")]


class WallTimer:
    """A descriptor that becomes readable at a wall clock time, or when that clock is set or the machine resumes.

    Python itself has this from 3.13 on. For one thread.
    """

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self.descriptor: int = self._called("timerfd_create", time.CLOCK_REALTIME, os.O_NONBLOCK | os.O_CLOEXEC)
        """Becomes readable at the moment that was set."""

    def set(self, at: float) -> None:
        """Set the moment, in seconds since 1970, replacing the previous one."""
        with contextlib.suppress(OSError):
            # Nothing to read, or the clock was set.
            os.read(self.descriptor, 8)
        seconds = math.floor(at)
        spec = _TimerSpec(0, 0, seconds, int((at - seconds) * 1e9))
        self._called("timerfd_settime", self.descriptor, _ABSOLUTE | _CANCEL_ON_SET, ctypes.byref(spec), None)

    def _called(self, function: str, *arguments: object) -> int:
        result: int = self._libc[function](*arguments)
        if result < 0:
            raise OSError(ctypes.get_errno(), f"{function} failed: {os.strerror(ctypes.get_errno())}")
        return result
