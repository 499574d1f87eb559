"""The times of a day at which a bulk sink loads what waits (``rotate.schedule.interval.ms``)."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta, tzinfo

__all__ = ["last_due"]


def last_due(now: datetime, interval: timedelta, zone: tzinfo) -> datetime:
    """The last time up to ``now`` that was due: every ``interval`` from midnight in a time zone on.

    The next day begins anew, so that 7 h is midnight, 7:00, 14:00 and 21:00. On a day on which clocks change the times
    after that are an hour off, as hours are counted, not read.
    """
    midnight = datetime.combine(now.astimezone(zone).date(), time.min, zone).astimezone(UTC)
    return midnight + (now - midnight) // interval * interval
