"""Values as JSON, formatted like Kafka Connect's JSON converter without schemas.

Timestamps are milliseconds, dates are days, bytes are base64; decimals are base64 of their unscaled value, or numbers.
Nothing is rounded: a number without a JSON form is an error.
"""

from __future__ import annotations

import base64
import datetime as dt
import json
import math
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

from connect.data import Schema
from connect.data.logical import (
    days_from_date,
    milliseconds_from_time,
    milliseconds_from_timestamp,
    unscaled_from_decimal,
)
from connect.data.numerals import integer_text
from connect.errors import DataError

__all__ = ["json_text", "parse_json"]

_ENCODE_STRING: Final[Callable[[str], str]] = json.encoder.encode_basestring


def parse_json(data: bytes | str, what: str) -> Any:
    """Parse JSON. Raises :class:`~connect.errors.DataError`, whose text begins with ``what``."""
    try:
        return json.loads(data, parse_constant=_refuse, parse_float=_finite)
    except (ValueError, RecursionError) as error:
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else _shortened(str(error))
        raise DataError(f"{what} is not JSON: {reason}") from None


def json_text(value: Any, *, numeric_decimals: bool = True, schema: Schema | None = None) -> str:
    """Return the JSON of a value. Raises :class:`~connect.errors.DataError` if it has none."""
    try:
        return "".join(_parts(value, schema, numeric_decimals))
    except RecursionError:
        raise DataError("The value is nested too deeply for JSON.") from None


def _parts(value: Any, schema: Schema | None, numeric: bool) -> list[str]:  # noqa: PLR0911
    match value:
        case None:
            return ["null"]
        case str():
            return [_ENCODE_STRING(value)]
        case bool():
            return ["true" if value else "false"]
        case int():
            return [integer_text(value)]
        case float():
            if not math.isfinite(value):
                raise DataError(f"{value} cannot be written as a JSON number.")
            return [repr(value)]
        case Mapping():
            return _object(value, schema, numeric)
        case bytes() | bytearray() | memoryview():
            return [f'"{base64.b64encode(bytes(value)).decode()}"']
        case Sequence():
            return _array(value, schema, numeric)
        case _:
            return [_scalar(value, schema, numeric)]


def _object(value: Mapping[Any, Any], schema: Schema | None, numeric: bool) -> list[str]:
    parts, separator = ["{"], ""
    members = {field.name: field.schema for field in schema.fields} if schema is not None and schema.fields else {}
    items = schema.value_schema if schema is not None and not members else None
    for name, item in value.items():
        key = name if isinstance(name, str) else "".join(_parts(name, None, numeric))
        parts += (separator, _ENCODE_STRING(key), ":")
        parts += _parts(item, members.get(name, items), numeric)
        separator = ","
    parts.append("}")
    return parts


def _array(value: Sequence[Any], schema: Schema | None, numeric: bool) -> list[str]:
    parts, separator = ["["], ""
    items = schema.value_schema if schema is not None else None
    for item in value:
        parts.append(separator)
        parts += _parts(item, items, numeric)
        separator = ","
    parts.append("]")
    return parts


def _scalar(value: Any, schema: Schema | None, numeric: bool) -> str:
    match value:
        case Decimal():
            return _decimal(value, schema, numeric)
        case dt.datetime():
            return str(milliseconds_from_timestamp(value))
        case dt.date():
            return str(days_from_date(value))
        case dt.time():
            return str(milliseconds_from_time(value))
        case _:
            raise DataError(f"A {type(value).__name__} cannot be written as JSON.")


def _decimal(value: Decimal, schema: Schema | None, numeric: bool) -> str:
    if not value.is_finite():
        raise DataError(f"{value} cannot be written as a JSON number.")
    if numeric:
        return format(value, "f")
    given = schema.parameters.get("scale") if schema is not None and schema.parameters else None
    scale = int(given) if given is not None else max(0, -int(value.as_tuple().exponent))
    return f'"{base64.b64encode(unscaled_from_decimal(value, scale)).decode()}"'


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON number")


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"{_shortened(text)} is too large a number")
    return number


def _shortened(text: str) -> str:
    return text if len(text) < 200 else f"{text[:200]}..."
