"""How tables get their schemas, how these grow, and what is no growth."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connect.data import Field, Schema, Type, date_schema, decimal_schema, timestamp_schema
from connect.errors import DataError, SchemaError
from connect.kits.schema_json import schema_from_json, schema_to_json
from connectors.spark.decoding.inference import infer_rows, prune
from connectors.spark.schema import Evolution, in_common, rewritten_columns, table_schema, widen

INTEGERS = (Type.INT8, Type.INT16, Type.INT32, Type.INT64)
SCALARS = (*INTEGERS, Type.FLOAT32, Type.FLOAT64, Type.BOOLEAN, Type.STRING, Type.BYTES)


def optional(kind: Type) -> Schema:
    return Schema(kind, optional=True)


def table(**fields: Schema) -> Schema:
    return Schema.struct(fields)


def _nested(children: st.SearchStrategy[Schema]) -> st.SearchStrategy[Schema]:
    names = st.sampled_from(["a", "b", "c", "key"])
    structs = st.dictionaries(names, children, max_size=3).map(lambda fields: Schema.struct(fields, optional=True))
    arrays = children.map(lambda items: Schema.array(items, optional=True))
    maps = children.map(lambda items: Schema.map(Schema.string(), items, optional=True))
    return structs | arrays | maps


logical = st.sampled_from(
    [date_schema(optional=True), timestamp_schema(optional=True), decimal_schema(2, optional=True)]
)
columns = st.recursive(st.sampled_from(SCALARS).map(optional) | logical, _nested, max_leaves=6).map(
    lambda schema: table_schema(Schema.struct({"x": schema})).fields[0].schema
)
tables = st.dictionaries(st.sampled_from(["a", "b", "c", "d"]), columns, max_size=4).map(Schema.struct)


def test_a_table_takes_the_fields_of_a_struct_and_forgets_what_columns_lack() -> None:
    value = Schema.struct(
        {
            "id": Schema.int32(default=3, doc="the id"),
            "inner": Schema.struct({"x": Schema.string()}, name="inner", version=2),
            "at": timestamp_schema(),
        },
        name="flight",
        version=7,
        optional=True,
    )
    assert table_schema(value) is table(
        id=Schema.int32(optional=True),
        inner=Schema.struct({"x": Schema.string(optional=True)}, optional=True),
        at=Schema(Type.INT64, optional=True, name=timestamp_schema().name),
    )


def test_a_table_of_what_is_no_struct_has_the_column_value() -> None:
    assert table_schema(Schema.bytes()) is table(value=Schema.bytes(optional=True))


@pytest.mark.parametrize(
    ("first", "second", "both"),
    [
        (Type.INT8, Type.INT16, Type.INT16),
        (Type.INT64, Type.INT32, Type.INT64),
        (Type.INT16, Type.FLOAT32, Type.FLOAT32),
        (Type.INT32, Type.FLOAT64, Type.FLOAT64),
        (Type.FLOAT32, Type.FLOAT64, Type.FLOAT64),
        (Type.INT32, Type.FLOAT32, Type.FLOAT64),
    ],
)
def test_numbers_widen_where_nothing_is_lost(first: Type, second: Type, both: Type) -> None:
    assert widen(table(n=optional(first)), table(n=optional(second))) is table(n=optional(both))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (Type.INT64, Type.FLOAT64),
        (Type.STRING, Type.INT64),
        (Type.BYTES, Type.STRING),
        (Type.BOOLEAN, Type.INT8),
    ],
)
def test_what_would_change_values_is_refused_and_names_the_column(first: Type, second: Type) -> None:
    inner = table(deep=Schema.array(optional(first), optional=True))
    other = table(deep=Schema.array(optional(second), optional=True))
    with pytest.raises(SchemaError, match=rf'"deep\[\]" of the table is {first.value} and cannot hold {second.value}'):
        widen(inner, other)
    assert Evolution().grown(inner, other) is inner


def test_logical_types_widen_only_to_themselves() -> None:
    for other in (date_schema(), decimal_schema(3), Schema.bytes()):
        with pytest.raises(SchemaError, match="Decimal"):
            widen(table(n=decimal_schema(2)), table(n=other))


def test_new_columns_come_last_and_deep_ones_too() -> None:
    one = table(a=Schema.struct({"x": Schema.int64(optional=True)}, optional=True))
    two = table(b=Schema.string(optional=True), a=Schema.struct({"y": Schema.boolean(optional=True)}, optional=True))
    both = widen(one, two)
    assert both.field_names == ("a", "b")
    assert both.fields[0].schema.field_names == ("x", "y")


@given(tables, tables)
def test_the_wider_table_holds_both(one: Schema, two: Schema) -> None:
    wide = Evolution().grown(one, two)
    assert Evolution().grown(wide, one) is wide
    assert set(wide.field_names) == {*one.field_names, *two.field_names}
    try:
        exact = widen(one, two)
    except SchemaError:
        return
    assert exact is wide
    assert widen(exact, two) is exact


@given(tables)
def test_a_table_holds_itself_and_survives_json(schema: Schema) -> None:
    assert widen(schema, schema) is schema
    assert in_common(schema, schema) is schema
    assert schema_from_json(json.loads(json.dumps(schema_to_json(schema)))) is schema


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        (7, "is a JSON object"),
        ({"type": "int128"}, "use one of array, boolean"),
        ({"type": "struct"}, 'needs "fields"'),
        ({"type": "struct", "fields": [{"type": "int8"}]}, 'needs its name in "field"'),
        ({"type": "array"}, "is a JSON object"),
    ],
)
def test_json_that_is_no_schema_is_refused(document: object, reason: str) -> None:
    with pytest.raises(SchemaError, match=reason):
        schema_from_json(document)


# -- values without a schema -------------------------------------------------------------------------------------


def test_types_are_taken_from_values_that_show_them() -> None:
    rows: list[dict[str, Any]] = [
        {"a": 1, "b": [], "c": {}, "d": None, "e": {"x": [1, None, 2.5], "y": [[]]}},
        {"a": 1.5, "b": ["x"], "f": True},
    ]
    assert infer_rows(rows) is table(
        a=Schema.float64(optional=True),
        b=Schema.array(Schema.string(optional=True), optional=True),
        e=Schema.struct({"x": Schema.array(Schema.float64(optional=True), optional=True)}, optional=True),
        f=Schema.boolean(optional=True),
    )


def test_of_types_that_do_not_agree_the_first_counts() -> None:
    rows: list[dict[str, Any]] = [{"a": 1}, {"a": "x", "b": "y"}, {"b": {"z": 1}}, {"c": [1, "x"]}]
    assert infer_rows(rows) is table(a=Schema.int64(optional=True), b=Schema.string(optional=True))


def test_pruning_leaves_out_what_has_no_type_yet_and_tells() -> None:
    known = table(a=Schema.array(Schema.struct({"x": Schema.int64(optional=True)}), optional=True))
    untyped: set[str] = set()
    value = {"a": [{"x": 1, "y": []}, {"z": None}], "b": {}, "c": None}
    assert prune(value, known, untyped) == {"a": [{"x": 1}, {}]}
    assert untyped == {"a[].y", "b"}
    assert prune({"new": 1}, known, untyped) == {"new": 1}


def test_a_field_of_one_value_whose_items_do_not_agree_is_no_type() -> None:
    with pytest.raises(DataError):
        prune({"c": [1, "x"]}, table(), set())


def test_fields_of_a_table_are_in_the_order_they_were_seen() -> None:
    schema = infer_rows([{"b": 1}, {"a": 1, "b": 2}])
    assert [field.name for field in schema.fields] == ["b", "a"]
    assert isinstance(schema.fields[0], Field)


def test_whole_numbers_become_floats_where_tables_are_rewritten() -> None:
    table = Schema.struct(
        {
            "a": Schema.int64(optional=True),
            "b": Schema.array(Schema.int64(optional=True), optional=True),
            "c": Schema.int32(optional=True),
            "d": Schema.string(optional=True),
            "e": Schema.float64(optional=True),
        }
    )
    seen = Schema.struct(
        {
            "a": Schema.float32(optional=True),
            "b": Schema.array(Schema.float64(optional=True), optional=True),
            "c": Schema.float64(optional=True),
            "d": Schema.float64(optional=True),
            "e": Schema.int64(optional=True),
        }
    )
    grown = Evolution.of("BACKWARD", "rewrite").grown(table, seen)
    double = Schema.float64(optional=True)
    wider = {"a": double, "b": Schema.array(double, optional=True)}
    assert grown == Schema.struct({**wider, "c": double, "d": Schema.string(optional=True), "e": double})
    assert rewritten_columns(table, grown) == wider
    for compatibility, conflict in [("NONE", "fail"), ("FULL", "rewrite"), ("FORWARD", "rewrite")]:
        assert rewritten_columns(table, Evolution.of(compatibility, conflict).grown(table, seen)) == {}


def test_decimals_get_more_digits_where_the_table_format_can_widen_them() -> None:
    few, many = (decimal_schema(2, optional=True, parameters={"connect.decimal.precision": d}) for d in ("5", "9"))
    table, wider = Schema.struct({"price": few}), Schema.struct({"price": many})
    assert widen(table, wider) == wider
    assert widen(wider, table) == wider
    assert Evolution().grown(table, wider) == wider
    kept = Evolution(unwidened=frozenset({(Type.BYTES, Type.BYTES)}))
    assert kept.grown(table, wider) == table
    with pytest.raises(SchemaError, match="price"):
        widen(table, Schema.struct({"price": decimal_schema(3, optional=True)}))
