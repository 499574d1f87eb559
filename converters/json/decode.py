"""Decoders: from parsed JSON to the value of a schema, put together once a schema."""

from __future__ import annotations

from types import NoneType
from typing import Any, Final

from connect.data import Schema, Type, logical
from converters.json.errors import UnfitError, kind_of, place_of
from converters.json.scalars import SCALARS, SCALARS_BY_NAME, Decode, Make, Rules, null_value
from converters.json.schemaless import decode_schemaless
from converters.json.shapes import Shapes

__all__ = ["Decode", "decoder"]


def decoder(schema: Schema | None, *, replace_null: bool, nested: bool = False, brief: bool = False) -> Decode:
    """The decoder of a schema; ``None`` is that of no schema.

    ``replace_null``: a null becomes the default of the schema, where it has one. ``nested``: the value is part of
    another, where a lenient null is not allowed unless the schema allows it. ``brief``: the text is
    :func:`~converters.json.text.is_brief`, so that floats stand for exact numbers.
    """
    return _decoder(schema, Rules(replace_null, brief), nested=nested)


def _decoder(schema: Schema | None, rules: Rules, *, nested: bool) -> Decode:
    if schema is None:
        return decode_schemaless
    make = SCALARS_BY_NAME.get(schema.name or "") or _MAKERS[schema.type]
    return make(schema, rules, nested)


def untouched(schema: Schema, *, replace_null: bool) -> frozenset[type]:
    """The types of parsed JSON that are values of a schema as they are."""
    direct: dict[Type, set[type]] = {Type.STRING: {str}, Type.BOOLEAN: {bool}, Type.FLOAT64: {float}}
    kinds = set() if schema.name in logical.LOGICAL_NAMES else direct.get(schema.type, set())
    if schema.optional and (schema.default is None or not replace_null):
        kinds.add(NoneType)
    return frozenset(kinds)


def _array(schema: Schema, rules: Rules, _nested: bool) -> Decode:
    decode_item = _decoder(schema.value_schema, rules, nested=True)

    def decode(node: Any) -> Any:
        if node.__class__ is list:
            items: list[Any] = []
            try:
                for item in node:
                    items.append(decode_item(item))  # noqa: PERF401 - its length says where an error is
            except UnfitError as error:
                error.within(f"[{len(items)}]")
                raise
            return items
        if node is None:
            return null_value(schema, rules)
        raise UnfitError(f"Arrays should be encoded as JSON arrays, but found {kind_of(node)}")

    return decode


def _map(schema: Schema, rules: Rules, nested: bool) -> Decode:
    assert schema.key_schema is not None
    if schema.key_schema.type is not Type.STRING:
        return _pairs(schema, rules, nested)
    decode_item = _decoder(schema.value_schema, rules, nested=True)

    def decode(node: Any) -> Any:
        if node.__class__ is dict:
            key = ""
            items = {}
            try:
                for key, item in node.items():
                    items[key] = decode_item(item)
            except UnfitError as error:
                error.within(place_of(key))
                raise
            return items
        if node is None:
            return null_value(schema, rules)
        raise UnfitError(f"Maps with string fields should be encoded as JSON objects, but found {kind_of(node)}")

    return decode


def _pairs(schema: Schema, rules: Rules, _nested: bool) -> Decode:
    decode_key = _decoder(schema.key_schema, rules, nested=True)
    decode_item = _decoder(schema.value_schema, rules, nested=True)

    def decode_pair(pair: Any) -> tuple[Any, Any]:
        if pair.__class__ is not list:
            raise UnfitError(f"Found invalid map entry instead of array tuple: {kind_of(pair)}")
        if len(pair) != 2:
            raise UnfitError(f"Found invalid map entry, expected length 2 but found :{len(pair)}")
        return decode_key(pair[0]), decode_item(pair[1])

    def decode(node: Any) -> Any:
        if node is None:
            return null_value(schema, rules)
        if node.__class__ is not list:
            kind = kind_of(node)
            raise UnfitError(f"Maps with non-string fields should be encoded as JSON array of tuples, but found {kind}")
        items: dict[Any, Any] = {}
        done = 0
        try:
            for pair in node:
                key, item = decode_pair(pair)
                items[key] = item
                done += 1
        except UnfitError as error:
            error.within(f"[{done}]")
            raise
        except TypeError as error:
            raise UnfitError("An array, a map or a struct cannot be the key of a map in Python") from error
        return items

    return decode


def _struct(schema: Schema, rules: Rules, _nested: bool) -> Decode:
    names = schema.field_names
    members = [
        (
            field.name,
            untouched(field.schema, replace_null=rules.replace_null),
            _decoder(field.schema, rules, nested=True),
        )
        for field in schema.fields
    ]
    shapes = Shapes(members)

    def decode(node: Any) -> Any:
        if node.__class__ is not dict:
            if node is None:
                return null_value(schema, rules)
            raise UnfitError(f"Structs should be encoded as JSON objects, but found {kind_of(node)}")
        name = ""
        try:
            if tuple(node) == names:
                for name, decode_field in shapes[tuple(map(type, node.values()))]:
                    node[name] = decode_field(node[name])
                return node
            values = {}
            for name, _, decode_field in members:
                values[name] = decode_field(node.get(name))
        except UnfitError as error:
            error.within(f".{name}")
            raise
        return values

    return decode


_MAKERS: Final[dict[Type, Make]] = {**SCALARS, Type.ARRAY: _array, Type.MAP: _map, Type.STRUCT: _struct}
