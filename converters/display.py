"""Values as Java's ``toString`` shows them, which is what the string converter and the file sink write."""

from __future__ import annotations

import base64
import datetime as dt
import decimal
from collections.abc import Mapping, Sequence
from typing import Any, Final

from connect.data import Schema, Type
from connect.data.logical import instant_in_utc
from connect.data.numerals import double_text, float_text, integer_text
from connect.errors import DataError

__all__ = ["display"]

_DAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def display(schema: Schema | None, value: Any) -> str:
    """The text of a value: ``true``, ``1.0E10``, ``[a, b]``, ``{k=v}``, ``Struct{a=1,b=2}``.

    A schema of type struct makes a dict a Struct, whose null fields are left out. Dates and times are shown as Java
    shows a ``java.util.Date`` in UTC. Bytes, of which Java shows an address only, are shown in base64.
    Raises :class:`~connect.errors.DataError` for an object of no type of Kafka Connect's.
    """
    try:
        return _display(schema, value)
    except RecursionError as error:
        raise DataError(f"The {type(value).__name__} is nested too deep to be written as text.") from error


def _display(schema: Schema | None, value: Any) -> str:  # noqa: PLR0911 - one a type
    match value:
        case None:
            return "null"
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case int():
            return integer_text(value)
        case float():
            return float_text(value) if schema is not None and schema.type is Type.FLOAT32 else double_text(value)
        case decimal.Decimal():
            return str(value)
        case bytes() | bytearray() | memoryview():
            return base64.b64encode(value).decode("ascii")
        case dt.date() | dt.time():
            return _display_date(value)
        case Mapping():
            return _display_mapping(schema, value)
        case Sequence():
            item_schema = schema and schema.value_schema
            return f"[{', '.join(_display(item_schema, item) for item in value)}]"
        case _:
            raise DataError(f"A {type(value).__name__} has no text: it is of no type of Kafka Connect's.")


def _display_mapping(schema: Schema | None, value: Mapping[Any, Any]) -> str:
    if schema is not None and schema.type is Type.STRUCT:
        fields = ((field, value.get(field.name)) for field in schema.fields)
        shown = (f"{field.name}={_display(field.schema, item)}" for field, item in fields if item is not None)
        return f"Struct{{{','.join(shown)}}}"
    key_schema, value_schema = (schema.key_schema, schema.value_schema) if schema is not None else (None, None)
    pairs = (f"{_display(key_schema, key)}={_display(value_schema, item)}" for key, item in value.items())
    return f"{{{', '.join(pairs)}}}"


def _display_date(value: dt.date | dt.time) -> str:
    if isinstance(value, dt.time):
        moment = dt.datetime.combine(dt.date(1970, 1, 1), value)
    elif isinstance(value, dt.datetime):
        moment = value if value.tzinfo is None else instant_in_utc(value)
    else:
        moment = dt.datetime.combine(value, dt.time())
    day = f"{_DAYS[moment.weekday()]} {_MONTHS[moment.month - 1]} {moment.day:02}"
    return f"{day} {moment:%H:%M:%S} UTC {moment.year}"
