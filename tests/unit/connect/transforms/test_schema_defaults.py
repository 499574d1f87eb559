"""The default of a schema stands for null in a record, and belongs to that record."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from connect.data import Schema, SinkBatch, SinkRecord
from connect.data.projection import project
from connect.transforms.extract_field import ExtractField
from connect.transforms.flatten import Flatten
from connect.transforms.header_from import HeaderFrom
from connect.transforms.insert_field import InsertField
from connect.transforms.insert_header import InsertHeader
from connect.transforms.replace_field import ReplaceField
from connect.transforms.value_to_key import ValueToKey

TAGS = Schema.array(Schema.string(), default=["a"])
TAGGED = Schema.struct({"tags": TAGS, "id": Schema.int32(default=5), "note": Schema.string(optional=True, default="n")})
Make = Callable[..., SinkRecord]


def test_a_schema_hands_out_its_default_anew() -> None:
    TAGS.default.append("b")
    assert TAGS.default == ["a"]
    nested = Schema.struct({"tags": TAGS}, default={"tags": ["x"]})
    nested.default["tags"].append("y")
    assert nested.default == {"tags": ["x"]}


@pytest.mark.parametrize(
    ("transformation", "config", "find"),
    [
        (InsertField.Value, {"static.field": "s", "static.value": "v"}, lambda record: record.value["tags"]),
        (ReplaceField.Value, {"exclude": "id"}, lambda record: record.value["tags"]),
        (ExtractField.Value, {"field": "tags"}, lambda record: record.value),
        (ValueToKey, {"fields": "tags"}, lambda record: record.key["tags"]),
        (
            HeaderFrom.Value,
            {"fields": "tags", "headers": "h", "operation": "copy"},
            lambda record: record.headers[0].value,
        ),
        (Flatten.Value, {}, lambda record: record.value["tags"]),
        (InsertHeader, {"header": "h", "value.literal": '["a"]'}, lambda record: record.headers[-1].value),
    ],
    ids=lambda part: getattr(part, "__qualname__", ""),
)
def test_a_default_that_is_changed_in_a_record_changes_no_other(
    transformation: Any, config: dict[str, str], find: Callable[[SinkRecord], list[str]], record: Make
) -> None:
    made, given = transformation.configured(config), record({"tags": None, "id": 1}, TAGGED)
    (batch,) = SinkBatch.from_records([given, given])
    in_batch = [result for part in made.apply_batch(batch) for result in part]
    for result in (made.apply(given), made.apply(given), *in_batch):
        assert find(result) == ["a"]
        find(result).append("b")
    assert TAGS.default == ["a"]


def test_a_projected_default_is_the_records_own() -> None:
    target = Schema.struct({"tags": TAGS})
    project(Schema.struct({}), {}, target)["tags"].append("b")
    assert project(Schema.struct({}), {}, target) == {"tags": ["a"]}


def test_flatten_puts_the_default_where_the_struct_that_holds_the_field_is_there(record: Make) -> None:
    schema = Schema.struct({"own": Schema.int32(default=7), "in": TAGGED, "gone": TAGGED.replace(optional=True)})
    value = {"own": None, "in": {"tags": None, "id": None, "note": None}, "gone": None}
    flat = Flatten.Value.configured({}).apply(record(value, schema)).value
    assert flat == {
        "own": 7,
        "in.tags": ["a"],
        "in.id": 5,
        "in.note": "n",
        "gone.tags": None,
        "gone.id": None,
        "gone.note": None,
    }
