"""Formats times and sizes as text."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

__all__ = ["counted", "local_time", "size_text", "utc_text", "written_text"]

_UNITS: Final = ("bytes", "kB", "MB", "GB", "TB")
_UNIT: Final = 1000


def utc_text(seconds: float) -> str:
    """Format seconds since 1970 as ``2026-01-31T12:00:00Z``."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def local_time(seconds: float) -> str:
    """Return a time in seconds since 1970 as the logs show it, in this machine's time zone."""
    return datetime.fromtimestamp(seconds, UTC).astimezone().strftime("%Y-%m-%d %H:%M:%S")


def size_text(count: int) -> str:
    """Format a number of bytes as ``812 bytes`` or ``41.2 MB``."""
    amount, unit = float(count), 0
    while amount >= _UNIT and unit < len(_UNITS) - 1:
        amount, unit = amount / _UNIT, unit + 1
    return f"{amount:,.1f} {_UNITS[unit]}" if unit else f"{count} {_UNITS[0]}"


def counted(count: float, noun: str) -> str:
    """Return a count with its noun: ``1 file``, ``2,000 files``."""
    return f"{count:,.0f} {noun}{'' if count == 1 else 's'}"


def written_text(rows: int, size: int, files: int) -> str:
    """Return what a load has written so far, each part after a comma.

    What is 0 is left out: a load may learn of its bytes and files only at its end.
    """
    parts = [
        counted(rows, "row") if rows else "",
        size_text(size) if size else "",
        counted(files, "file") if files else "",
    ]
    return "".join(f", {part}" for part in parts if part)
