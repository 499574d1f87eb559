"""Schemas: one object for all that say the same, frozen, checked when made."""

from __future__ import annotations

import copy
import datetime as dt
import gc
import pickle
import threading
from typing import Any

import pytest

from connect.data import Field, Schema, Type, date_schema, decimal_schema, timestamp_schema
from connect.data.logical import decimal_scale
from connect.errors import SchemaError


def order_schema() -> Schema:
    line = Schema.struct({"sku": Schema.string(), "price": decimal_schema(2, optional=True)}, name="Line")
    return Schema.struct(
        {
            "id": Schema.int64(doc="The order's number"),
            "lines": Schema.array(line),
            "tags": Schema.map(Schema.string(), Schema.string(optional=True), default={"a": "b"}),
        },
        name="Order",
        version=3,
        parameters={"owner": "sales"},
    )


def test_two_schemas_that_say_the_same_are_one() -> None:
    assert order_schema() is order_schema()
    assert Schema.int32() is Schema(Type.INT32)
    assert Schema.struct([Field("a", Schema.int8(), 7)]) is Schema.struct({"a": Schema.int8()})


@pytest.mark.parametrize(
    "other",
    [
        {"optional": True},
        {"name": "n"},
        {"version": 1},
        {"doc": ""},
        {"parameters": {"a": "b"}},
        {"default": 0},
    ],
)
def test_schemas_that_differ_are_not_equal(other: dict[str, Any]) -> None:
    assert Schema.int32() != Schema.int32(**other)
    assert Schema.int32(**other) is Schema.int32().replace(**other)


def test_the_order_of_parameters_does_not_matter() -> None:
    assert Schema.int32(parameters={"a": "1", "b": "2"}) is Schema.int32(parameters={"b": "2", "a": "1"})


def test_interned_across_threads() -> None:
    start = threading.Barrier(8)
    made: list[list[Schema]] = []

    def make() -> None:
        start.wait()
        made.append([Schema.struct({f"f{i}": Schema.array(Schema.int32())}, doc="threads") for i in range(300)])

    threads = [threading.Thread(target=make) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 8
    assert all(mine is first for each in made for mine, first in zip(each, made[0], strict=True))


def test_pickles_and_copies_are_the_same_object() -> None:
    schema = order_schema()
    assert pickle.loads(pickle.dumps(schema)) is schema
    assert copy.copy(schema) is schema
    assert copy.deepcopy(schema) is schema


def test_what_nobody_holds_is_forgotten_and_made_again() -> None:
    data = pickle.dumps(Schema.struct({"forgotten": Schema.int8()}))
    gc.collect()
    assert pickle.loads(data) is Schema.struct({"forgotten": Schema.int8()})


@pytest.mark.parametrize(
    ("first", "second"),
    [(1, 1.0), (0.0, -0.0)],
)
def test_defaults_that_are_equal_but_not_the_same(first: float, second: float) -> None:
    one, other = Schema.float64(default=first), Schema.float64(default=second)
    assert one is not other
    assert repr(one.default) == repr(first)
    assert repr(other.default) == repr(second)


def test_true_is_no_default_of_a_number() -> None:
    assert Schema.int32(default=1).default == 1
    with pytest.raises(SchemaError, match="Invalid default value"):
        Schema.int32(default=True)


def test_defaults_that_say_the_same_are_one() -> None:
    fields = {"a": Schema.int8(), "b": Schema.int8()}
    assert Schema.struct(fields, default={"a": 1, "b": 2}) is Schema.struct(fields, default={"b": 2, "a": 1})
    noon = dt.datetime(2020, 1, 1, 12, tzinfo=dt.UTC)
    elsewhere = noon.astimezone(dt.timezone(dt.timedelta(hours=2)))
    assert timestamp_schema(default=noon) is timestamp_schema(default=elsewhere)
    assert Schema.bytes(default=b"a") is Schema.bytes(default=bytearray(b"a"))
    assert Schema.bytes(default=memoryview(b"b")).default == b"b"


def test_a_default_changed_afterwards_does_not_change_the_schema() -> None:
    default = [1, 2]
    schema = Schema.array(Schema.int32(), default=default)
    default.append(3)
    assert schema.default == [1, 2]


def test_frozen() -> None:
    schema = order_schema()
    with pytest.raises(AttributeError, match=r"replace\(doc=...\)"):
        schema.doc = "other"
    with pytest.raises(AttributeError):
        del schema.doc
    with pytest.raises(TypeError):
        schema.parameters["owner"] = "me"  # type: ignore[index]
    assert {schema: 1}[order_schema()] == 1


def test_optional_and_required() -> None:
    schema = Schema.string(doc="d")
    assert schema.as_optional() is Schema.string(doc="d", optional=True)
    assert schema.as_optional().as_required() is schema
    assert schema.as_required() is schema


def test_fields_in_order() -> None:
    schema = order_schema()
    assert schema.field_names == ("id", "lines", "tags")
    assert [field.index for field in schema.fields] == [0, 1, 2]
    lines = schema.field("lines")
    assert lines is not None
    assert lines.schema.value_schema is not None
    assert schema.field("nobody") is None


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"type": Type.ARRAY}, "needs a value schema"),
        ({"type": Type.MAP, "value_schema": Schema.int8()}, "needs a key schema"),
        ({"type": Type.INT8, "value_schema": Schema.int8()}, "needs a value schema if and only if"),
        ({"type": Type.INT8, "fields": {"a": Schema.int8()}}, "cannot have fields"),
        ({"type": Type.STRUCT, "fields": {"": Schema.int8()}}, "has no name"),
        ({"type": Type.STRUCT, "fields": [Field("a", Schema.int8(), 0)] * 2}, "duplication a"),
        ({"type": Type.INT8, "parameters": {"scale": 2}}, "must be a string, but it is 2: quote it"),
        ({"type": Type.INT8, "default": 128}, "Invalid default value"),
        ({"type": Type.INT32, "name": date_schema().name, "default": 5}, "Invalid default value"),
    ],
)
def test_refused(attributes: dict[str, Any], message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        Schema(**attributes)


def test_a_decimal_needs_a_scale() -> None:
    assert decimal_scale(decimal_schema(-2)) == -2
    with pytest.raises(SchemaError, match="scale parameter not found"):
        decimal_scale(Schema.bytes())
    with pytest.raises(SchemaError, match="Invalid scale parameter"):
        decimal_scale(Schema.bytes(parameters={"scale": "two"}))


def test_says_what_it_is() -> None:
    text = repr(order_schema())
    assert "Order" in text
    assert "lines: Schema(array of Schema(struct Line" in text
    assert repr(Schema.map(Schema.string(), Schema.int8(optional=True, default=1))) == (
        "Schema(map of Schema(string) to Schema(int8 optional default=1))"
    )
