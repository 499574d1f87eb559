"""Crash points: named places in the code where a test can kill the process.

A claim such as "exactly once across ``kill -9``" is tested by killing the process at the moments that matter. Code that
makes such a claim calls :func:`crash_point` at each of them. The call does nothing unless the environment names the
point.

``SLUICE_CRASH_POINT=after-manifest`` kills the process the first time it reaches that point, ``after-manifest:3`` the
third time.
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
    """Kill this process with SIGKILL if the environment names this point. Nothing is flushed, closed or cleaned up."""
    chosen = os.environ.get(CRASH_POINT_VARIABLE)
    if not chosen:
        return
    point, _, nth = chosen.partition(":")
    if point != name:
        return
    _passes[name] += 1
    if _passes[name] == int(nth or 1):
        os.kill(os.getpid(), signal.SIGKILL)
