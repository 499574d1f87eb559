"""Every schema and every value goes to Arrow and comes back the same."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from hypothesis import HealthCheck, given, settings

from connect.data import Schema
from connect.data.arrow import (
    arrow_schema,
    arrow_type,
    conform,
    schema_from_arrow,
    schema_from_arrow_type,
    to_array,
    to_values,
)
from equipment.examples import examples
from equipment.strategies.described import SCHEMAS, columns

PATIENT = settings(deadline=None, max_examples=examples(100), suppress_health_check=[HealthCheck.too_slow])


@PATIENT
@given(SCHEMAS)
def test_a_schema_comes_back_as_the_same_object(schema: Schema) -> None:
    struct = Schema.struct({"field": schema}, name="Row", doc="One row", version=2, optional=True)
    through_a_file = pa.ipc.read_schema(arrow_schema(struct).serialize())
    assert schema_from_arrow(through_a_file) is struct


@PATIENT
@given(SCHEMAS)
def test_a_type_alone_gives_a_schema_of_that_type(schema: Schema) -> None:
    data_type = arrow_type(schema)
    assert arrow_type(schema_from_arrow_type(data_type, schema.optional)).equals(data_type)


@PATIENT
@given(columns())
def test_values_come_back(column: tuple[Schema, list[Any]]) -> None:
    schema, values = column
    array = to_array(values, schema)
    array.validate(full=True)
    assert array.type.equals(arrow_type(schema))
    assert list(to_values(array, schema)) == values
    assert list(to_values(array.slice(1, 2), schema)) == values[1:3]


@PATIENT
@given(columns())
def test_an_array_of_the_type_conforms_as_it_is(column: tuple[Schema, list[Any]]) -> None:
    schema, values = column
    array = to_array(values, schema)
    conformed = conform(array.slice(1), schema)
    conformed.validate(full=True)
    assert list(to_values(conformed, schema)) == values[1:]
