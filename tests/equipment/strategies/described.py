"""Schemas with all attributes that a schema may have besides its type, and columns of their values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from connect.data import Schema, date_schema, decimal_schema, time_schema, timestamp_schema
from equipment.strategies.schemas import SCALARS
from equipment.strategies.values import texts, values_of

__all__ = ["SCHEMAS", "columns"]

TEXT = texts(8)
NAMES = TEXT.filter(bool)


@st.composite
def described(draw: st.DrawFn, schemas: st.SearchStrategy[Schema]) -> Schema:
    """Schemas with any attributes besides their type."""
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
        schema = schema.replace(default=draw(values_of(schema.as_required(), comparable=True)))
    return schema


LEAVES = described(
    st.sampled_from(
        [Schema(kind) for kind in SCALARS]
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
    return schema, draw(st.lists(values_of(schema, comparable=True), max_size=5))
