"""Values of any schema, for property tests."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from functools import lru_cache
from typing import Any, Final

from hypothesis import strategies as st

from connect.data import Schema, Type, logical
from connect.data.numerals import single
from connect.data.schema import INTEGER_RANGES

__all__ = ["DATES", "INTEGERS", "TIMES", "TIMESTAMPS", "decimals", "schemaless_values", "texts", "values_of"]

_STRATEGIES: Final = 2000
_DIGITS: Final = 10**38 - 1
"""The maximum number of digits of Arrow's decimals."""

INTEGERS: Final = {kind: st.integers(*limits) for kind, limits in INTEGER_RANGES.items()}
DATES: Final = st.dates()
TIMES: Final = st.integers(0, 86_400_000 - 1).map(logical.time_from_milliseconds)
TIMESTAMPS: Final = st.integers(
    logical.milliseconds_from_timestamp(dt.datetime(1, 1, 1, tzinfo=dt.UTC)),
    logical.milliseconds_from_timestamp(dt.datetime(9999, 12, 31, 23, 59, 59, tzinfo=dt.UTC)),
).map(logical.timestamp_from_milliseconds)


# Making a strategy takes longer than drawing from it.
@lru_cache(maxsize=_STRATEGIES)
def texts(max_size: int = 12) -> st.SearchStrategy[str]:
    """Text that UTF-8 can hold."""
    return st.text(st.characters(exclude_categories=("Cs",)), max_size=max_size)


@lru_cache(maxsize=_STRATEGIES)
def decimals(scale: int) -> st.SearchStrategy[Decimal]:
    """Decimals of a scale."""
    return st.integers(-_DIGITS, _DIGITS).map(
        lambda unscaled: logical.decimal_from_unscaled(unscaled.to_bytes(17, "big", signed=True), scale)
    )


@lru_cache(maxsize=_STRATEGIES)
def values_of(schema: Schema, *, comparable: bool = False) -> st.SearchStrategy[Any]:
    """The values a schema allows; null for a schema that is optional or has a default.

    ``comparable`` values stay equal after any round trip: none is NaN, and no default replaces a null.
    """
    present = _present(schema, comparable)
    has_null = schema.optional or (schema.default is not None and not comparable)
    return st.none() | present if has_null else present


def _present(schema: Schema, comparable: bool) -> st.SearchStrategy[Any]:
    match schema.name:
        case logical.DECIMAL_NAME:
            return decimals(logical.decimal_scale(schema))
        case logical.DATE_NAME:
            return DATES
        case logical.TIME_NAME:
            return TIMES
        case logical.TIMESTAMP_NAME:
            return TIMESTAMPS
    if schema.type is Type.STRUCT:
        return st.fixed_dictionaries(
            {field.name: values_of(field.schema, comparable=comparable) for field in schema.fields}
        )
    if schema.value_schema is None:
        return _scalars(schema.type, comparable)
    items = values_of(schema.value_schema, comparable=comparable)
    if schema.key_schema is None:
        return st.lists(items, max_size=4)
    return st.dictionaries(_keys(schema.key_schema), items, max_size=4)


def _scalars(kind: Type, comparable: bool) -> st.SearchStrategy[Any]:
    match kind:
        case Type.FLOAT32:
            plain = st.floats(width=32, allow_nan=not comparable)
            return plain | st.sampled_from([0.0, 1.5, 1e-7, 16777216.0]).map(single)
        case Type.FLOAT64:
            plain = st.floats(allow_nan=not comparable)
            return plain | st.sampled_from([0.0, 1.0, 1e7, 9999999.5, 0.001, 9.9e-4, 5e-324])
        case Type.BOOLEAN:
            return st.booleans()
        case Type.STRING:
            return texts()
        case Type.BYTES:
            return st.binary(max_size=12)
        case _:
            return INTEGERS[kind]


def _keys(schema: Schema) -> st.SearchStrategy[Any]:
    """Values of a schema that can be keys of a dict: arrays as tuples."""
    keys = values_of(schema.replace(optional=False), comparable=True).filter(lambda key: key is not None)
    return keys.map(tuple) if schema.type is Type.ARRAY else keys


def schemaless_values() -> st.SearchStrategy[Any]:
    """Values without a schema, as JSON gives them: whole numbers of 64 bits, no bytes, no dates."""
    scalars = st.none() | st.booleans() | INTEGERS[Type.INT64] | st.floats() | texts()
    return st.recursive(
        scalars,
        lambda parts: st.lists(parts, max_size=4) | st.dictionaries(texts(6), parts, max_size=4),
        max_leaves=12,
    )
