"""Cast: changes the types of fields, or of the whole key or value."""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Callable, Collection, Mapping
from decimal import Decimal
from typing import Any, Final

from connect.config import HIGH, Config, ConfigRuleError, invalid_value, option, validator
from connect.data import Schema, Type
from connect.data.excerpt import excerpt
from connect.data.logical import (
    DATE_NAME,
    TIME_NAME,
    TIMESTAMP_NAME,
    days_from_date,
    milliseconds_from_time,
    milliseconds_from_timestamp,
)
from connect.data.numerals import (
    INT64_MAX,
    INT64_MIN,
    double_text,
    float_text,
    integer_range,
    single,
    single_digits,
    to_single,
    wrapped,
)
from connect.data.schema import INTEGER_BITS
from connect.data.values import convert_to_int64, convert_to_string
from connect.data.values.parse import exact_number
from connect.errors import ConfigError, DataError
from connect.internals.java.date_text import date_text
from connect.transforms.fields.field_path import FieldSyntax, FieldTree, parse_field_path
from connect.transforms.fields.key_or_value import Change, ValueTransformation, type_name
from connect.transforms.fields.options import field_syntax_version, replace_null_with_default, split_at_colons
from connect.transforms.fields.struct_change import change_fields

__all__ = ["CAST_TARGETS", "Cast", "CastConfig", "cast_function", "schemaless_type"]

CAST_TARGETS: Final = (
    Type.INT8,
    Type.INT16,
    Type.INT32,
    Type.INT64,
    Type.FLOAT32,
    Type.FLOAT64,
    Type.BOOLEAN,
    Type.STRING,
)
_SOURCES: Final = (*CAST_TARGETS, Type.BYTES)
_INTEGER: Final = re.compile(r"[+-]?\d+")
_DECIMAL: Final = re.compile(r"([+-]?(?:NaN|Infinity|(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?))[fFdD]?", re.ASCII)
_HEXADECIMAL: Final = re.compile(
    r"([+-]?0[xX](?:[\da-fA-F]+(?:\.[\da-fA-F]*)?|\.[\da-fA-F]+)[pP][+-]?\d+)[fFdD]?", re.ASCII
)
_WHITESPACE: Final = "".join(map(chr, range(0x21)))


def cast_function(schema: Schema | None, target: Type) -> Callable[[Any], Any]:
    """Return the function that casts non-null values of ``schema`` to the ``target`` type.

    Raises :class:`~connect.errors.DataError` if no value of the schema can be cast; the returned function raises it for
    each value that cannot be cast.
    """
    if schema is not None:
        _require_source(schema.type)
    convert = _string(schema) if target is Type.STRING else _CONVERSIONS[target]
    if schema is None and target is Type.FLOAT32:
        convert = _digits_of_float32
    fallback = _cast_slowly(schema, target, convert)
    direct = {bool: convert, float: convert, str: convert} | _DIRECT.get(target, {})
    if schema is None:
        if target is Type.FLOAT32:
            direct[float] = single_digits
        from_int = _from_integer(Type.INT64, target, convert)
        direct[int] = lambda value: from_int(value) if INT64_MIN <= value <= INT64_MAX else fallback(value)
    elif schema.type in INTEGER_BITS:
        direct[int] = _from_integer(schema.type, target, convert)
    elif schema.type is Type.FLOAT32:
        direct[float] = float_text if target is Type.STRING else lambda value: convert(single(value))

    def cast(value: Any) -> Any:
        convert = direct.get(type(value))
        try:
            return fallback(value) if convert is None else convert(value)
        except ValueError as error:
            # Python does not print integers of more than 4,300 digits.
            raise _out_of_range(excerpt(value)) from error

    return cast


def _cast_slowly(schema: Schema | None, target: Type, convert: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a cast function that works for every type. Common casts have faster ones."""
    if schema is None:
        return lambda value: convert(_supported(value))
    encoding = _ENCODINGS.get(schema.name or "") if target is not Type.STRING else None
    if encoding is None:
        return convert
    kind, encode = encoding
    return lambda value: convert(encode(value) if isinstance(value, kind) else value)


def _from_integer(source: Type, target: Type, convert: Callable[[Any], Any]) -> Callable[[int], Any]:
    if target is Type.STRING:
        return str
    fits = target in INTEGER_BITS and INTEGER_BITS[source] <= INTEGER_BITS[target]
    return _unchanged if fits else convert


def _supported(value: Any) -> Any:
    """Return a value without a schema, if Kafka Connect can cast values of its type."""
    kind = schemaless_type(value)
    if kind is None:
        refusal = "which is not supported by Connect's data API"
        raise DataError(f"Cast transformation was passed a value of type {type_name(value)} {refusal}")
    _require_source(kind)
    return value


def _unchanged(value: Any) -> Any:
    return value


def _require_source(kind: Type) -> None:
    if kind not in _SOURCES:
        supported = ", ".join(source.name for source in _SOURCES)
        text = f"Cast transformation does not support casting from {kind.name}"
        raise DataError(f"{text}; supported types are [{supported}]")


def schemaless_type(value: object) -> Type | None:
    """Return the type of a value without a schema, or ``None`` if Kafka Connect has none for it. Integers are INT64."""
    if isinstance(value, int) and not isinstance(value, bool) and not INT64_MIN <= value <= INT64_MAX:
        return None
    return next((kind for python, kind in _SCHEMALESS if isinstance(value, python)), None)


_SCHEMALESS: Final[tuple[tuple[type | tuple[type, ...], Type], ...]] = (
    (bool, Type.BOOLEAN),
    (int, Type.INT64),
    (float, Type.FLOAT64),
    (str, Type.STRING),
    ((bytes, bytearray, memoryview), Type.BYTES),
    (Mapping, Type.MAP),
    ((list, tuple), Type.ARRAY),
)


def _integer(bits: int) -> Callable[[Any], int]:
    low, high = integer_range(bits)

    def convert(value: Any) -> int:
        if isinstance(value, int):
            return int(value) if low <= value <= high else wrapped(value, bits)
        if isinstance(value, float):
            return _cut_off(value, bits)
        if isinstance(value, str):
            return _parse_integer(value, low, high)
        if isinstance(value, Decimal):
            return wrapped(_whole(value), bits)
        raise _unexpected(value)

    return convert


def _cut_off(value: float, bits: int) -> int:
    """Truncate a float to an integer: to 32 or 64 bits first, because Java has no direct conversion to fewer."""
    if math.isnan(value):
        return 0
    bound = 1 << (max(bits, 32) - 1)
    if value >= bound:
        return wrapped(bound - 1, bits)
    return wrapped(-bound if value <= -bound else int(value), bits)


def _whole(value: Decimal) -> int:
    number = convert_to_int64(None, value)
    return 0 if number is None else number


def _parse_integer(text: str, low: int, high: int) -> int:
    if _INTEGER.fullmatch(text):
        digits = text.lstrip("+-").lstrip("0") or "0"
        if len(digits) <= 19:
            number = -int(digits) if text[0] == "-" else int(digits)
            if low <= number <= high:
                return number
    raise _out_of_range(text)


def _float64(value: Any) -> float:
    if isinstance(value, (int, float, Decimal)):
        try:
            return float(value)
        except OverflowError:
            return math.inf if value > 0 else -math.inf
    if isinstance(value, str):
        text = value.strip(_WHITESPACE)
        if match := _DECIMAL.fullmatch(text):
            return float(match[1])
        if match := _HEXADECIMAL.fullmatch(text):
            return _hexadecimal(match[1])
        raise _out_of_range(value)
    raise _unexpected(value)


def _hexadecimal(text: str) -> float:
    try:
        return float.fromhex(text)
    except OverflowError:
        return -math.inf if text[0] == "-" else math.inf


def _digits_of_float32(value: Any) -> float:
    """Return a number without a schema in single precision: a double with the digits of the single."""
    return single_digits(_float32(value))


def _float32(value: Any) -> float:
    if isinstance(value, (int, Decimal)):
        return to_single(value)
    number = _float64(value)
    # Text is rounded once, as in Java, and not to a double first.
    exact = exact_number(value.strip(_WHITESPACE).rstrip("fFdD")) if isinstance(value, str) else None
    return single(number) if exact is None or math.isinf(number) else to_single(exact)


def _boolean(value: Any) -> bool:
    if isinstance(value, (bool, int)):
        return bool(value)
    if isinstance(value, float):
        return abs(value) >= 1
    if isinstance(value, str):
        return value.lower() == "true"
    if isinstance(value, Decimal):
        return _whole(value) != 0
    raise _unexpected(value)


def _string(schema: Schema | None) -> Callable[[Any], str | None]:
    """Return the text of Java's ``toString``. The schema tells single from double precision."""

    def convert(value: Any) -> str | None:
        return date_text(value) if isinstance(value, (dt.date, dt.time)) else convert_to_string(schema, value)

    return convert


def _out_of_range(text: str) -> DataError:
    return DataError(f"Value ({text}) was out of range for requested data type")


def _unexpected(value: object) -> DataError:
    return DataError(f"Unexpected type in Cast transformation: {type_name(value)}")


_CONVERSIONS: Final[Mapping[Type, Callable[[Any], Any]]] = {
    Type.INT8: _integer(8),
    Type.INT16: _integer(16),
    Type.INT32: _integer(32),
    Type.INT64: _integer(64),
    Type.FLOAT32: _float32,
    Type.FLOAT64: _float64,
    Type.BOOLEAN: _boolean,
}
_DIRECT: Final[Mapping[Type, dict[type, Callable[[Any], Any]]]] = {
    Type.FLOAT32: {float: single},
    Type.FLOAT64: {float: _unchanged},
    Type.BOOLEAN: {bool: _unchanged},
    Type.STRING: {str: _unchanged, float: double_text, bool: {True: "true", False: "false"}.__getitem__},
}
_ENCODINGS: Final[Mapping[str, tuple[type, Callable[[Any], int]]]] = {
    DATE_NAME: (dt.date, days_from_date),
    TIME_NAME: (dt.time, milliseconds_from_time),
    TIMESTAMP_NAME: (dt.datetime, milliseconds_from_timestamp),
}


_PURPOSE: Final = "cast types"


def _target(key: str, name: str) -> Type:
    try:
        target = Type(name.strip().lower())
    except ValueError as error:
        raise invalid_value(key, name, f"Invalid type found in casting spec: {name.strip()}") from error
    if target not in CAST_TARGETS:
        supported = ", ".join(kind.name for kind in CAST_TARGETS)
        text = f"Cast transformation does not support casting to {target.name}"
        raise ConfigRuleError(f"{text}; supported types are [{supported}]", key)
    return target


def _parse_spec(key: str, items: Collection[str]) -> dict[str | None, Type]:
    """Return the target types by field; the field ``None`` stands for the whole value."""
    casts: dict[str | None, Type] = {}
    for item in items:
        parts = split_at_colons(item)
        if len(parts) > 2:
            raise invalid_value(key, items, f"Invalid rename mapping: {item}")
        casts[parts[0].strip() if len(parts) == 2 else None] = _target(key, parts[-1])
    if None in casts and len(items) > 1:
        whole = "Cast transformations that specify a type to cast the entire value to"
        raise ConfigRuleError(f"{whole} may only specify a single cast in their spec", key)
    return casts


@validator("list of colon-delimited pairs, e.g. <code>foo:bar,abc:xyz</code>")
def _cast_spec(key: str, value: Collection[str]) -> None:
    if not value:
        raise ConfigRuleError("Must specify at least one field to cast.", key)
    _parse_spec(key, value)


class CastConfig(Config):
    """The fields to cast, and their types."""

    spec: tuple[str, ...] = option(
        importance=HIGH,
        validator=_cast_spec,
        doc="Fields and the types to cast them to, as field:type; or one type, for the whole key or value. "
        "The types are int8, int16, int32, int64, float32, float64, boolean and string. Bytes can be cast to "
        "string only, which encodes them in base64.",
    )
    replace_null_with_default: bool = replace_null_with_default()
    field_syntax_version: FieldSyntax = field_syntax_version()

    def check(self) -> list[ConfigError]:
        """Refuse malformed paths."""
        for name in _parse_spec("spec", self.spec):
            if name is not None:
                parse_field_path(name, self.field_syntax_version, "spec")
        return []


class Cast(ValueTransformation[CastConfig]):
    """Casts fields, or the whole key or value, to other types. As in Java, numbers wrap and fractions are cut off."""

    def __init__(self, config: CastConfig) -> None:
        super().__init__(config)
        casts = _parse_spec("spec", config.spec)
        self._whole = casts.pop(None, None)
        syntax = config.field_syntax_version
        self._fields = FieldTree.of(
            (parse_field_path(name, syntax, "spec"), target) for name, target in casts.items() if name is not None
        )

    def change(self, schema: Schema | None) -> Change:
        """Cast values of a schema."""
        if self._whole is not None:
            return _cast_whole(schema, self._whole)
        defaults = self.config.replace_null_with_default
        return change_fields(schema, self._fields, _cast_field, purpose=_PURPOSE, defaults=defaults)


def _cast_whole(schema: Schema | None, target: Type) -> Change:
    cast = cast_function(schema, target)
    if schema is None:
        return Change(None, cast)
    # As in Java, the name and the rest of the schema are kept, even the name of a logical type that no longer applies.
    return Change(schema.replace(type=target, default=_default(schema, cast)), cast)


def _cast_field(schema: Schema | None, target: Type) -> Change:
    cast = cast_function(schema, target)
    if schema is None:
        return Change(None, cast)
    return Change(Schema(target, optional=schema.optional, default=_default(schema, cast)), cast)


def _default(schema: Schema, cast: Callable[[Any], Any]) -> Any:
    return None if schema.default is None else cast(schema.default)
