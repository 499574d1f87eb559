"""TimestampNowField: sets fields to the current time."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Callable
from typing import Any, Final, Literal

from connect.config import HIGH, LOW, Config, Long, option
from connect.data import Field, Schema, Type
from connect.data.logical import TIMESTAMP_NAME, timestamp_from_milliseconds, timestamp_schema
from connect.transforms.fields.key_or_value import Change, ValueTransformation, require_map, require_struct_schema
from connect.transforms.fields.options import unique_names

__all__ = ["TimestampNowField", "TimestampNowFieldConfig"]

_PURPOSE: Final = "inserting the current time"
_YEAR: Final = 31_556_952_000_000_000
"""In nanoseconds; as in Java, a year is an average one of the calendar, and a month a twelfth of it."""
_UNITS: Final = {
    "NANOS": 1,
    "MICROS": 1_000,
    "MILLIS": 1_000_000,
    "SECONDS": 1_000_000_000,
    "MINUTES": 60_000_000_000,
    "HOURS": 3_600_000_000_000,
    "HALF_DAYS": 43_200_000_000_000,
    "DAYS": 86_400_000_000_000,
    "WEEKS": 604_800_000_000_000,
    "MONTHS": _YEAR // 12,
    "YEARS": _YEAR,
    "DECADES": 10 * _YEAR,
    "CENTURIES": 100 * _YEAR,
    "MILLENNIA": 1_000 * _YEAR,
}


class TimestampNowFieldConfig(Config):
    """The fields, and the form of the time in them."""

    fields: tuple[str, ...] = option(
        importance=HIGH, validator=unique_names, doc="The fields to set; those that are missing are added."
    )
    add_amount: Long = option(
        default=0, importance=LOW, doc="How many units of add.chronounit are added to the current time."
    )
    add_chronounit: Literal[
        "NANOS",
        "MICROS",
        "MILLIS",
        "SECONDS",
        "MINUTES",
        "HOURS",
        "HALF_DAYS",
        "DAYS",
        "WEEKS",
        "MONTHS",
        "YEARS",
        "DECADES",
        "CENTURIES",
        "MILLENNIA",
    ] = option(default="DAYS", importance=LOW, doc="The unit of add.amount.")
    target_type: Literal["Date", "Unix"] = option(
        default="Date",
        importance=LOW,
        doc="Date sets a Timestamp, Unix the seconds since 1970 as an int64.",
    )


class TimestampNowField(ValueTransformation[TimestampNowFieldConfig]):
    """Sets fields to the current time of the machine that runs the task."""

    def change(self, schema: Schema | None) -> Change:
        """Set fields in values of a schema."""
        fields, now = self.config.fields, self._clock()

        def set_all(value: Any) -> dict[str, Any]:
            given = require_map(value, schema, _PURPOSE)
            current = now()
            return {**given, **dict.fromkeys(fields, current)}

        return Change(None if schema is None else self._schema(schema), set_all)

    def _schema(self, schema: Schema) -> Schema:
        require_struct_schema(schema, _PURPOSE)
        fields = {field.name: field.schema for field in schema.fields}
        is_date = self.config.target_type == "Date"
        for name in self.config.fields:
            if name not in fields or not (_is_timestamp if is_date else _is_whole)(fields[name]):
                fields[name] = timestamp_schema() if is_date else Schema.int64()
        members = [Field(name, of, index) for index, (name, of) in enumerate(fields.items())]
        return schema.replace(fields=members, default=None)

    def _clock(self) -> Callable[[], dt.datetime | int]:
        later = self.config.add_amount * _UNITS[self.config.add_chronounit]
        if self.config.target_type == "Unix":
            return lambda: (time.time_ns() + later) // 1_000_000_000
        return lambda: timestamp_from_milliseconds((time.time_ns() + later) // 1_000_000)


def _is_timestamp(schema: Schema) -> bool:
    return schema.type is Type.INT64 and schema.name == TIMESTAMP_NAME


def _is_whole(schema: Schema) -> bool:
    return schema.type is Type.INT64 and schema.name is None
