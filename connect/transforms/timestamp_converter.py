"""TimestampConverter: converts instants between strings, numbers, dates, times and timestamps."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, TypeAlias

from connect.config import HIGH, LOW, MEDIUM, Config, ConfigRuleError, option
from connect.data import Schema, Type, date_schema, time_schema, timestamp_schema
from connect.data.excerpt import excerpt
from connect.data.logical import (
    DATE_NAME,
    TIME_NAME,
    TIMESTAMP_NAME,
    date_from_days,
    time_from_milliseconds,
    timestamp_from_milliseconds,
)
from connect.data.numerals import INT64_MAX, INT64_MIN
from connect.errors import ConfigError, DataError
from connect.internals.java.calendar_fields import DAY_MS
from connect.internals.java.date_format import DateFormat
from connect.internals.java.date_text import milliseconds_of
from connect.transforms.fields.field_path import FieldSyntax, FieldTree, parse_field_path
from connect.transforms.fields.key_or_value import Change, ValueTransformation, type_name
from connect.transforms.fields.options import field_syntax_version, replace_null_with_default
from connect.transforms.fields.struct_change import change_fields

__all__ = ["TimestampConverter", "TimestampConverterConfig"]

Representation: TypeAlias = Literal["string", "unix", "Date", "Time", "Timestamp"]

_PURPOSE: Final = "converting timestamp formats"


class TimestampConverterConfig(Config):
    """The field to convert, and its new type."""

    field: str = option(
        default="",
        importance=HIGH,
        doc="The field with the timestamp; empty if the whole key or value is one.",
    )
    target_type: Representation = option(
        importance=HIGH,
        doc="New type of the timestamp: string, unix time, or the logical type Date, Time or Timestamp.",
    )
    format: str = option(
        default="",
        importance=MEDIUM,
        doc="Format of strings, as a pattern of java.text.SimpleDateFormat.",
    )
    unix_precision: Literal["nanoseconds", "microseconds", "milliseconds", "seconds"] = option(
        default="milliseconds",
        importance=LOW,
        doc="Unit of the unix time. Digits finer than a millisecond are lost in every conversion.",
    )
    replace_null_with_default: bool = replace_null_with_default()
    field_syntax_version: FieldSyntax = field_syntax_version()

    def check(self) -> list[ConfigError]:
        """Refuse strings without a valid format."""
        parse_field_path(self.field, self.field_syntax_version)
        blank = not self.format.strip()
        if blank and self.target_type == "string":
            text = "TimestampConverter requires format option to be specified when using string timestamps"
            return [ConfigRuleError(text, "format")]
        try:
            DateFormat("" if blank else self.format)
        except ValueError as error:
            text = "TimestampConverter requires a SimpleDateFormat-compatible pattern for string timestamps"
            return [ConfigRuleError(f"{text}: {self.format} ({error})", "format")]
        return []


class TimestampConverter(ValueTransformation[TimestampConverterConfig]):
    """Converts a field, or the whole key or value, between representations of an instant."""

    passes_null = False

    def __init__(self, config: TimestampConverterConfig) -> None:
        super().__init__(config)
        self._field: FieldTree[None] | None = None
        if config.field:
            path = parse_field_path(config.field, config.field_syntax_version)
            self._field = FieldTree.of([(path, None)])
        self._format = DateFormat(config.format) if config.format.strip() else None

    def change(self, schema: Schema | None) -> Change:
        """Convert timestamps in values of a schema."""
        if self._field is None:
            change = self._convert(schema, None)
        else:
            defaults = self.config.replace_null_with_default
            change = change_fields(schema, self._field, self._convert, purpose=_PURPOSE, defaults=defaults)
        return Change(change.schema, lambda value: None if value is None else change.value(value))

    def _convert(self, schema: Schema | None, _: None) -> Change:
        if schema is None:
            write = self._writer(_SCHEMALESS)
            return Change(None, lambda value: write(self._guess(value)))
        write, read = self._writer(_CARRIERS), self._reader(_representation(schema))
        converted = _SCHEMAS[self.config.target_type](optional=schema.optional)
        return Change(converted, lambda value: write(read(value)))

    def _guess(self, value: object) -> int:
        """Return the milliseconds in a value without a schema, judging by its Python type."""
        if isinstance(value, (dt.date, dt.time)):
            return milliseconds_of(value)
        if isinstance(value, int) and not isinstance(value, bool):
            if not INT64_MIN <= value <= INT64_MAX:
                raise DataError(f"TimestampConverter was passed a number of more than 64 bits: {excerpt(value)}")
            return self._read_unix(value)
        if isinstance(value, str):
            return self._read_string(value)
        raise DataError(f"TimestampConverter does not support {type_name(value)} objects as timestamps")

    def _reader(self, source: Representation) -> Callable[[Any], int]:
        if source == "string":
            return self._read_string
        return self._read_unix if source == "unix" else _read_date

    def _read_string(self, value: object) -> int:
        if not isinstance(value, str):
            raise DataError(f"Expected string timestamp to be a string, but found {type_name(value)}")
        if self._format is None:
            raise DataError("TimestampConverter has a string to read: set its option format to the pattern")
        try:
            return self._format.parse(value)
        except ValueError as error:
            pattern = self._format.pattern
            text = f"Could not parse timestamp: value ({value}) does not match pattern ({pattern})"
            raise DataError(f"{text}: {error}") from error

    def _read_unix(self, value: object) -> int:
        if not isinstance(value, int) or isinstance(value, bool):
            raise DataError(f"Expected Unix timestamp to be a whole number, but found {type_name(value)}")
        units, milliseconds = _PRECISIONS[self.config.unix_precision]
        return _rescaled(value, milliseconds, units)

    def _write_unix(self, value: int) -> int:
        units, milliseconds = _PRECISIONS[self.config.unix_precision]
        return _rescaled(value, units, milliseconds)

    def _writer(self, carriers: Mapping[str, Callable[[int], Any]]) -> Callable[[int], Any]:
        """Return the function that converts milliseconds since the epoch to the target type."""
        if self.config.target_type == "unix":
            return self._write_unix
        if self.config.target_type == "string" and self._format is not None:
            return self._format.format
        return carriers[self.config.target_type]


def _representation(schema: Schema) -> Representation:
    if schema.name in _LOGICAL:
        return _LOGICAL[schema.name]
    if schema.type is Type.STRING:
        return "string"
    if schema.type is Type.INT64:
        return "unix"
    raise DataError(f"Schema {schema!r} does not correspond to a known timestamp type format")


def _read_date(value: object) -> int:
    if not isinstance(value, (dt.date, dt.time)):
        raise DataError(f"Expected a date, a time or a timestamp, but found {type_name(value)}")
    return milliseconds_of(value)


def _rescaled(value: int, multiplier: int, divisor: int) -> int:
    """Convert between units like Java's ``TimeUnit``: truncated towards zero and clipped to 64 bits."""
    magnitude = abs(value) * multiplier // divisor
    return max(-magnitude, INT64_MIN) if value < 0 else min(magnitude, INT64_MAX)


# The number of units, and the number of milliseconds they make up.
_PRECISIONS: Final = {
    "nanoseconds": (1_000_000, 1),
    "microseconds": (1000, 1),
    "milliseconds": (1, 1),
    "seconds": (1, 1000),
}
_LOGICAL: Final[Mapping[str | None, Representation]] = {
    DATE_NAME: "Date",
    TIME_NAME: "Time",
    TIMESTAMP_NAME: "Timestamp",
}
_SCHEMAS: Final[Mapping[str, Callable[..., Schema]]] = {
    "string": Schema.string,
    "unix": Schema.int64,
    "Date": date_schema,
    "Time": time_schema,
    "Timestamp": timestamp_schema,
}
_CARRIERS: Final[Mapping[str, Callable[[int], Any]]] = {
    "Date": lambda milliseconds: date_from_days(milliseconds // DAY_MS),
    "Time": lambda milliseconds: time_from_milliseconds(milliseconds % DAY_MS),
    "Timestamp": timestamp_from_milliseconds,
}
# Without a schema, all three are timestamps, as in Java.
_SCHEMALESS: Final[Mapping[str, Callable[[int], Any]]] = {
    "Date": lambda milliseconds: timestamp_from_milliseconds(milliseconds - milliseconds % DAY_MS),
    "Time": lambda milliseconds: timestamp_from_milliseconds(milliseconds % DAY_MS),
    "Timestamp": timestamp_from_milliseconds,
}
