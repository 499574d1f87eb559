"""Clocks that notice when this machine was suspended or paused.

The clock of ``time.monotonic`` stands still while a machine is suspended; that of ``CLOCK_BOOTTIME`` does not. While a
virtual machine is paused both may stand still, and only the wall clock jumps, as soon as somebody sets it. So the time
passed is the larger of the two; a wall clock that is set back shows less and does no harm.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

__all__ = ["FOREVER", "LONG_AGO", "Clock", "Moment"]

_JUMP_SECONDS: Final = 1.0


@dataclass(frozen=True, slots=True, order=True)
class Moment:
    """A moment by the clock since the machine was booted, which all its processes share, and by the wall clock."""

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
        """Return the seconds since an earlier moment, by the clock that shows more."""
        return max(self.booted - earlier.booted, self.wall - earlier.wall)

    def told_since(self, earlier: Moment) -> str:
        """Describe the time since an earlier moment, and tell if the wall clock went faster."""
        jump = (self.wall - earlier.wall) - (self.booted - earlier.booted)
        doubt = f" (the wall clock went {jump:.1f} s forward: this machine was paused, or its clock was set)"
        return f"for {self.since(earlier):.1f} s{doubt if jump > _JUMP_SECONDS else ''}"


Clock: TypeAlias = Callable[[], Moment]

FOREVER = Moment(math.inf, math.inf)
"""After every moment."""

LONG_AGO = Moment(-math.inf, -math.inf)
"""Before every moment."""
