"""The text of dates and times when Kafka Connect casts them to strings."""

from __future__ import annotations

import datetime as dt
from typing import Final

from connect.data.logical import EPOCH, date_from_days, milliseconds_from_time, milliseconds_from_timestamp

__all__ = ["date_text", "milliseconds_of"]

_DAY_MS: Final = 86_400_000


def milliseconds_of(value: dt.date | dt.time) -> int:
    """Return the milliseconds since the epoch that represent a date, an instant, or a time on the first day."""
    if isinstance(value, dt.datetime):
        aware = value if value.tzinfo is not None else value.replace(tzinfo=dt.UTC)
        return milliseconds_from_timestamp(aware)
    if isinstance(value, dt.date):
        return (value - EPOCH.date()).days * _DAY_MS
    return milliseconds_from_time(value)


def date_text(value: dt.date | dt.time) -> str:
    """Return the text of a date in Kafka Connect: a time before the second day, a date at midnight, otherwise both.

    The choice depends on the instant, not on the type, so a date in 1969 is written as a time of day.
    """
    milliseconds = milliseconds_of(value)
    days, rest = divmod(milliseconds, _DAY_MS)
    seconds, thousandth = divmod(rest, 1000)
    clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{thousandth:03}Z"
    if milliseconds < _DAY_MS:
        return clock
    date = date_from_days(days).isoformat()
    return date if rest == 0 else f"{date}T{clock}"
