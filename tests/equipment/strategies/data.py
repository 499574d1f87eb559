"""Any schema, and any value of a schema."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

from connect.data import Schema, Type, date_schema, decimal_schema, time_schema, timestamp_schema
from connect.data.logical import (
    DATE_NAME,
    DECIMAL_NAME,
    TIME_NAME,
    TIMESTAMP_NAME,
    decimal_from_unscaled,
    decimal_scale,
    time_from_milliseconds,
    timestamp_from_milliseconds,
)

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)
_FIRST = dt.datetime(1, 1, 1, tzinfo=dt.UTC)
_LAST = dt.datetime(9999, 12, 31, 23, 59, 59, tzinfo=dt.UTC)
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MS = dt.timedelta(milliseconds=1)

LEAF_VALUES: dict[Type, st.SearchStrategy[Any]] = {
    Type.INT8: st.integers(-(2**7), 2**7 - 1),
    Type.INT16: st.integers(-(2**15), 2**15 - 1),
    Type.INT32: st.integers(-(2**31), 2**31 - 1),
    Type.INT64: st.integers(-(2**63), 2**63 - 1),
    Type.FLOAT32: st.floats(width=32, allow_nan=False),
    Type.FLOAT64: st.floats(allow_nan=False),
    Type.BOOLEAN: st.booleans(),
    Type.STRING: TEXT,
    Type.BYTES: st.binary(max_size=8),
}
DATES = st.dates()
TIMES = st.integers(0, 86_400_000 - 1).map(time_from_milliseconds)
TIMESTAMPS = st.integers((_FIRST - _EPOCH) // _MS, (_LAST - _EPOCH) // _MS).map(timestamp_from_milliseconds)


def decimals(scale: int) -> st.SearchStrategy[Decimal]:
    return st.integers(-(10**38) + 1, 10**38 - 1).map(lambda unscaled: _decimal(unscaled, scale))


def _decimal(unscaled: int, scale: int) -> Decimal:
    return decimal_from_unscaled(unscaled.to_bytes(17, "big", signed=True), scale)


def values_of(schema: Schema) -> st.SearchStrategy[Any]:
    """Values of the schema; null too where it is optional."""
    required = _required_values(schema)
    return st.none() | required if schema.optional else required


def keys_of(schema: Schema) -> st.SearchStrategy[Any]:
    """Values of the schema that may be keys of a dict."""
    if schema.type is Type.ARRAY:
        assert schema.value_schema is not None
        return st.lists(values_of(schema.value_schema), max_size=3).map(tuple)
    return _required_values(schema)


def _required_values(schema: Schema) -> st.SearchStrategy[Any]:
    match schema.name:
        case str(name) if name == DECIMAL_NAME:
            return decimals(decimal_scale(schema))
        case str(name) if name == DATE_NAME:
            return DATES
        case str(name) if name == TIME_NAME:
            return TIMES
        case str(name) if name == TIMESTAMP_NAME:
            return TIMESTAMPS
    if schema.type is Type.STRUCT:
        return st.fixed_dictionaries({field.name: values_of(field.schema) for field in schema.fields})
    if schema.value_schema is None:
        return LEAF_VALUES[schema.type]
    if schema.key_schema is None:
        return st.lists(values_of(schema.value_schema), max_size=4)
    return st.dictionaries(keys_of(schema.key_schema), values_of(schema.value_schema), max_size=4)


@st.composite
def described(draw: st.DrawFn, schemas: st.SearchStrategy[Schema]) -> Schema:
    """Schemas with whatever may be said of a schema besides its type."""
    schema = draw(schemas)
    changes: dict[str, Any] = {"optional": draw(st.booleans())}
    if draw(st.integers(0, 3)) == 0:
        changes["doc"] = draw(TEXT)
        if schema.name is None:
            changes |= {"name": draw(NAMES), "version": draw(st.none() | st.integers(0, 9))}
        parameters = draw(st.dictionaries(NAMES, TEXT, max_size=2))
        changes["parameters"] = parameters | dict(schema.parameters)
    schema = schema.replace(**changes)
    if draw(st.integers(0, 3)) == 0:
        schema = schema.replace(default=draw(_required_values(schema)))
    return schema


LEAVES = described(
    st.sampled_from(
        [Schema(kind) for kind in LEAF_VALUES]
        + [date_schema(), time_schema(), timestamp_schema()]
        + [decimal_schema(scale) for scale in (0, 2, 18, -3)]
    )
)
KEYS = LEAVES | st.builds(Schema.array, LEAVES)


def _nested(parts: st.SearchStrategy[Schema]) -> st.SearchStrategy[Schema]:
    make_struct: Callable[[dict[str, Schema]], Schema] = Schema.struct
    return described(
        st.builds(Schema.array, parts)
        | st.builds(Schema.map, KEYS, parts)
        | st.dictionaries(NAMES, parts, max_size=4).map(make_struct)
    )


SCHEMAS: st.SearchStrategy[Schema] = st.recursive(LEAVES, _nested, max_leaves=8)
"""Every schema, nested a few levels."""


@st.composite
def columns(draw: st.DrawFn) -> tuple[Schema, list[Any]]:
    """A schema and some values of it."""
    schema = draw(SCHEMAS)
    return schema, draw(st.lists(values_of(schema), max_size=5))
