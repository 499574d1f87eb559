"""The time of a record: the clock's, that of the record in Kafka, or that of a field."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from connect.data.logical import days_from_date, milliseconds_from_timestamp
from connect.errors import DataError

__all__ = ["END_MS", "FIRST_MS", "RecordTimes", "field_value", "parsed_time"]

_DAY_MS: Final = 86_400_000
_DIGITS: Final = re.compile(r"[+-]?\d{1,19}")
_AFTER_MIDNIGHT: Final = re.compile(r"(:00(\.0+)?)?(Z|[+-]\d\d(:?\d\d)?)?")
FIRST_MS: Final = -62_135_596_800_000
END_MS: Final = 253_402_300_800_000
"""The milliseconds of the years 1 to 9999, and the first after them."""


@dataclass(frozen=True, slots=True)
class RecordTimes:
    """Tells times in milliseconds since 1970. ``extractor`` is ``Wallclock``, ``Record`` or ``RecordField``."""

    extractor: Literal["Wallclock", "Record", "RecordField"]
    field: str = ""

    @property
    def by_clock(self) -> bool:
        """Whether the times are the clock's, so that a record that comes again has another one."""
        return self.extractor == "Wallclock"

    def of(self, values: Iterable[Any], timestamps: Sequence[int | None]) -> list[int | DataError]:
        """Return the time of each record, or what is wrong with it. Not for the clock's times."""
        if self.extractor == "Record":
            missing = DataError("The record has no timestamp in Kafka, by which timestamp.extractor=Record places it.")
            return [missing if timestamp is None or timestamp < 0 else timestamp for timestamp in timestamps]
        path = self.field.split(".")
        return [self._of_value(value, path) for value in values]

    def _of_value(self, value: Any, path: Sequence[str]) -> int | DataError:
        found = field_value(value, self.field, path)
        if found is None:
            return DataError(f"timestamp.field={self.field} has no value.")
        try:
            instant = _instant(found)
        except (ValueError, OverflowError) as error:
            return DataError(f"timestamp.field={self.field} tells no time: {error}")
        if not FIRST_MS <= instant < END_MS:
            return DataError(f"timestamp.field={self.field} tells no time: {instant} ms is beyond the years 1 to 9999.")
        return instant


def field_value(value: Any, name: str, path: Sequence[str]) -> Any:
    """Return a field of a struct or map, which may be nested, or has dots in its name; ``None`` if it is not there."""
    if not isinstance(value, Mapping):
        return None
    if name in value:
        return value[name]
    for part in path:
        if not isinstance(value, Mapping):
            return None
        value = value.get(part)
    return value


def _instant(value: Any) -> int:
    match value:
        case bool():
            raise ValueError("a boolean is no time")
        case int():
            return value
        case float():
            return int(value)
        case str():
            return int(value) if _DIGITS.fullmatch(value) else parsed_time(value)
        case dt.datetime():
            return milliseconds_from_timestamp(value)
        case dt.date():
            return days_from_date(value) * _DAY_MS
    raise ValueError(f"a {type(value).__name__} is no time")


def parsed_time(text: str) -> int:
    """Return the milliseconds of an ISO 8601 date with or without a time, in UTC unless it names a zone."""
    begin, midnight, rest = text.partition("T24:00")
    if midnight and _AFTER_MIDNIGHT.fullmatch(rest):
        # The end of a day, as ISO 8601 writes it.
        return parsed_time(f"{begin}T00:00{rest}") + _DAY_MS
    moment = dt.datetime.fromisoformat(text)
    return milliseconds_from_timestamp(moment if moment.tzinfo is not None else moment.replace(tzinfo=dt.UTC))
