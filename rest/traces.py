"""Reduces a stack trace to the one line that says what is wrong, for tables."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["cause_of"]

_TRACEBACK: Final = "Traceback (most recent call last)"
_PREAMBLE: Final = re.compile(r"^(?:connect\.(?:config\.)?errors\.\w+: )?(?:Tolerance exceeded in error handler: )?")
"""A prefix that every such error has, and that says nothing beyond the state FAILED."""


def cause_of(trace: str) -> str:
    """Return the line that says what is wrong: the first line, or the last error of a bare Python traceback."""
    lines = [line for line in trace.splitlines() if line.strip()]
    if lines and lines[0].startswith(_TRACEBACK):
        last = max(number for number, line in enumerate(lines) if line.startswith(_TRACEBACK))
        lines = [line for line in lines[last + 1 :] if not line[0].isspace()]
    return _PREAMBLE.sub("", lines[0].strip()) if lines else "unknown; see the worker's log"
