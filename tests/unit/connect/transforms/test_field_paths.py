"""Fields of nested structs and maps, in every transformation that takes paths."""

from __future__ import annotations

from typing import Any

import pytest

from connect.data import Schema, timestamp_schema
from connect.errors import ConfigError, DataError
from connect.transforms.cast import Cast
from connect.transforms.extract_timestamp import ExtractTimestamp
from connect.transforms.extract_topic import ExtractTopic
from connect.transforms.header_from import HeaderFrom
from connect.transforms.mask_field import MaskField
from connect.transforms.replace_field import ReplaceField
from connect.transforms.timestamp_converter import TimestampConverter
from connect.transforms.value_to_key import ValueToKey

ADDRESS = Schema.struct({"city": Schema.string(), "zip": Schema.int32()}, optional=True)
ORDER = Schema.struct({"id": Schema.int64(), "address": ADDRESS, "a.b": Schema.string(optional=True)})
VALUE = {"id": 5, "address": {"city": "Oslo", "zip": 150}, "a.b": "x"}
V2 = {"field.syntax.version": "v2"}
CHANGES = [
    (Cast.Value, {"spec": "address.zip:string"}, {**VALUE, "address": {"city": "Oslo", "zip": "150"}}),
    (MaskField.Value, {"fields": "address.city,`a.b`"}, {**VALUE, "address": {"city": "", "zip": 150}, "a.b": ""}),
    (ReplaceField.Value, {"exclude": "address.zip"}, {**VALUE, "address": {"city": "Oslo"}}),
    (ReplaceField.Value, {"include": "address.city"}, {"address": {"city": "Oslo"}}),
    (ReplaceField.Value, {"include": "address", "exclude": "address.zip"}, {"address": {"city": "Oslo"}}),
    (
        ReplaceField.Value,
        {"renames": "address.zip:code,id:key"},
        {"key": 5, "address": {"city": "Oslo", "code": 150}, "a.b": "x"},
    ),
    (
        HeaderFrom.Value,
        {"fields": "address.zip", "headers": "zip", "operation": "move"},
        {**VALUE, "address": {"city": "Oslo"}},
    ),
]


@pytest.mark.parametrize("schema", [None, ORDER], ids=["map", "struct"])
@pytest.mark.parametrize(("transformation", "config", "expected"), CHANGES)
def test_a_nested_field_is_changed(
    transformation: Any, config: dict[str, str], expected: Any, schema: Schema | None, record: Any
) -> None:
    made = transformation.configured({**config, **V2}).apply(record(VALUE, schema))
    assert made.value == expected
    if schema is not None:
        assert set(made.value_schema.field_names) == set(expected)
        assert set(made.value_schema.field("address").schema.field_names) == set(expected["address"])


@pytest.mark.parametrize(("transformation", "config", "_"), CHANGES)
def test_a_null_parent_stays_null(transformation: Any, config: dict[str, str], _: Any, record: Any) -> None:
    made = transformation.configured({**config, **V2}).apply(record({**VALUE, "address": None}, ORDER))
    assert made.value["address"] is None
    assert made.value_schema.field("address").schema.optional


@pytest.mark.parametrize("transformation", [Cast.Value, MaskField.Value])
def test_a_missing_parent_is_not_made(transformation: Any, record: Any) -> None:
    config = {"spec": "no.such:int8", "fields": "no.such", **V2}
    assert transformation.configured(config).apply(record({"id": 1})).value == {"id": 1}


def test_a_timestamp_within(record: Any) -> None:
    schema = Schema.struct({"meta": Schema.struct({"at": Schema.int64()})})
    convert = TimestampConverter.Value.configured({"field": "meta.at", "target.type": "Timestamp", **V2})
    made = convert.apply(record({"meta": {"at": 0}}, schema))
    assert made.value_schema is Schema.struct({"meta": Schema.struct({"at": timestamp_schema()})})
    assert made.value["meta"]["at"].year == 1970


def test_keys_headers_topics_and_timestamps_from_within(record: Any) -> None:
    given = record(VALUE, ORDER)
    keyed = ValueToKey.configured({"fields": "address.zip,id", **V2}).apply(given)
    assert (keyed.key, keyed.key_schema.field_names) == ({"zip": 150, "id": 5}, ("zip", "id"))
    moved = HeaderFrom.Value.configured({"fields": "address.zip", "headers": "h", "operation": "copy", **V2})
    assert [(header.key, header.value, header.schema) for header in moved.apply(given).headers] == [
        ("h", 150, Schema.int32())
    ]
    assert ExtractTopic.Value.configured({"field": "address.city", **V2}).apply(given).topic == "Oslo"
    assert ExtractTimestamp.Value.configured({"field.name": "address.zip", **V2}).apply(given).timestamp == 150


@pytest.mark.parametrize("transformation", [ValueToKey, HeaderFrom.Value])
def test_a_field_that_the_schema_does_not_have_is_an_error(transformation: Any, record: Any) -> None:
    config = {"fields": "address.nope", "headers": "h", "operation": "move", **V2}
    with pytest.raises(DataError, match=r"Field does not exist: address\.nope"):
        transformation.configured(config).apply(record(VALUE, ORDER))


@pytest.mark.parametrize(
    ("transformation", "config"),
    [
        (Cast.Value, {"spec": "`a:int8"}),
        (MaskField.Value, {"fields": "`a"}),
        (ReplaceField.Value, {"exclude": "`a"}),
        (ReplaceField.Value, {"renames": "`a:b"}),
        (HeaderFrom.Value, {"fields": "`a", "headers": "h", "operation": "copy"}),
        (ValueToKey, {"fields": "`a"}),
        (TimestampConverter.Value, {"field": "`a", "target.type": "unix"}),
        (ExtractTimestamp.Value, {"field.name": "`a"}),
    ],
)
def test_a_path_that_is_none_is_refused_in_the_config(transformation: Any, config: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match="Incomplete backtick pair"):
        transformation.configured({**config, **V2})
    transformation.configured(config)
