"""Numbers, times and parts of records as a page shows them. Unknown values are shown as a dash, never as 0."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Final

__all__ = ["UNKNOWN", "amount", "duration", "grouped", "measured", "moment", "record_text", "size"]

UNKNOWN: Final = "–"  # noqa: RUF001 - a dash is what is meant
_UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB")
_STEP: Final = 1024
_TEN: Final = 10
_MOST_CHARACTERS: Final = 2_000
_SPANS: Final = ((86_400, "d"), (3_600, "h"), (60, "min"))


def grouped(value: float | None) -> str:
    """Format a number with thousands separators and no decimals: ``1,234,567``. Integers of any size stay exact."""
    if value is None:
        return UNKNOWN
    return f"{value:,}" if isinstance(value, int) else f"{value:,.0f}"


def amount(value: float | None) -> str:
    """Format a rate: no decimals from ten on, one decimal below."""
    if value is None:
        return UNKNOWN
    return f"{value:,.0f}" if value >= _TEN or value == 0 else f"{value:,.1f}"


def measured(value: float | None) -> str:
    """Format a number of any kind: without decimals if it is whole, else with three."""
    if value is None:
        return UNKNOWN
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.3f}"


def size(value: float | None) -> str:
    """Format a number of bytes: ``23.4 MiB``."""
    if value is None:
        return UNKNOWN
    for unit in _UNITS:
        if value < _STEP or unit == _UNITS[-1]:
            break
        value /= _STEP
    return f"{value:,.0f} {unit}" if unit == _UNITS[0] else f"{value:,.1f} {unit}"


def duration(seconds: float | None) -> str:
    """Format a time span in its largest unit: ``3 h``."""
    if seconds is None:
        return UNKNOWN
    for length, unit in _SPANS:
        if seconds >= length:
            return f"{seconds / length:,.0f} {unit}"
    return f"{seconds:,.1f} s" if seconds < _TEN else f"{seconds:,.0f} s"


def moment(milliseconds: int | None) -> str | None:
    """Format milliseconds since 1970 as ISO 8601 in UTC; ``None`` if they are not a valid time."""
    if milliseconds is None or milliseconds < 0:
        return None
    try:
        at = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=milliseconds)
    except OverflowError:
        return None
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def record_text(value: Mapping[str, str] | None) -> str:
    """Format a key or value of a dead letter, as text or in base64, cut at a length that a page can show."""
    if value is None:
        return "null"
    text = value["text"] if "text" in value else f"base64: {value['base64']}"
    if len(text) <= _MOST_CHARACTERS:
        return text
    return f"{text[:_MOST_CHARACTERS]} … ({len(text) - _MOST_CHARACTERS:,} more characters)"
