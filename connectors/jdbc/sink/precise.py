"""Timestamps finer than a millisecond: numbers since the epoch that are written as timestamps."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from typing import Any, Final

from connect.data import Schema, Type
from connect.data.logical import EPOCH
from connect.errors import DataError

__all__ = ["PRECISE_NAME", "precise_reader", "precise_schema"]

PRECISE_NAME: Final = "sluice.jdbc.PreciseTimestamp"
"""The name of the schema of timestamps to the microsecond, whose values are aware ``datetime`` objects."""

_MICROSECOND: Final = dt.timedelta(microseconds=1)
_NANOS: Final = 1000


def precise_schema(*, optional: bool) -> Schema:
    """The schema of a column of timestamps to the microsecond."""
    return Schema.int64(name=PRECISE_NAME, optional=optional)


def precise_reader(schema: Schema, unit: str) -> Callable[[Sequence[Any]], Sequence[Any]]:
    """What makes timestamps of numbers in ``unit`` since the epoch, or of texts of them."""
    if schema.type not in (Type.INT64, Type.STRING) or schema.name is not None:
        raise DataError(f"timestamp.fields.list names a field of type {schema.type.value}: it must be int64 or string.")
    divisor = _NANOS if unit == "NANOSECONDS" else 1

    def moment(value: Any) -> dt.datetime | None:
        if value is None:
            return None
        try:
            micros, rest = divmod(int(value), divisor)
            if rest:
                raise DataError(f"{value} ns is finer than a microsecond, which is as fine as a timestamp can be.")
            return EPOCH + micros * _MICROSECOND
        except (ValueError, OverflowError) as error:
            raise DataError(f"{str(value)[:40]} is no timestamp of the years 1 to 9999.") from error

    return lambda values: [moment(value) for value in values]
