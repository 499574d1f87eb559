"""Encoders turn values of a Connect schema into messages of Protobuf. They are built once per schema."""

from __future__ import annotations

import datetime as dt
import logging
import math
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final, TypeAlias

from connect.data import Schema, Type, logical
from connect.data.numerals import single
from connect.data.schema import INTEGER_RANGES
from connect.errors import DataError, SchemaError
from converters.json.errors import UnfitError, WrongTypeError, place_of
from converters.protobuf.config import ProtobufConverterConfig
from converters.protobuf.conventions import (
    DECIMAL,
    RECURSIVE,
    UNKNOWN_SYMBOL,
    WRAPPERS,
    enum_name,
    is_union,
    proto_name,
)
from converters.protobuf.proto_schema import message_class
from converters.protobuf.to_connect import KINDS

__all__ = ["Fill", "filler", "scalar_filler"]

log = logging.getLogger(__name__)

Fill: TypeAlias = Callable[[Any, Any], None]
"""Sets what a message holds from a value that is not null. Raises ``UnfitError`` if the value does not fit."""

Change: TypeAlias = Callable[[Any], Any]
"""Returns what Protobuf holds for a value that is not null."""

_INTEGERS: Final = frozenset(
    {"int32", "sint32", "sfixed32", "int64", "sint64", "sfixed64", "uint32", "fixed32", "uint64", "fixed64"}
)
_WRITABLE: Final = {
    **dict.fromkeys(INTEGER_RANGES, _INTEGERS),
    Type.FLOAT32: frozenset({"float", "double"}),
    Type.FLOAT64: frozenset({"double"}),
    Type.BOOLEAN: frozenset({"bool"}),
    Type.STRING: frozenset({"string", "enum", "uint64", "fixed64"}),
    Type.BYTES: frozenset({"bytes"}),
}
_MILLISECOND_NS: Final = 1_000_000
_MOST_EXACT: Final = 2**53


def filler(schema: Schema, message: Any, config: ProtobufConverterConfig) -> Fill:
    """Return what fills messages of this descriptor from structs.

    Raises :class:`~connect.errors.SchemaError` if the message cannot hold them.
    """
    return _Building(config).struct(schema, message)


def scalar_filler(schema: Schema, message: Any, config: ProtobufConverterConfig) -> Fill:
    """Return what fills wrappers of scalars from scalars."""
    return _Building(config).wrapped(schema, message)


class _Building:
    """Builds the encoder of one schema."""

    def __init__(self, config: ProtobufConverterConfig) -> None:
        self._config = config

    def struct(self, schema: Schema, message: Any) -> Fill:
        members: list[tuple[str, Fill, Callable[[Any], None] | None]] = []
        for field in schema.fields:
            part = field.schema
            fill = self._union(part, message) if is_union(part) else self._member(field.name, part, message)
            members.append((field.name, fill, self._instead(message, field.name, part, fill)))
        names = frozenset(schema.field_names)

        def fill_struct(target: Any, value: Any) -> None:
            if not isinstance(value, Mapping):
                raise WrongTypeError
            name = ""
            item = None
            get = value.get
            try:
                for name, fill_field, instead in members:
                    item = get(name)
                    if item is not None:
                        fill_field(target, item)
                    elif instead is not None:
                        instead(target)
            except UnfitError as error:
                error.within(f".{name}")
                raise
            except WrongTypeError as error:
                wanted = schema.field(name)
                kind = wanted.schema.type.name if wanted is not None else "STRUCT"
                raise UnfitError(f"{type(item).__name__} where {kind} is expected{error.reason}", f".{name}") from None
            if not names.issuperset(value):
                unknown = next(each for each in value if each not in names)
                shown = unknown if isinstance(unknown, str) else place_of(unknown)
                raise UnfitError(f"{shown} is not a valid field name; the struct has {', '.join(schema.field_names)}")

        return fill_struct

    def _instead(self, message: Any, name: str, schema: Schema, fill: Fill) -> Callable[[Any], None] | None:
        """Return what is done for a null: the default is written, it is refused, or nothing is done."""
        default = schema.default
        if default is not None and not self._config.ignore_default_for_nullables:
            return lambda target: fill(target, schema.default)
        if not schema.optional:
            return _refuse_null
        if not schema.type.is_primitive or is_union(schema) or self._field(name, message).has_presence:
            return None
        return self._loss(f"{message.full_name}.{name}")

    def _loss(self, place: str) -> Callable[[Any], None]:
        """Return what says once that null becomes a zero or an empty value."""
        said: list[str] = []

        def say(_target: Any) -> None:
            if not said:
                said.append(place)
                log.warning(
                    "Writing null in %s, which is read again as 0, false or empty: set optional.for.nullables=true or "
                    "wrapper.for.nullables=true to keep nulls.",
                    place,
                )

        return say

    def _field(self, name: str, message: Any) -> Any:
        own = proto_name(name, scrubs=self._config.scrub_invalid_names)
        field = message.fields_by_name.get(own)
        if field is None:
            raise SchemaError(
                f"The Protobuf message {message.full_name} has no field {own}: register one that has, or drop it "
                "(ReplaceField)."
            )
        return field

    def _member(self, name: str, schema: Schema, message: Any) -> Fill:
        """Return what sets a field."""
        field = self._field(name, message)
        own = field.name
        if schema.type is Type.ARRAY:
            return self._array(schema, field)
        if schema.type is Type.MAP:
            return self._map(schema, field)
        if field.is_repeated:
            raise _mismatch(schema, field)
        if field.message_type is None:
            change = self._change(schema, field)

            def set_scalar(target: Any, item: Any) -> None:
                _set(target, own, change(item))

            return set_scalar
        fill, set_in_parent = self._message(schema, field), message_class(field.message_type).SetInParent

        def set_message(target: Any, item: Any) -> None:
            inner = getattr(target, own)
            set_in_parent(inner)
            fill(inner, item)

        return set_message

    def _message(self, schema: Schema, field: Any) -> Fill:
        """Return what fills the message of a field."""
        message = field.message_type
        name = message.full_name
        if schema.type is Type.STRUCT and not is_union(schema):
            return self.struct(schema, message)
        if name == DECIMAL and schema.name == logical.DECIMAL_NAME:
            return _decimal(logical.decimal_scale(schema))
        if name in _LOGICAL and schema.name == _LOGICAL[name][0]:
            return _LOGICAL[name][1]
        if name in WRAPPERS and schema.type.is_primitive:
            return self.wrapped(schema, message)
        if RECURSIVE in schema.parameters:
            return _parser(message)
        raise _mismatch(schema, field)

    def wrapped(self, schema: Schema, message: Any) -> Fill:
        change = self._change(schema, message.fields_by_name["value"])

        def fill(target: Any, item: Any) -> None:
            _set(target, "value", change(item))

        return fill

    def _union(self, schema: Schema, message: Any) -> Fill:
        fills = {field.name: self._member(field.name, field.schema, message) for field in schema.fields}

        def fill(target: Any, value: Any) -> None:
            if not isinstance(value, Mapping):
                raise WrongTypeError
            chosen = [name for name, item in value.items() if item is not None]
            if len(chosen) > 1:
                raise UnfitError(
                    f"a union has at most one member that is set, but {' and '.join(map(str, chosen))} are"
                )
            for name in chosen:
                if name not in fills:
                    raise UnfitError(f"{name} is not a member of the union; it has {', '.join(fills)}")
                try:
                    fills[name](target, value[name])
                except UnfitError as error:
                    error.within(f".{name}")
                    raise

        return fill

    def _array(self, schema: Schema, field: Any) -> Fill:
        assert schema.value_schema is not None
        items, own = schema.value_schema, field.name
        if not field.is_repeated:
            raise _mismatch(schema, field)
        change = None if field.message_type is not None else self._change(items, field)
        fill_item = self._message(items, field) if field.message_type is not None else None

        def fill(target: Any, value: Any) -> None:
            if not isinstance(value, Sequence) or isinstance(value, (str, bytes, bytearray, memoryview)):
                raise WrongTypeError
            into = getattr(target, own)
            try:
                for item in value:
                    if item is None:
                        raise UnfitError("null in an array, which Protobuf cannot hold")
                    if change is not None:
                        _append(into, change(item))
                    elif fill_item is not None:
                        fill_item(into.add(), item)
            except UnfitError as error:
                error.within(f"[{max(len(into) - (change is None), 0)}]")
                raise

        return fill

    def _map(self, schema: Schema, field: Any) -> Fill:
        assert schema.key_schema is not None
        assert schema.value_schema is not None
        entry, own = field.message_type, field.name
        if not field.is_repeated or entry is None or [each.name for each in entry.fields] != ["key", "value"]:
            raise _mismatch(schema, field)
        if entry.GetOptions().map_entry:
            return self._native_map(schema, entry, own)
        plain = Schema.struct({"key": schema.key_schema, "value": schema.value_schema})
        fill_entry = self.struct(plain, entry)

        def fill(target: Any, value: Any) -> None:
            if not isinstance(value, Mapping):
                raise WrongTypeError
            into = getattr(target, own)
            for key, item in value.items():
                try:
                    fill_entry(into.add(), {"key": key, "value": item})
                except UnfitError as error:
                    error.path = error.path.removeprefix(".value")
                    error.within(place_of(key))
                    raise

        return fill

    def _native_map(self, schema: Schema, entry: Any, own: str) -> Fill:
        assert schema.key_schema is not None
        assert schema.value_schema is not None
        change_key = self._change(schema.key_schema, entry.fields_by_name["key"])
        value_field = entry.fields_by_name["value"]
        is_message = value_field.message_type is not None
        change = None if is_message else self._change(schema.value_schema, value_field)
        fill_item = self._message(schema.value_schema, value_field) if is_message else None

        def fill(target: Any, value: Any) -> None:
            if not isinstance(value, Mapping):
                raise WrongTypeError
            into = getattr(target, own)
            for key, item in value.items():
                try:
                    if key is None or item is None:
                        raise UnfitError("null in a map, which Protobuf cannot hold")
                    if change is not None:
                        _put(into, change_key(key), change(item))
                    elif fill_item is not None:
                        fill_item(into[change_key(key)], item)
                except UnfitError as error:
                    error.within(place_of(key))
                    raise

        return fill

    # -- scalars -------------------------------------------------------------------------------------------------

    def _change(self, schema: Schema, field: Any) -> Change:
        """Return what turns a value into that of a scalar field."""
        kind = KINDS[field.type]
        if kind == "enum" and schema.type in (Type.STRING, Type.INT32):
            return _symbol(schema, field.enum_type) if schema.type is Type.STRING else _integer(-(2**31), 2**31 - 1)
        if schema.name in logical.LOGICAL_NAMES:
            return _logical_scalar(schema, field, kind)
        if kind not in _WRITABLE.get(schema.type, ()) or (RECURSIVE in schema.parameters and kind != "bytes"):
            raise _mismatch(schema, field)
        if schema.type in INTEGER_RANGES:
            low, high = INTEGER_RANGES[schema.type]
            least, most = _LIMITS[kind]
            return _integer(max(low, least), min(high, most))
        if schema.type is Type.STRING and kind != "string":
            return _unsigned_text
        return _SCALARS[schema.type]


def _refuse_null(_target: Any) -> None:
    raise UnfitError("null value for a field that is required and has no default value")


def _mismatch(schema: Schema, field: Any) -> SchemaError:
    kind = field.message_type.full_name if field.message_type is not None else KINDS[field.type]
    label = "repeated " if field.is_repeated else ""
    name = f"{schema.name} ({schema.type.name})" if schema.name else schema.type.name
    return SchemaError(f"A value of type {name} cannot be written as {label}{kind}, the type of {field.full_name}.")


def _set(target: Any, name: str, value: Any) -> None:
    try:
        setattr(target, name, value)
    except (TypeError, ValueError) as error:
        raise UnfitError(str(error)) from error


def _append(into: Any, value: Any) -> None:
    try:
        into.append(value)
    except (TypeError, ValueError) as error:
        raise UnfitError(str(error)) from error


def _put(into: Any, key: Any, value: Any) -> None:
    try:
        into[key] = value
    except (TypeError, ValueError) as error:
        raise UnfitError(str(error)) from error


def _integer(low: int, high: int) -> Change:
    def change(value: Any) -> int:
        if not isinstance(value, int) or isinstance(value, bool):
            raise WrongTypeError
        if not low <= value <= high:
            raise UnfitError(f"the whole number {value} is not within {low} and {high}")
        return value

    return change


def _float64(value: Any) -> float:
    if isinstance(value, float):
        return value
    if not isinstance(value, int) or isinstance(value, bool):
        raise WrongTypeError
    if abs(value) > _MOST_EXACT:
        raise WrongTypeError("it cannot be held exactly as a float; pass a float to have it rounded")
    return float(value)


def _float32(value: Any) -> float:
    number = _float64(value)
    rounded = single(number)
    if math.isinf(rounded) and not math.isinf(number):
        raise UnfitError(f"{number} is too large for single precision")
    return rounded


def _boolean(value: Any) -> bool:
    if value is True or value is False:
        return bool(value)
    raise WrongTypeError


def _string(value: Any) -> str:
    if isinstance(value, str):
        return value
    raise WrongTypeError


def _bytes(value: Any) -> bytes:
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    raise WrongTypeError


def _unsigned_text(value: Any) -> int:
    if not isinstance(value, str) or not (value.isascii() and value.isdecimal()) or len(value) > 20:
        raise UnfitError(f"{str(value)[:40]!r} is not a whole number of 64 bits without sign")
    return int(value)


def _symbol(schema: Schema, enum: Any) -> Change:
    numbers: dict[str, int] = {name: value.number for name, value in enum.values_by_name.items()}
    named = enum_name(schema)
    if named is not None:
        # Symbols whose names had to be changed keep their numbers.
        prefix = f"{named[0]}."
        own = {key.removeprefix(prefix): text for key, text in schema.parameters.items() if key.startswith(prefix)}
        known = set(numbers.values())
        numbers = {**{key: int(text) for key, text in own.items() if int(text) in known}, **numbers}
    unknown = f"{UNKNOWN_SYMBOL}{enum.name}_"

    def change(value: Any) -> int:
        if not isinstance(value, str):
            raise WrongTypeError
        number = numbers.get(value)
        if number is not None:
            return number
        rest = value.removeprefix(unknown)
        if rest != value and rest.removeprefix("-").isdecimal() and len(rest) <= 11:
            return int(rest)
        raise UnfitError(f"{value!r} is not a symbol of the enum {enum.name}")

    return change


# -- logical types -----------------------------------------------------------------------------------------------


def _logical_scalar(schema: Schema, field: Any, kind: str) -> Change:
    """Return what turns a logical value into a plain scalar of a schema that another has registered."""
    if schema.name == logical.DECIMAL_NAME and kind in ("uint64", "fixed64") and logical.decimal_scale(schema) == 0:
        return _unsigned_decimal
    raise _mismatch(schema, field)


def _unsigned_decimal(value: Any) -> int:
    if not isinstance(value, Decimal):
        raise WrongTypeError
    if not value.is_finite() or value != value.to_integral_value() or not 0 <= value < 2**64:
        raise UnfitError(f"{value} is not a whole number of 64 bits without sign")
    return int(value)


def _decimal(scale: int) -> Fill:
    def fill(target: Any, value: Any) -> None:
        if not isinstance(value, Decimal):
            raise WrongTypeError
        try:
            target.value = logical.unscaled_from_decimal(value, scale)
        except (DataError, ArithmeticError) as error:
            raise UnfitError(str(error)) from error
        target.precision = len(value.as_tuple().digits)
        target.scale = scale

    return fill


def _timestamp(target: Any, value: Any) -> None:
    if not isinstance(value, dt.datetime):
        raise WrongTypeError
    if value.utcoffset() is None:
        raise WrongTypeError("the datetime has no time zone: give it one, such as datetime.UTC")
    seconds, rest = divmod(logical.milliseconds_from_timestamp(value), 1000)
    target.seconds, target.nanos = seconds, rest * _MILLISECOND_NS


def _date(target: Any, value: Any) -> None:
    if not isinstance(value, dt.date) or isinstance(value, dt.datetime):
        raise WrongTypeError
    target.year, target.month, target.day = value.year, value.month, value.day


def _time(target: Any, value: Any) -> None:
    if not isinstance(value, dt.time):
        raise WrongTypeError
    if value.tzinfo is not None:
        raise WrongTypeError("a time of day has no time zone")
    target.hours, target.minutes, target.seconds = value.hour, value.minute, value.second
    target.nanos = value.microsecond // 1000 * _MILLISECOND_NS


def _parser(message: Any) -> Fill:
    from google.protobuf.message import DecodeError  # noqa: PLC0415 - the package is optional

    merge = message_class(message).MergeFromString

    def parse_into(target: Any, value: Any) -> None:
        try:
            merge(target, _bytes(value))
        except DecodeError as error:
            raise UnfitError(f"the bytes are not a message of {message.full_name}") from error

    return parse_into


_LOGICAL: Final[dict[str, tuple[str, Fill]]] = {
    "google.protobuf.Timestamp": (logical.TIMESTAMP_NAME, _timestamp),
    "google.type.Date": (logical.DATE_NAME, _date),
    "google.type.TimeOfDay": (logical.TIME_NAME, _time),
}
_SCALARS: Final[dict[Type, Change]] = {
    Type.FLOAT32: _float32,
    Type.FLOAT64: _float64,
    Type.BOOLEAN: _boolean,
    Type.STRING: _string,
    Type.BYTES: _bytes,
}
_LIMITS: Final = {
    **dict.fromkeys(("int32", "sint32", "sfixed32"), (-(2**31), 2**31 - 1)),
    **dict.fromkeys(("int64", "sint64", "sfixed64"), (-(2**63), 2**63 - 1)),
    **dict.fromkeys(("uint32", "fixed32"), (0, 2**32 - 1)),
    **dict.fromkeys(("uint64", "fixed64"), (0, 2**64 - 1)),
}
