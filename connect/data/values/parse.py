"""Text as values: numbers, dates, arrays and maps are recognised; any other text is a string."""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Iterable
from decimal import Decimal
from typing import Any, Final

from connect.data.hash_collisions import refuse_colliding_keys
from connect.data.logical import (
    date_schema,
    decimal_schema,
    time_from_milliseconds,
    time_schema,
    timestamp_from_milliseconds,
    timestamp_schema,
)
from connect.data.numerals import INT32_MAX, double_text, float_text, single, single_digits, to_single
from connect.data.record import SchemaAndValue
from connect.data.schema import INTEGER_RANGES, Schema, Type, validate
from connect.data.values.format import convert_to_string
from connect.errors import DataError
from connect.internals.java.calendar_fields import date_of

__all__ = ["exact_number", "parse_exactly", "parse_literal", "parse_string"]

_STRING: Final = Schema.string()
_BOOLEAN: Final = Schema.boolean()
_FLOAT32: Final = Schema.float32()
_FLOAT64: Final = Schema.float64()
_INTEGERS: Final = tuple(
    (*INTEGER_RANGES[schema.type], schema) for schema in (Schema.int8(), Schema.int16(), Schema.int32(), Schema.int64())
)
_DATE: Final = date_schema()
_TIME: Final = time_schema()
_TIMESTAMP: Final = timestamp_schema()

_DEEPEST: Final = 100
_TOKEN: Final = re.compile(r'[:,{}\[\]"]|(?:\\(?:.|\Z)|[^\\:,{}\[\]"])+', re.DOTALL)
_NUMBER: Final = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,10})?")
_CLOCK: Final = r"(\d+):(\d+):(\d+)\.(\d+)Z"
_TIMES: Final = {
    10: re.compile(r"(\d+)-(\d+)-(\d+)"),
    13: re.compile(_CLOCK),
    24: re.compile(r"(\d+)-(\d+)-(\d+)T" + _CLOCK),
}
_BLANKS: Final = "".join(map(chr, range(33)))
_QUOTED_OR_BLANKS: Final = re.compile(r'("(?:[^"\\]|\\.)*")|[\x00-\x20]+', re.DOTALL)
_STARTS: Final = frozenset(_BLANKS + "[{+-ntf")
"""The first characters, besides digits, of texts that may be something other than a string."""
_NUMBERS: Final = (Type.INT8, Type.INT16, Type.INT32, Type.INT64, Type.FLOAT32, Type.FLOAT64)


def parse_string(text: str | None) -> SchemaAndValue:
    """Return the schema and the value that ``text`` represents; a string if it represents nothing else.

    Whole numbers get the smallest of Connect's integer types that holds them; other numbers single precision, else
    double, else Decimal. ``2019-08-23``, ``14:34:54.346Z`` and ``2019-08-23T14:34:54.346Z`` are a Date, a Time and a
    Timestamp. ``[1,2]`` and ``{"a":1}`` get a schema if their elements have one in common, otherwise ``None``, as does
    null. Text inside them must be quoted, and keeps its backslashes.
    """
    if text is None:
        return SchemaAndValue(None, None)
    first = text[:1]
    if first not in _STARTS and not first.isdigit():
        return SchemaAndValue(_STRING, text)
    parsed = _Parser(text).value(0)
    return SchemaAndValue(*parsed) if parsed is not None else SchemaAndValue(None, None)


def parse_exactly(text: str | None) -> SchemaAndValue:
    """Return what ``text`` represents if it is written back as the same text; otherwise the text as a string.

    So ``10:30``, ``007``, ``+5`` and ``2024-01-01,x`` stay as they are, and no digit is lost (I5).
    """
    parsed = parse_string(text)
    if text is None or parsed.schema is _STRING or convert_to_string(*parsed) == text:
        return parsed
    return _float_of(text) or SchemaAndValue(_STRING, text)


def parse_literal(text: str) -> SchemaAndValue:
    """Return what a header or a literal represents: as :func:`parse_exactly`, but arrays and maps may have blanks.

    And ``null`` is null.
    """
    parsed = parse_string(text)
    if parsed.value is None:
        return parsed
    if isinstance(parsed.value, (list, dict)):
        written = convert_to_string(*parsed) or ""
        return parsed if _without_blanks(written) == _without_blanks(text) else SchemaAndValue(_STRING, text)
    return parse_exactly(text)


def _without_blanks(text: str) -> str:
    """Return a text without the blanks that are not in quotes."""
    return _QUOTED_OR_BLANKS.sub(lambda found: found[1] or "", text)


def _float_of(text: str) -> SchemaAndValue | None:
    """Return the float that is written as ``text``: ``parse_string`` takes ``1.0`` for a whole number."""
    number = exact_number(text)
    if number is None:
        return None
    if float_text(as_single := to_single(number)) == text:
        return SchemaAndValue(_FLOAT32, as_single)
    return SchemaAndValue(_FLOAT64, as_double) if double_text(as_double := float(number)) == text else None


def exact_number(text: str) -> Decimal | None:
    """Return the number in the text as Java's ``BigDecimal`` would read it, or ``None``."""
    if not _NUMBER.fullmatch(text):
        return None
    number = Decimal(text)
    exponent = number.as_tuple().exponent
    return number if isinstance(exponent, int) and -INT32_MAX <= exponent <= INT32_MAX else None


class _Parser:
    """Parses one text, token by token. A value of ``None`` means null."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = _TOKEN.findall(text)
        self._next = 0

    def value(self, depth: int) -> SchemaAndValue | None:
        """Return the next value; at depth 0 the text after it is ignored."""
        if depth and self._take('"'):
            return self._quoted()
        start = self._next
        for literal, parsed in _LITERALS.items():
            if self._take(literal) and (depth or self._next == len(self._tokens)):
                return parsed
            self._next = start
        try:
            if self._take("["):
                return self._array(depth + 1)
            if self._take("{"):
                return self._map(depth + 1)
        except DataError:
            self._next = start
        return self._scalar(depth)

    def _scalar(self, depth: int) -> SchemaAndValue:
        self._skip_blanks()
        token = self._tokens[self._next].strip(_BLANKS) if self._next < len(self._tokens) else ""
        self._next += 1
        parsed = None
        if token[:1].isdigit():
            parsed = self._time(token)
        if parsed is None and (token[:1].isdigit() or token[:1] in ("+", "-")):
            parsed = _number(token)
        if parsed is not None:
            return parsed
        if depth:
            raise DataError("Failed to parse embedded value")
        return SchemaAndValue(_STRING, self._text)

    def _quoted(self) -> SchemaAndValue:
        parts = []
        while self._next < len(self._tokens) and not self._take('"'):
            parts.append(self._tokens[self._next])
            self._next += 1
        content = "".join(parts)
        return _time_of(content) or SchemaAndValue(_STRING, content)

    def _time(self, token: str) -> SchemaAndValue | None:
        # The colons of a time are tokens of their own: four more belong to it.
        rest = self._tokens[self._next : self._next + 4]
        parsed = _time_of(token + "".join(rest)) if len(rest) == 4 else None
        if parsed is not None:
            self._next += 4
            return parsed
        return _time_of(token)

    def _array(self, depth: int) -> SchemaAndValue:
        _check_depth(depth)
        elements: list[SchemaAndValue | None] = []
        while self._next < len(self._tokens):
            if self._take("]"):
                return _array_of(elements)
            if self._take(","):
                raise DataError("Unable to parse an empty array element")
            elements.append(self.value(depth))
            if not self._take(","):
                if self._take("]"):
                    return _array_of(elements)
                raise DataError("Array elements missing ',' delimiter")
        raise DataError("Array is missing terminating ']'")

    def _map(self, depth: int) -> SchemaAndValue:
        _check_depth(depth)
        keys: list[SchemaAndValue | None] = []
        values: list[SchemaAndValue | None] = []
        while self._next < len(self._tokens):
            if self._take("}"):
                return _map_of(keys, values)
            if self._take(","):
                raise DataError("Unable to parse a map entry with no key or value")
            key = self.value(depth)
            if key is None or isinstance(key.value, (list, dict)):
                raise DataError("Map entry may not have a null key, nor an array or a map for one")
            if not self._take(":"):
                raise DataError("Map entry is missing ':'")
            keys.append(key)
            values.append(self.value(depth))
            self._take(",")
        raise DataError("Map is missing terminating '}'")

    def _take(self, expected: str) -> bool:
        """Consume the next token, after blanks, if it is the expected one. Return whether it was."""
        self._skip_blanks()
        if self._next < len(self._tokens) and self._tokens[self._next].strip(_BLANKS) == expected:
            self._next += 1
            return True
        return False

    def _skip_blanks(self) -> None:
        while self._next + 1 < len(self._tokens) and not self._tokens[self._next].strip(_BLANKS):
            self._next += 1


_LITERALS: Final = {
    "null": None,
    "true": SchemaAndValue(_BOOLEAN, True),
    "false": SchemaAndValue(_BOOLEAN, False),
}


def _check_depth(depth: int) -> None:
    if depth > _DEEPEST:
        raise DataError(f"Arrays and maps are nested deeper than {_DEEPEST}")


# -- numbers and times -------------------------------------------------------------------------------------


def _number(token: str) -> SchemaAndValue | None:
    number = exact_number(token)
    if number is None:
        return None
    # Only once the size is known: the integer of 1e100000000 would fill the memory.
    if not number or (number.adjusted() < 19 and number == number.to_integral_value()):
        integer = int(number) if number else 0
        for low, high, schema in _INTEGERS:
            if low <= integer <= high:
                return SchemaAndValue(schema, integer)
    exponent = number.as_tuple().exponent
    assert isinstance(exponent, int)
    if exponent:
        if math.isfinite(as_single := to_single(number)):
            return SchemaAndValue(_FLOAT32, as_single)
        if math.isfinite(as_double := float(number)):
            return SchemaAndValue(_FLOAT64, as_double)
    return SchemaAndValue(decimal_schema(-exponent), number)


def _time_of(token: str) -> SchemaAndValue | None:
    """Return the Date, Time or Timestamp of a token. As in Java, the 32nd of a month is in the next one."""
    token = token.replace("\\:", ":")
    pattern = _TIMES.get(len(token))
    found = pattern.match(token) if pattern else None
    if found is None:
        return None
    numbers = [int(group) for group in found.groups()]
    try:
        if len(numbers) == 4:
            return SchemaAndValue(_TIME, time_from_milliseconds(_milliseconds(*numbers)))
        day = date_of(*numbers[:3])
        if len(numbers) == 3:
            return SchemaAndValue(_DATE, day)
        midnight = dt.datetime.combine(day, dt.time(), dt.UTC)
        instant = timestamp_from_milliseconds(_milliseconds(*numbers[3:])) - timestamp_from_milliseconds(0)
        return SchemaAndValue(_TIMESTAMP, midnight + instant)
    except (DataError, ValueError, OverflowError):
        return None


def _milliseconds(hours: int, minutes: int, seconds: int, milliseconds: int) -> int:
    return ((hours * 60 + minutes) * 60 + seconds) * 1000 + milliseconds


# -- arrays and maps ---------------------------------------------------------------------------------------


def _array_of(elements: list[SchemaAndValue | None]) -> SchemaAndValue:
    schema = _common_schema(elements)
    _refuse_null(schema, elements, elements)
    if schema is None:
        return _kind(elements)(None, [_schemaless(element) for element in elements])
    return SchemaAndValue(Schema.array(schema), [_aligned(schema, element) for element in elements])


def _map_of(keys: list[SchemaAndValue | None], values: list[SchemaAndValue | None]) -> SchemaAndValue:
    key_schema, value_schema = _common_schema(keys), _common_schema(values)
    python_keys = [_schemaless(key) if key_schema is None else _aligned(key_schema, key) for key in keys]
    refuse_colliding_keys(python_keys)
    entries = dict(zip(python_keys, values, strict=True))
    if key_schema is not None:
        _refuse_null(value_schema, values, entries.values())
    if key_schema is None or value_schema is None:
        untyped = {_untyped(key_schema, key): _schemaless(value) for key, value in entries.items()}
        return (SchemaAndValue if keys and key_schema is None else _kind(values))(None, untyped)
    aligned = {key: _aligned(value_schema, value) for key, value in entries.items()}
    return SchemaAndValue(Schema.map(key_schema, value_schema), aligned)


def _refuse_null(
    schema: Schema | None, elements: Iterable[SchemaAndValue | None], kept: Iterable[SchemaAndValue | None]
) -> None:
    """Refuse null elements in an array, or null values in a map, if the others have a type in common."""
    kinds = {type(element.value) for element in elements if element is not None}
    if (schema is not None or kinds in ({list}, {dict})) and None in kept:
        raise DataError("Unable to convert a null value to a schema that requires a value")


def _common_schema(elements: list[SchemaAndValue | None]) -> Schema | None:
    """Return the schema that all elements except nulls have in common, or ``None``.

    An empty array or map does not determine a schema. It may precede one that does if that one's schema allows it; as
    in Kafka Connect, the last one decides.
    """
    present = [element for element in elements if element is not None]
    if not present or present[-1].schema is None:
        return None
    common: Schema | None = present[-1].schema
    for schema in {element.schema for element in present if element.schema is not None}:
        common = _wider(common, schema)
        if common is None:
            return None
    undetermined = [element for element in present if element.schema is None]
    fits = all(isinstance(element, _Undetermined) and _fits(common, element.value) for element in undetermined)
    return common if fits else None


class _Undetermined(SchemaAndValue):
    """An array or map whose schema is undetermined because it, or everything in it, is empty."""

    __slots__ = ()


def _kind(elements: list[SchemaAndValue | None]) -> type[SchemaAndValue]:
    """Return the class of an array or map of elements that have no schema in common."""
    return _Undetermined if all(isinstance(element, _Undetermined) for element in elements) else SchemaAndValue


def _fits(schema: Schema | None, value: Any) -> bool:
    try:
        validate(schema, value)
    except DataError:
        return False
    return True


def _wider(first: Schema | None, second: Schema | None) -> Schema | None:
    """Return which of two schemas can hold the values of both, or ``None``."""
    if first is second or first is None or second is None:
        return first if second is not None else None
    if first.name is not None or second.name is not None:
        return None
    if first.type in _NUMBERS and second.type in _NUMBERS:
        return max(first, second, key=lambda schema: _NUMBERS.index(schema.type))
    if first.type is not second.type or first.type.is_primitive:
        return None
    element = _wider(first.value_schema, second.value_schema)
    if element is None or first.type is Type.ARRAY:
        return element and Schema.array(element)
    key = _wider(first.key_schema, second.key_schema)
    return key and Schema.map(key, element)


def _aligned(schema: Schema, element: SchemaAndValue | None) -> Any:
    """Return an element as a value of the common schema."""
    assert element is not None
    return element.value if element.schema is schema else _converted(schema, element.value)


def _converted(schema: Schema, value: Any) -> Any:
    if schema.type is Type.FLOAT32:
        return single(value)
    if schema.type is Type.FLOAT64:
        return float(value)
    if schema.value_schema is None:
        return value
    if schema.key_schema is None:
        return [_converted(schema.value_schema, item) for item in value]
    return {_converted(schema.key_schema, key): _converted(schema.value_schema, item) for key, item in value.items()}


def _schemaless(element: SchemaAndValue | None) -> Any:
    """Return an element as a value among others with which it has no schema in common."""
    return None if element is None else _untyped(element.schema, element.value)


def _untyped(schema: Schema | None, value: Any) -> Any:
    if schema is None or value is None:
        return value
    if schema.type is Type.FLOAT32:
        return single_digits(value)
    if schema.value_schema is None:
        return value
    if schema.key_schema is None:
        return [_untyped(schema.value_schema, item) for item in value]
    return {_untyped(schema.key_schema, key): _untyped(schema.value_schema, item) for key, item in value.items()}
