"""Values as text in the format that :func:`~connect.data.values.parse_string` reads."""

from __future__ import annotations

import base64
import datetime as dt
import decimal
from collections.abc import Mapping, Sequence
from typing import Any, Final

from connect.data.logical import EPOCH, instant_in_utc
from connect.data.numerals import double_text, float_text, integer_text
from connect.data.schema import Field, Schema, Type
from connect.errors import DataError
from connect.internals.java.calendar_fields import calendar_day

__all__ = ["convert_to_string", "escape"]

_ONE_DAY: Final = EPOCH + dt.timedelta(days=1)


def convert_to_string(schema: Schema | None, value: Any) -> str | None:
    """Return the text of a value: ``true``, ``1.0E10``, ``2019-08-23``, ``[1,"a"]``, ``{"k":2}``; ``None`` for null.

    Text is returned unchanged, but quoted and escaped inside arrays, maps and structs. Bytes become base64. The schema
    is needed only to distinguish structs from maps and single from double precision; otherwise ``None`` will do. Raises
    :class:`~connect.errors.DataError` for an object that has none of Connect's types.
    """
    if value is None or isinstance(value, str):
        return value
    try:
        return _text(schema, value)
    except RecursionError as error:
        raise DataError(f"The {type(value).__name__} is nested too deeply to be written as text.") from error


def escape(value: str) -> str:
    """Return the text with a backslash before each quote and each backslash."""
    return value.replace("\\", "\\\\").replace('"', '\\"')


def _text(schema: Schema | None, value: Any) -> str:
    match value:
        case bool():
            text = "true" if value else "false"
        case int():
            text = integer_text(value)
        case decimal.Decimal():
            text = str(value)
        case float():
            single = schema is not None and schema.type is Type.FLOAT32
            text = float_text(value) if single else double_text(value)
        case bytes() | bytearray() | memoryview():
            text = base64.b64encode(value).decode("ascii")
        case dt.date() | dt.time():
            text = _time_text(value)
        case Mapping():
            text = _entries_text(schema, value)
        case Sequence():
            element = schema and schema.value_schema
            text = f"[{','.join(_embedded(element, item) for item in value)}]"
        case _:
            raise DataError(f"A {type(value).__name__} cannot be written as text: it is not a type of Kafka Connect.")
    return text


def _embedded(schema: Schema | None, value: Any) -> str:
    """Return the text of a value inside an array, a map or a struct."""
    if value is None:
        return "null"
    if isinstance(value, str):
        return f'"{escape(value)}"'
    text = _text(schema, value)
    return f'"{text}"' if isinstance(value, (bytes, bytearray, memoryview)) else text


def _entries_text(schema: Schema | None, value: Mapping[Any, Any]) -> str:
    if schema is not None and schema.type is Type.STRUCT:
        entries = [f'"{escape(field.name)}":{_field_text(field, value)}' for field in schema.fields]
    else:
        keys, values = (schema.key_schema, schema.value_schema) if schema is not None else (None, None)
        entries = [f"{_embedded(keys, key)}:{_embedded(values, item)}" for key, item in value.items()]
    return f"{{{','.join(entries)}}}"


def _field_text(field: Field, struct: Mapping[str, Any]) -> str:
    value = struct.get(field.name)
    return _embedded(field.schema, field.schema.default if value is None else value)


def _time_text(value: dt.date | dt.time) -> str:
    if isinstance(value, dt.time):
        return value.isoformat("milliseconds") + "Z"
    if not isinstance(value, dt.datetime):
        return _day_text(value)
    instant = instant_in_utc(value)
    # Connect has one type for dates, times and timestamps, and tells them apart by what is zero in them.
    if EPOCH <= instant < _ONE_DAY:
        return instant.time().isoformat("milliseconds") + "Z"
    if instant.time().replace(microsecond=instant.microsecond // 1000) == dt.time():
        return _day_text(instant)
    return f"{_day_text(instant)}T{instant.time().isoformat('milliseconds')}Z"


def _day_text(value: dt.date) -> str:
    """Return a date in Java's calendar, which is Julian before October 1582."""
    year, month, day = calendar_day(value)
    return f"{year:04}-{month:02}-{day:02}"
