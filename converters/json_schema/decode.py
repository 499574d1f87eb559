"""Decoders turn parsed JSON into values of a Connect schema. They are built once per schema."""

from __future__ import annotations

import binascii
import math
from collections.abc import Callable
from decimal import Context, Decimal
from typing import Any, Final, TypeAlias

import orjson

from connect.data import Schema, Type, logical
from connect.data.excerpt import excerpt
from connect.data.hash_collisions import refuse_colliding_keys
from connect.data.numerals import integer_text, single
from connect.data.schema import INTEGER_RANGES
from connect.errors import DataError
from converters.json.errors import UnfitError, kind_of, place_of
from converters.json_schema.config import JsonSchemaConverterConfig
from converters.json_schema.conventions import ADDITIONAL, NULL_SYMBOL, enum_symbols, is_any, is_union
from converters.json_schema.fit import UNFIT, fit_of

__all__ = ["Decode", "json_decoder", "needs_exact_numbers"]

Decode: TypeAlias = Callable[[Any], Any]
"""Returns the value of parsed JSON. Raises ``UnfitError`` if the JSON does not match the schema."""

_DIRECT: Final = {Type.STRING: str, Type.BOOLEAN: bool, Type.FLOAT64: float}
"""The Python types of parsed JSON that are already values of a schema."""
_UNLIKE_NUMBERS: Final = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_MOST_DIGITS: Final = 2000


def json_decoder(schema: Schema, config: JsonSchemaConverterConfig) -> Decode:
    """Return the decoder of values of a schema."""
    return _Building(config).decoder(schema)


def needs_exact_numbers(schema: Schema) -> bool:
    """Return whether numbers must be parsed exactly: a float may not hold what is read as a decimal or kept as text."""
    parts = (schema.key_schema, schema.value_schema, *(field.schema for field in schema.fields))
    if schema.name == logical.DECIMAL_NAME or is_any(schema):
        return True
    return any(part is not None and needs_exact_numbers(part) for part in parts)


class _Building:
    """Builds the decoder of one schema."""

    def __init__(self, config: JsonSchemaConverterConfig) -> None:
        self._config = config

    def decoder(self, schema: Schema) -> Decode:
        return self._nullable(schema, self._present(schema))

    def _present(self, schema: Schema) -> Decode:  # noqa: PLR0911
        """Return the decoder of JSON that is not null."""
        kind = schema.type
        if kind is Type.STRUCT:
            return self._union(schema) if is_union(schema) else self._struct(schema)
        if kind is Type.ARRAY:
            return self._array(schema)
        if kind is Type.MAP:
            return self._map(schema)
        if schema.name == logical.DECIMAL_NAME:
            return _decimal(logical.decimal_scale(schema))
        if schema.name in _BY_NAME:
            return _BY_NAME[schema.name]
        if kind in INTEGER_RANGES:
            return _integer(*INTEGER_RANGES[kind], kind)
        if is_any(schema):
            return json_of
        return _SCALARS[kind]

    def _nullable(self, schema: Schema, decode: Decode) -> Decode:
        if is_any(schema):
            return lambda node: None if node is None else json_of(node)
        symbols = enum_symbols(schema)
        replaces = schema.default is not None and not self._config.ignore_default_for_nullables

        def decode_any(node: Any) -> Any:
            if node is not None:
                return decode(node)
            if replaces:
                return schema.default
            if schema.optional or (symbols is not None and NULL_SYMBOL in symbols):
                return None
            raise UnfitError(f"null where the schema requires {schema.type.name}")

        return decode_any

    def _absent(self, schema: Schema) -> Callable[[], Any]:
        """Return what a property that is not there becomes: the default, or null whatever the schema says."""
        if schema.default is not None and not self._config.ignore_default_for_nullables:
            return lambda: schema.default
        return _nothing

    # -- containers ----------------------------------------------------------------------------------------------

    def _array(self, schema: Schema) -> Decode:
        assert schema.value_schema is not None
        decode_item = self.decoder(schema.value_schema)

        def decode(node: Any) -> Any:
            if node.__class__ is not list:
                raise _unfit(node, "an array")
            items: list[Any] = []
            try:
                for item in node:
                    items.append(decode_item(item))  # noqa: PERF401 - its length says where an error is
            except UnfitError as error:
                error.within(f"[{len(items)}]")
                raise
            return items

        return decode

    def _map(self, schema: Schema) -> Decode:
        assert schema.key_schema is not None
        assert schema.value_schema is not None
        if schema.key_schema.type is not Type.STRING or schema.key_schema.optional:
            return self._entries(schema.key_schema, schema.value_schema)
        decode_item = self.decoder(schema.value_schema)

        def decode(node: Any) -> Any:
            if node.__class__ is not dict:
                raise _unfit(node, "an object")
            key = ""
            items = {}
            try:
                for key, item in node.items():
                    items[key] = decode_item(item)
            except UnfitError as error:
                error.within(place_of(key))
                raise
            return items

        return decode

    def _entries(self, key_schema: Schema, value_schema: Schema) -> Decode:
        decode_key, decode_item = self.decoder(key_schema), self.decoder(value_schema)
        is_decimal = key_schema.name == logical.DECIMAL_NAME

        def decode(node: Any) -> Any:
            if node.__class__ is not list:
                raise _unfit(node, "an array of objects with key and value")
            pairs: list[tuple[Any, Any]] = []
            try:
                for entry in node:
                    if entry.__class__ is not dict:
                        raise _unfit(entry, "an object with key and value")
                    pairs.append((decode_key(entry.get("key")), decode_item(entry.get("value"))))
                if is_decimal:
                    refuse_colliding_keys([key for key, _ in pairs])
                return dict(pairs)
            except UnfitError as error:
                error.within(f"[{len(pairs)}]")
                raise
            except TypeError as error:
                raise UnfitError("an array, a map or a struct cannot be the key of a map in Python") from error

        return decode

    def _struct(self, schema: Schema) -> Decode:
        members = [
            (field.name, _direct(field.schema), self.decoder(field.schema), self._absent(field.schema))
            for field in schema.fields
            if field.name != ADDITIONAL
        ]
        names = frozenset(schema.field_names)
        keeps_more = ADDITIONAL in names

        def decode(node: Any) -> Any:
            if node.__class__ is not dict:
                raise _unfit(node, "an object")
            values = {}
            name = ""
            get = node.get
            try:
                for name, direct, decode_field, absent in members:
                    item = get(name)
                    if item.__class__ is direct:
                        values[name] = item
                    elif item is None and name not in node:
                        values[name] = absent()
                    else:
                        values[name] = decode_field(item)
            except UnfitError as error:
                error.within(f".{name}")
                raise
            if keeps_more:
                values[ADDITIONAL] = _undeclared(node, names)
            return values

        return decode

    # -- unions --------------------------------------------------------------------------------------------------

    def _union(self, schema: Schema) -> Decode:
        members = [(field.name, fit_of(field.schema), self._present(field.schema)) for field in schema.fields]
        blank = dict.fromkeys(schema.field_names)

        def decode(node: Any) -> Any:
            fits = [(fit(node), name, decode_member) for name, fit, decode_member in members]
            failure: UnfitError | None = None
            for fit, name, decode_member in sorted(fits, key=_worst_last):
                if fit == UNFIT:
                    break
                try:
                    return {**blank, name: decode_member(node)}
                except UnfitError as error:
                    # The items of an array, or the types of properties, may show that another member is meant.
                    if failure is None:
                        error.within(f".{name}")
                        failure = error
            raise failure or UnfitError(f"{kind_of(node)} fits no member of the union: {', '.join(blank)}")

        return decode


def _worst_last(fit: tuple[int, str, Decode]) -> int:
    return -fit[0]


# -- scalars -----------------------------------------------------------------------------------------------------


def json_of(node: Any) -> str:
    """Return parsed JSON as its text."""
    try:
        return orjson.dumps(node, default=_exact_number).decode()
    except orjson.JSONEncodeError:
        pass  # whole numbers of more than 64 bits, which orjson does not ask about
    try:
        return orjson.dumps(_with_long_numbers(node), default=_exact_number).decode()
    except orjson.JSONEncodeError as error:
        raise UnfitError(f"it cannot be kept as JSON text: {error}") from error


def _with_long_numbers(node: Any) -> Any:
    if node.__class__ is dict:
        return {name: _with_long_numbers(item) for name, item in node.items()}
    if node.__class__ is list:
        return [_with_long_numbers(item) for item in node]
    is_long = node.__class__ is int and not -(2**63) <= node < 2**64
    return orjson.Fragment(integer_text(node).encode()) if is_long else node


def _exact_number(node: Any) -> Any:
    if isinstance(node, Decimal):
        return orjson.Fragment(str(node).encode())
    raise TypeError


def _undeclared(node: dict[str, Any], names: frozenset[str]) -> dict[str, str] | None:
    if ADDITIONAL in node:
        raise UnfitError(f"the property {ADDITIONAL} is where preserve.additional.properties=true puts others")
    return {name: json_of(item) for name, item in node.items() if name not in names} or None


def _nothing() -> None:
    return None


def _direct(schema: Schema) -> type | None:
    """Return the Python type of parsed JSON that needs no decoding."""
    return _DIRECT.get(schema.type) if schema.name not in logical.LOGICAL_NAMES and not is_any(schema) else None


def _unfit(node: Any, wanted: str) -> UnfitError:
    return UnfitError(f"{kind_of(node)} where {wanted} is expected")


def _integer(low: int, high: int, kind: Type) -> Decode:
    def decode(node: Any) -> Any:
        if node.__class__ is int and low <= node <= high:
            return node
        number = _whole(node)
        if not low <= number <= high:
            raise UnfitError(f"the whole number {excerpt(number)} does not fit {kind.name}")
        return number

    return decode


def _whole(node: Any) -> int:
    """Return the whole number of JSON, which may be written with a fraction of zeros."""
    if isinstance(node, int) and node.__class__ is int:
        return node
    if isinstance(node, (float, Decimal)):
        if -(2**64) < node < 2**64 and node == int(node):
            return int(node)
        raise UnfitError(f"the number {node} where a whole number of 64 bits is expected")
    raise _unfit(node, "a whole number")


def _float64(node: Any) -> Any:
    if node.__class__ is float:
        return node
    if node.__class__ is str and node in _UNLIKE_NUMBERS:
        return _UNLIKE_NUMBERS[node]
    if not isinstance(node, (int, Decimal)) or node.__class__ is bool:
        raise _unfit(node, "a number")
    try:
        number = float(node)
    except OverflowError as error:
        raise UnfitError(f"the number {excerpt(node)} is too large for FLOAT64") from error
    if math.isinf(number):
        raise UnfitError(f"the number {node} is too large for FLOAT64")
    return number


def _float32(node: Any) -> Any:
    number = _float64(node)
    rounded = single(number)
    if math.isinf(rounded) and not math.isinf(number):
        raise UnfitError(f"the number {number} is too large for FLOAT32")
    return rounded


def _boolean(node: Any) -> Any:
    if node.__class__ is bool:
        return node
    raise _unfit(node, "a boolean")


def _string(node: Any) -> Any:
    if node.__class__ is str:
        return node
    raise _unfit(node, "a string")


def _bytes(node: Any) -> bytes:
    if node.__class__ is not str:
        raise _unfit(node, "base64 text")
    try:
        return binascii.a2b_base64(node, strict_mode=True)
    except (binascii.Error, ValueError) as error:
        raise UnfitError(f"the text is not base64, which bytes are written in: {error}") from error


def _decimal(scale: int) -> Decode:
    unit = Decimal((0, (1,), -scale))

    def decode(node: Any) -> Any:
        if node.__class__ is str:
            try:
                return logical.decimal_from_unscaled(_bytes(node), scale)
            except UnfitError:
                raise
            except DataError as error:
                raise UnfitError(str(error)) from error
        if not isinstance(node, (int, float, Decimal)) or node.__class__ is bool:
            raise _unfit(node, "a number or base64 text")
        number = Decimal(repr(node)) if node.__class__ is float else Decimal(node)
        if number.adjusted() + scale > _MOST_DIGITS:
            raise UnfitError(f"the number {number} is too large for a decimal of scale {scale}")
        rounded = number.quantize(unit, context=_EXACT)
        if rounded != number:
            raise UnfitError(f"the number {number} has more than {scale} digits after the point, its scale")
        return rounded

    return decode


def _date(node: Any) -> Any:
    return _logical(logical.date_from_days, node)


def _time(node: Any) -> Any:
    return _logical(logical.time_from_milliseconds, node)


def _timestamp(node: Any) -> Any:
    return _logical(logical.timestamp_from_milliseconds, node)


def _logical(convert: Callable[[int], Any], node: Any) -> Any:
    try:
        return convert(_whole(node))
    except UnfitError:
        raise
    except DataError as error:
        raise UnfitError(str(error)) from error


_EXACT: Final = Context(prec=_MOST_DIGITS * 2, traps=[])
_SCALARS: Final[dict[Type, Decode]] = {
    Type.FLOAT32: _float32,
    Type.FLOAT64: _float64,
    Type.BOOLEAN: _boolean,
    Type.STRING: _string,
    Type.BYTES: _bytes,
}
_BY_NAME: Final[dict[str | None, Decode]] = {
    logical.DATE_NAME: _date,
    logical.TIME_NAME: _time,
    logical.TIMESTAMP_NAME: _timestamp,
}
