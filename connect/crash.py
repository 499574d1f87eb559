"""Test equipment: named points in the code at which a test can have the process killed.

A claim such as "exactly once across ``kill -9``" is proven by killing at the moments that matter. Code that
makes such a claim calls :func:`crash_point` at each of them. Unless the environment names one, that does
nothing.

``SLUICE_CRASH_POINT=after-manifest`` kills at the first pass of that point, ``after-manifest:3`` at the
third.
"""

from __future__ import annotations

import os
import signal
from collections import Counter
from typing import Final

__all__ = ["CRASH_POINT_VARIABLE", "crash_point"]

CRASH_POINT_VARIABLE: Final = "SLUICE_CRASH_POINT"
_passes: Counter[str] = Counter()


def crash_point(name: str) -> None:
    """Kill this process with SIGKILL if the environment says so; nothing is flushed, closed or cleaned up."""
    chosen = os.environ.get(CRASH_POINT_VARIABLE)
    if not chosen:
        return
    point, _, nth = chosen.partition(":")
    if point != name:
        return
    _passes[name] += 1
    if _passes[name] == int(nth or 1):
        os.kill(os.getpid(), signal.SIGKILL)
