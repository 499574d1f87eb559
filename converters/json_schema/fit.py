"""Which member of a union JSON is meant for: how well it fits each of them. Built once per schema."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final, TypeAlias

from connect.data import Schema, Type, logical
from connect.data.schema import INTEGER_RANGES
from converters.json_schema.conventions import enum_symbols, is_any, is_union

__all__ = ["UNFIT", "Fit", "fit_of"]

Fit: TypeAlias = Callable[[Any], int]
"""Returns how well parsed JSON fits: for a struct, the number of its properties."""

UNFIT: Final = -(2**62)
"""How well JSON fits what it cannot be read as."""
_CONTRADICTION: Final = -(2**40)
"""What a property counts that is none of the symbols that the struct allows it."""


def fit_of(schema: Schema) -> Fit:  # noqa: PLR0911
    """Return what tells how well parsed JSON, which is not null, fits a member of a union."""
    kind = schema.type
    if is_any(schema):
        return lambda _node: 0
    if schema.name == logical.DECIMAL_NAME:
        return _of_classes(int, float, Decimal, str)
    if kind in INTEGER_RANGES:
        low, high = INTEGER_RANGES[kind]
        return lambda node: 0 if node.__class__ is int and low <= node <= high else UNFIT
    if kind in (Type.FLOAT32, Type.FLOAT64):
        return _of_classes(int, float, Decimal)
    if kind is Type.BOOLEAN:
        return _of_classes(bool)
    if kind in (Type.STRING, Type.BYTES):
        symbols = enum_symbols(schema)
        return _of_symbols(frozenset(symbols)) if symbols else _of_classes(str)
    if kind is Type.ARRAY:
        return _array(schema)
    if kind is Type.MAP:
        return _of_classes(dict, list)
    return _union(schema) if is_union(schema) else _struct(schema)


def _of_classes(*classes: type) -> Fit:
    return lambda node: 0 if node.__class__ in classes else UNFIT


def _of_symbols(symbols: frozenset[str]) -> Fit:
    return lambda node: 0 if node.__class__ is str and node in symbols else UNFIT


def _array(schema: Schema) -> Fit:
    assert schema.value_schema is not None
    symbols = enum_symbols(schema.value_schema)
    if not symbols:
        return _of_classes(list)
    is_symbol = _of_symbols(frozenset(symbols))

    def fit(node: Any) -> int:
        if node.__class__ is not list:
            return UNFIT
        return 0 if all(is_symbol(item) == 0 for item in node if item.__class__ is str) else _CONTRADICTION

    return fit


def _union(schema: Schema) -> Fit:
    members = [fit_of(field.schema) for field in schema.fields]
    return lambda node: max((fit(node) for fit in members), default=UNFIT)


def _struct(schema: Schema) -> Fit:
    """Return how many properties of an object a struct declares, those of its structs included.

    A property with a symbol that the struct does not allow, as that by which events of several kinds are told apart,
    makes it fit worse than any struct that allows it.
    """
    telling = [field for field in schema.fields if field.schema.type is Type.STRUCT or enum_symbols(field.schema)]
    inner = {field.name: fit_of(field.schema) for field in telling}
    names = frozenset(schema.field_names)

    def fit(node: Any) -> int:
        if node.__class__ is not dict:
            return UNFIT
        count = 0
        for name, item in node.items():
            if name in names:
                count += 1
                if name in inner:
                    count += _counted(inner[name](item), item)
        return count

    return fit


def _counted(fit: int, node: Any) -> int:
    """Return what a property adds. One of another type adds nothing: reading it shows what is wrong with it."""
    if fit == UNFIT:
        return _CONTRADICTION if node.__class__ is str else 0
    return fit
