"""Schemas and values that fit them, for property tests.

``schemas()`` draws any schema, ``values_of(schema)`` a value it allows; ``schemas_and_values()`` draws both. What the
values are made of can be narrowed: ``logical_types`` and ``maps`` leave those out.
"""

from __future__ import annotations

import datetime as dt
import math
import struct
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

from connect.data import (
    Schema,
    SchemaAndValue,
    Type,
    date_schema,
    decimal_schema,
    logical,
    time_schema,
    timestamp_schema,
)

__all__ = ["schemaless_values", "schemas", "schemas_and_values", "structs", "texts", "values_of"]

RANGES = {Type.INT8: 7, Type.INT16: 15, Type.INT32: 31, Type.INT64: 63}
SCALARS = (*RANGES, Type.FLOAT32, Type.FLOAT64, Type.BOOLEAN, Type.STRING, Type.BYTES)


def texts(max_size: int = 12) -> st.SearchStrategy[str]:
    """Text that UTF-8 can hold."""
    return st.text(st.characters(exclude_categories=("Cs",)), max_size=max_size)


@st.composite
def scalar_schemas(draw: st.DrawFn, *, logical_types: bool = True) -> Schema:
    """A schema whose values hold no others."""
    optional = draw(st.booleans())
    if logical_types and draw(st.integers(0, 2)) == 0:
        makers = (date_schema, time_schema, timestamp_schema)
        if draw(st.booleans()):
            return decimal_schema(draw(st.integers(-3, 6)), optional=optional)
        return draw(st.sampled_from(makers))(optional=optional)
    attributes: dict[str, Any] = {"optional": optional}
    if draw(st.integers(0, 4)) == 0:
        attributes |= {"name": draw(st.sampled_from(["a.B", "x"])), "version": draw(st.integers(1, 3))}
        attributes |= {"doc": draw(texts()), "parameters": {"p": draw(texts())}}
    schema = Schema(draw(st.sampled_from(SCALARS)), **attributes)
    if draw(st.integers(0, 4)) == 0:
        return schema.replace(default=draw(values_of(schema.as_required())))
    return schema


@st.composite
def structs(
    draw: st.DrawFn, members: st.SearchStrategy[Schema] | None = None, *, optional: bool = True, least: int = 0
) -> Schema:
    """A struct of up to five fields, at least ``least``."""
    names = draw(st.lists(texts(6).filter(bool), unique=True, min_size=least, max_size=5))
    of = members if members is not None else schemas()
    fields = {name: draw(of) for name in names}
    return Schema.struct(fields, optional=optional and draw(st.booleans()))


def schemas(*, logical_types: bool = True, maps: bool = True) -> st.SearchStrategy[Schema]:
    """Any schema, some levels deep."""

    def containers(parts: st.SearchStrategy[Schema]) -> st.SearchStrategy[Schema]:
        arrays = st.builds(lambda part, optional: Schema.array(part, optional=optional), parts, st.booleans())
        kinds = [arrays, structs(parts)]
        if maps:
            keys = scalar_schemas(logical_types=logical_types).map(
                lambda key: key.replace(optional=False, default=None)
            )
            kinds.append(
                st.builds(
                    lambda key, part, optional: Schema.map(key, part, optional=optional),
                    st.just(Schema.string()) | keys,
                    parts,
                    st.booleans(),
                )
            )
        return st.one_of(kinds)

    return st.recursive(scalar_schemas(logical_types=logical_types), containers, max_leaves=8)


def values_of(schema: Schema) -> st.SearchStrategy[Any]:
    """The values a schema allows; null for a schema that is optional or has a default."""
    present = _present(schema)
    return st.none() | present if schema.optional or schema.default is not None else present


def _present(schema: Schema) -> st.SearchStrategy[Any]:
    if schema.name in logical.LOGICAL_NAMES:
        return _logical(schema)
    match schema.type:
        case Type.FLOAT32:
            return st.floats(width=32) | st.sampled_from([0.0, 1.5, 1e-7, 16777216.0]).map(_single)
        case Type.FLOAT64:
            return st.floats() | st.sampled_from([0.0, 1.0, 1e7, 9999999.5, 0.001, 9.9e-4, 5e-324])
        case Type.BOOLEAN:
            return st.booleans()
        case Type.STRING:
            return texts()
        case Type.BYTES:
            return st.binary(max_size=12)
        case Type.ARRAY:
            assert schema.value_schema is not None
            return st.lists(values_of(schema.value_schema), max_size=4)
        case Type.MAP:
            assert schema.key_schema is not None
            assert schema.value_schema is not None
            keys = values_of(schema.key_schema).filter(_may_be_key)
            return st.dictionaries(keys, values_of(schema.value_schema), max_size=4)
        case Type.STRUCT:
            return st.fixed_dictionaries({field.name: values_of(field.schema) for field in schema.fields})
        case _:
            bits = RANGES[schema.type]
            return st.integers(-(2**bits), 2**bits - 1)


def _may_be_key(value: Any) -> bool:
    return value.__hash__ is not None and not (isinstance(value, float) and math.isnan(value))


def _single(value: float) -> float:
    return struct.unpack("f", struct.pack("f", value))[0]


def _logical(schema: Schema) -> st.SearchStrategy[Any]:
    match schema.name:
        case logical.DECIMAL_NAME:
            scale = logical.decimal_scale(schema)
            unscaled = st.integers(-(10**20), 10**20)
            return unscaled.map(lambda number: Decimal(number).scaleb(-scale))
        case logical.DATE_NAME:
            return st.dates()
        case logical.TIME_NAME:
            return st.times().map(lambda time: time.replace(microsecond=time.microsecond // 1000 * 1000))
        case _:
            first = dt.datetime(1, 1, 2)  # noqa: DTZ001 - the strategy adds the time zone
            last = dt.datetime(9999, 12, 30)  # noqa: DTZ001 - as above
            moments = st.datetimes(first, last, timezones=st.just(dt.UTC))
            return moments.map(lambda moment: moment.replace(microsecond=moment.microsecond // 1000 * 1000))


def schemas_and_values(
    of: st.SearchStrategy[Schema] | None = None,
) -> st.SearchStrategy[SchemaAndValue]:
    """A schema and a value it allows."""
    drawn = of if of is not None else schemas()
    return drawn.flatmap(lambda schema: values_of(schema).map(lambda value: SchemaAndValue(schema, value)))


def schemaless_values() -> st.SearchStrategy[Any]:
    """Values without a schema, as JSON gives them: whole numbers of 64 bits, no bytes, no dates."""
    scalars = st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats() | texts()
    return st.recursive(
        scalars,
        lambda parts: st.lists(parts, max_size=4) | st.dictionaries(texts(6), parts, max_size=4),
        max_leaves=12,
    )
