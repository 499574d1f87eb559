"""Schemas for property tests.

``schemas()`` draws any schema, ``schemas_and_values()`` a value with it. ``logical_types`` and ``maps`` can be
excluded.
"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from connect.data import Schema, SchemaAndValue, Type, date_schema, decimal_schema, time_schema, timestamp_schema
from equipment.strategies.values import INTEGERS, texts, values_of

__all__ = ["SCALARS", "schemas", "schemas_and_values", "structs"]

SCALARS = (*INTEGERS, Type.FLOAT32, Type.FLOAT64, Type.BOOLEAN, Type.STRING, Type.BYTES)


@st.composite
def scalar_schemas(draw: st.DrawFn, *, logical_types: bool = True) -> Schema:
    """A schema whose values contain no other values."""
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


def schemas_and_values(
    of: st.SearchStrategy[Schema] | None = None,
) -> st.SearchStrategy[SchemaAndValue]:
    """A schema and a value it allows."""
    drawn = of if of is not None else schemas()
    return drawn.flatmap(lambda schema: values_of(schema).map(lambda value: SchemaAndValue(schema, value)))
