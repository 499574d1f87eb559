"""Column types of CSV files: how a value's text is parsed, and which type is inferred from texts.

This is the specification; the column path of :mod:`connect.kits.files.readers.columns` must agree with it. White space
around numbers, dates and times is allowed. Nothing is rounded or cut (I5), except to the precision of a float.
"""

from __future__ import annotations

import datetime as dt
import decimal
import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any, Final

from connect.data import Schema, date_schema, decimal_schema, time_schema, timestamp_schema
from connect.data.numerals import integer_range, single
from connect.errors import SchemaError

__all__ = ["DECIMAL_DIGITS", "ColumnType", "column_type", "inferred_type"]

DECIMAL_DIGITS: Final = 38

_BLANK: Final = " \t"
_INTEGER: Final = re.compile(r"(-?)0*([0-9]+)")
_FLOAT: Final = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_NOT_FINITE: Final = re.compile(r"([+-]?)(?:(inf(?:inity)?)|nan(?:\([0-9A-Za-z_]*\))?)", re.IGNORECASE)
_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_TIME: Final = re.compile(r"([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:\.([0-9]*))?)?")
_TIMESTAMP: Final = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})(?:[T ]([0-9]{2})(?::([0-9]{2})(?::([0-9]{2})(?:\.([0-9]+))?)?)?"
    r"(Z|[+-][0-9]{2}(?::?[0-9]{2})?)?)?"
)
_BOOLEANS: Final = {
    **dict.fromkeys(("true", "True", "TRUE", "1"), True),
    **dict.fromkeys(("false", "False", "FALSE", "0"), False),
}
_DECIMAL_TYPE: Final = re.compile(r"decimal\(([0-9]{1,2})\)")
_EXPONENT_LIMIT: Final = 1000
_INT64_DIGITS: Final = 19
_FORMS: Final = tuple(
    (name, re.compile(form))
    for name, form in (
        ("boolean", r"true|false|True|False|TRUE|FALSE"),
        ("int64", r"0|-?[1-9][0-9]*"),
        ("float64", r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?"),
        ("date", r"[0-9]{4}-[0-9]{2}-[0-9]{2}"),
        ("timestamp", r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}.*"),
    )
)
"""The types that are inferred, in this order, and the texts taken for each: those the type gives back as they were.

0123 is no number, so that no postcode loses its zero.
"""


@dataclass(frozen=True, slots=True)
class ColumnType:
    """A type: its name, its optional schema, and its parser, which raises a ``ValueError`` with the reason.

    An inferred type takes only texts of a ``form``, which the type gives back as they were.
    """

    name: str
    schema: Schema
    parse: Callable[[str], Any]
    form: re.Pattern[str] | None = None


@lru_cache(maxsize=128)
def column_type(name: str) -> ColumnType:
    """Return the type of that name. Raises :class:`~connect.errors.SchemaError` if there is none."""
    if name in _TYPES:
        return _TYPES[name]
    scale = _DECIMAL_TYPE.fullmatch(name)
    if scale is not None and int(scale[1]) <= DECIMAL_DIGITS:
        schema = decimal_schema(int(scale[1]), optional=True)
        return ColumnType(name, schema, partial(_parse_decimal, int(scale[1])))
    raise SchemaError(f"Unknown type {name}: use one of {', '.join(_TYPES)}, decimal(0) to decimal(38)")


def inferred_type(texts: Iterable[str]) -> ColumnType:
    """Return the first type that parses all ``texts``, none of which stands for null; otherwise string."""
    values = set(texts)
    if values:
        for name, form in _FORMS:
            found = column_type(name)
            if all(form.fullmatch(value) for value in values) and _reads(found, values):
                taken = _spellings(values) if name == "boolean" else form
                return replace(found, parse=partial(_parse_in_form, taken, found.parse), form=taken)
    return column_type("string")


def _spellings(booleans: Iterable[str]) -> re.Pattern[str]:
    """Return the form of booleans that are written as some of those are."""
    ways = {str.lower if text.islower() else str.upper if text.isupper() else str.capitalize for text in booleans}
    return re.compile("|".join(sorted(way(text) for way in ways for text in ("true", "false"))))


def _parse_in_form(form: re.Pattern[str], parse: Callable[[str], Any], text: str) -> Any:
    found = parse(text)
    if not form.fullmatch(text):
        raise ValueError(f"the type was inferred, and it would read this as {found}, which is not written the same way")
    return found


def _reads(found: ColumnType, texts: Iterable[str]) -> bool:
    try:
        for text in texts:
            found.parse(text)
    except ValueError:
        return False
    return True


def _parse_integer(bits: int, text: str) -> int:
    match = _INTEGER.fullmatch(text.strip(_BLANK))
    # Check the length first: Python refuses to parse thousands of digits.
    if match is None or len(match[2]) > _INT64_DIGITS:
        raise ValueError(f"it is not an integer of {bits} bits")
    number = int(match[1] + match[2])
    low, high = integer_range(bits)
    if not low <= number <= high:
        raise ValueError(f"it is not an integer of {bits} bits")
    return number


def _parse_float64(text: str) -> float:
    stripped = text.strip(_BLANK)
    if _FLOAT.fullmatch(stripped):
        number = float(stripped)
        if math.isinf(number):
            raise ValueError("it is too large for a float")
        return number
    if match := _NOT_FINITE.fullmatch(stripped):
        return (-math.inf if match[1] == "-" else math.inf) if match[2] else math.nan
    raise ValueError("it is not a number")


def _parse_float32(text: str) -> float:
    number = _parse_float64(text)
    rounded = single(number)
    if math.isinf(rounded) and not math.isinf(number):
        raise ValueError("it is too large for a float32")
    return rounded


def _parse_boolean(text: str) -> bool:
    if text not in _BOOLEANS:
        raise ValueError("it is neither true nor false")
    return _BOOLEANS[text]


def _parse_date(text: str) -> dt.date:
    stripped = text.strip(_BLANK)
    if not _DATE.fullmatch(stripped):
        raise ValueError("it is not a date such as 2013-12-31")
    return dt.date.fromisoformat(stripped)


def _parse_time(text: str) -> dt.time:
    match = _TIME.fullmatch(text.strip(_BLANK))
    if match is None:
        raise ValueError("it is not a time such as 23:59:59.999")
    return dt.time(int(match[1]), int(match[2]), int(match[3] or 0), 1000 * _milliseconds(match[4]))


def _parse_timestamp(text: str) -> dt.datetime:
    match = _TIMESTAMP.fullmatch(text.strip(_BLANK))
    if match is None:
        raise ValueError("it is not a timestamp such as 2013-12-31 23:59:59.999Z")
    day, hour, minute, second, fraction, zone = match.groups()
    time = dt.time(int(hour or 0), int(minute or 0), int(second or 0), 1000 * _milliseconds(fraction))
    local = dt.datetime.combine(dt.date.fromisoformat(day), time, dt.UTC)
    try:
        return local - _zone_offset(zone)
    except OverflowError as error:
        raise ValueError("it is outside the years 1 to 9999") from error


def _zone_offset(zone: str | None) -> dt.timedelta:
    if zone is None or zone == "Z":
        return dt.timedelta()
    hours, minutes = int(zone[1:3]), int(zone[3:].removeprefix(":") or 0)
    if hours > 23 or minutes > 59:
        raise ValueError("its time zone is not an offset such as +02:00")
    offset = dt.timedelta(hours=hours, minutes=minutes)
    return -offset if zone[0] == "-" else offset


def _milliseconds(fraction: str | None) -> int:
    digits = (fraction or "").rstrip("0")
    if len(digits) > 3:
        raise ValueError("it is more precise than a millisecond; declare the column as a string to keep the precision")
    return int(digits.ljust(3, "0"))


def _parse_decimal(scale: int, text: str) -> decimal.Decimal:
    stripped = text.strip(_BLANK)
    if not _FLOAT.fullmatch(stripped):
        raise ValueError("it is not a decimal number")
    number = decimal.Decimal(stripped)
    exponent = number.as_tuple().exponent
    if not isinstance(exponent, int) or abs(exponent) > _EXPONENT_LIMIT:
        raise ValueError(f"it has more than {DECIMAL_DIGITS} digits")
    context = decimal.Context(prec=DECIMAL_DIGITS, traps=[decimal.Inexact, decimal.InvalidOperation])
    try:
        exact = number.quantize(decimal.Decimal((0, (1,), -scale)), context=context)
    except decimal.Inexact as error:
        raise ValueError(f"it has more than {scale} decimal places") from error
    except decimal.InvalidOperation as error:
        raise ValueError(f"it has more than {DECIMAL_DIGITS} digits") from error
    # Connect's Decimal has no negative zero.
    return abs(exact) if exact.is_zero() else exact


def _types() -> dict[str, ColumnType]:
    integers = {8: Schema.int8, 16: Schema.int16, 32: Schema.int32, 64: Schema.int64}
    types = [
        ColumnType("string", Schema.string(optional=True), str),
        ColumnType("boolean", Schema.boolean(optional=True), _parse_boolean),
        *(
            ColumnType(f"int{bits}", schema(optional=True), partial(_parse_integer, bits))
            for bits, schema in integers.items()
        ),
        ColumnType("float32", Schema.float32(optional=True), _parse_float32),
        ColumnType("float64", Schema.float64(optional=True), _parse_float64),
        ColumnType("date", date_schema(optional=True), _parse_date),
        ColumnType("time", time_schema(optional=True), _parse_time),
        ColumnType("timestamp", timestamp_schema(optional=True), _parse_timestamp),
    ]
    return {each.name: each for each in types}


_TYPES: Final = _types()
