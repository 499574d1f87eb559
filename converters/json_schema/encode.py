"""Encoders turn values of a Connect schema into JSON. They are built once per schema."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import orjson

from connect.data import Schema, Type
from connect.data.schema import Field
from converters.json.encode import Encode, array_encoder, encoder
from converters.json.errors import UnfitError, WrongTypeError, place_of
from converters.json_schema.config import JsonSchemaConverterConfig
from converters.json_schema.conventions import ADDITIONAL, NULL_SYMBOL, enum_symbols, is_any, is_union

__all__ = ["json_encoder"]

_DIRECT: Final = {Type.STRING: str, Type.BOOLEAN: bool}
"""The Python types of values that are written as they are."""


def json_encoder(schema: Schema, config: JsonSchemaConverterConfig) -> Encode:
    """Return the encoder of values into what orjson writes. It raises ``UnfitError`` where a value does not fit."""
    return _Building(config).encoder(schema)


class _Building:
    """Builds the encoder of one schema."""

    def __init__(self, config: JsonSchemaConverterConfig) -> None:
        self._config = config

    def encoder(self, schema: Schema, *, optional: bool | None = None) -> Encode:
        is_optional = schema.optional if optional is None else optional
        if schema.type is Type.STRUCT:
            build = self._union if is_union(schema) else self._struct
            return self._nullable(schema, is_optional, build(schema))
        if schema.type is Type.ARRAY:
            assert schema.value_schema is not None
            return self._nullable(schema, is_optional, array_encoder(self.encoder(schema.value_schema)))
        if schema.type is Type.MAP:
            return self._nullable(schema, is_optional, self._map(schema))
        if is_any(schema):
            return self._nullable(schema, is_optional, _any)
        symbols = enum_symbols(schema)
        if symbols is not None:
            return self._nullable(schema, is_optional, _enum(symbols))
        return encoder(
            schema.replace(optional=is_optional),
            replace_null=not self._config.ignore_default_for_nullables,
            decimal_format=self._config.decimal_format,
        )

    def _nullable(self, schema: Schema, optional: bool, encode: Encode) -> Encode:
        replaced = schema.default is not None and not self._config.ignore_default_for_nullables
        instead = encode(schema.default) if replaced else None

        def encode_any(value: Any) -> Any:
            if value is None:
                if instead is None and not optional:
                    raise UnfitError("null value for a field that is required and has no default value")
                return instead
            try:
                return encode(value)
            except WrongTypeError as error:
                raise UnfitError(f"{type(value).__name__} where {schema.type.name} is expected{error.reason}") from None

        return encode_any

    # -- containers ----------------------------------------------------------------------------------------------

    def _map(self, schema: Schema) -> Encode:
        assert schema.key_schema is not None
        assert schema.value_schema is not None
        encode_key, encode_item = self.encoder(schema.key_schema), self.encoder(schema.value_schema)
        as_object = schema.key_schema.type is Type.STRING and not schema.key_schema.optional

        def encode(value: Any) -> Any:
            if not isinstance(value, Mapping):
                raise WrongTypeError
            key: Any = None
            pairs = []
            try:
                for key, item in value.items():
                    pairs.append((encode_key(key), encode_item(item)))
            except UnfitError as error:
                error.within(place_of(key))
                raise
            return dict(pairs) if as_object else [{"key": key, "value": item} for key, item in pairs]

        return encode

    def _struct(self, schema: Schema) -> Encode:
        members = [
            (field.name, _direct(field), self.encoder(field.schema))
            for field in schema.fields
            if field.name != ADDITIONAL
        ]
        names = frozenset(schema.field_names)
        has_more = ADDITIONAL in names

        def encode(value: Any) -> Any:
            if not isinstance(value, Mapping):
                raise WrongTypeError
            node = {}
            name = ""
            get = value.get
            try:
                for name, direct, encode_field in members:
                    item = get(name)
                    node[name] = item if item.__class__ is direct else encode_field(item)
            except UnfitError as error:
                error.within(f".{name}")
                raise
            if len(value) > len(members) or not names.issuperset(value):
                _add_unknown(node, value, names, has_more)
            return node

        return encode

    def _union(self, schema: Schema) -> Encode:
        members = {field.name: self.encoder(field.schema, optional=False) for field in schema.fields}

        def encode(value: Any) -> Any:
            if not isinstance(value, Mapping):
                raise WrongTypeError
            chosen = [name for name, item in value.items() if item is not None]
            if len(chosen) != 1:
                raise UnfitError(f"a union must have exactly one member that is set, but it has {len(chosen)}")
            name = chosen[0]
            if name not in members:
                raise UnfitError(f"{name} is not a member of the union; it has {', '.join(members)}")
            try:
                return members[name](value[name])
            except UnfitError as error:
                error.within(f".{name}")
                raise

        return encode


def _direct(field: Field) -> type | None:
    """Return the Python type of a field's values that are written as they are."""
    schema = field.schema
    plain = schema.name is None and not is_any(schema) and enum_symbols(schema) is None
    return _DIRECT.get(schema.type) if plain else None


def _add_unknown(node: dict[str, Any], value: Mapping[str, Any], names: frozenset[str], has_more: bool) -> None:
    unknown = next((name for name in value if name not in names), None)
    if unknown is not None:
        shown = unknown if isinstance(unknown, str) else place_of(unknown)
        raise UnfitError(f"{shown} is not a valid field name; the struct has {', '.join(sorted(names))}")
    more = value.get(ADDITIONAL) if has_more else None
    for name, text in (more or {}).items():
        if name in names:
            raise UnfitError(f"{name} is a field and cannot be in {ADDITIONAL} too")
        node[name] = _any(text)


def _any(value: Any) -> Any:
    """Return the JSON that a text holds."""
    if not isinstance(value, str):
        raise WrongTypeError
    try:
        orjson.loads(value)
    except orjson.JSONDecodeError as error:
        raise UnfitError(f"the text is not JSON, which its schema says it is: {error}") from error
    return orjson.Fragment(value.encode())


def _enum(symbols: tuple[str, ...]) -> Callable[[Any], Any]:
    known = frozenset(symbols)

    def encode(value: Any) -> Any:
        if not isinstance(value, str):
            raise WrongTypeError
        if known and value not in known:
            raise UnfitError(f"{value!r} is not a symbol of the enum: {', '.join(symbols)}")
        return None if value == NULL_SYMBOL else str(value)

    return encode
