"""The transformations and predicates keep the contract."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import pkgutil
from collections.abc import Mapping, Sequence
from typing import Any, Final

import pytest

import connect.transforms
from connect.data import NO_HEADERS, Record, Schema
from connect.testing import PredicateTests, TransformationTests, sample_source_records, sink_records
from connect.transformation import Predicate, Transformation
from connect.transforms.debezium_unwrap import DebeziumUnwrap
from connect.transforms.extract_topic import ExtractTopic

TRANSFORMATIONS: Final[Mapping[str, Mapping[str, str]]] = {
    "cast.Cast": {"spec": "id:string,level:string"},
    "drop_headers.DropHeaders": {"headers": "trace"},
    "expression.Expression": {"expression": "topic + '!'", "field": "name", "result.type": "string"},
    "filters.ExpressionFilter": {"filter.condition": "topic == 'orders'", "filter.type": "exclude"},
    "extract_field.ExtractField": {"field": "name"},
    "extract_timestamp.ExtractTimestamp": {"field.name": "id"},
    "extract_topic.ExtractTopic": {"field": "name", "skip.missing.or.null": "true"},
    "filters.Filter": {},
    "flatten.Flatten": {"delimiter": "_"},
    "header_from.HeaderFrom": {"fields": "id,name", "headers": "h1,h2", "operation": "move"},
    "hoist_field.HoistField": {"field": "line"},
    "insert_field.InsertField": {"topic.field": "t", "timestamp.field": "ts", "static.field": "s", "static.value": "v"},
    "insert_header.InsertHeader": {"header": "h", "value.literal": "12"},
    "filters.JsonPathFilter": {
        "filter.condition": "$[?(@.id > 1)]",
        "filter.type": "include",
        "missing.or.null.behavior": "exclude",
    },
    "mask_field.MaskField": {"fields": "name"},
    "regex_router.RegexRouter": {"regex": "or(.*)", "replacement": "new-$1"},
    "replace_field.ReplaceField": {"exclude": "tags", "renames": "id:number"},
    "set_schema_metadata.SetSchemaMetadata": {"schema.name": "new", "schema.version": "7"},
    "timestamp_converter.TimestampConverter": {"field": "joined", "target.type": "unix"},
    "timestamp_router.TimestampRouter": {},
    "tombstone_handler.TombstoneHandler": {"behavior": "drop_silent"},
    "value_to_key.ValueToKey": {"fields": "id,name"},
}
PREDICATES: Final[Mapping[str, Mapping[str, str]]] = {
    "predicates.ExpressionMatches": {"expression": "partition == 3"},
    "predicates.HasHeaderKey": {"name": "trace"},
    "predicates.RecordIsTombstone": {},
    "predicates.TopicNameMatches": {"pattern": "ord.*"},
}
ROW: Final = Schema.struct({"id": Schema.int32(), "name": Schema.string()}, name="server.orders.Value", optional=True)
ENVELOPE: Final = Schema.struct(
    {
        "before": ROW,
        "after": ROW,
        "source": Schema.struct({"ts_ms": Schema.int64()}, name="source"),
        "op": Schema.string(),
    },
    name="server.orders.Envelope",
    optional=True,
)
LIBRARIES: Final[Mapping[str, str]] = {
    "expression.Expression": "cel",
    "filters.ExpressionFilter": "cel",
    "filters.JsonPathFilter": "jsonpath",
    "predicates.ExpressionMatches": "cel",
}
"""The optional libraries that some of them need."""

WITH_A_CLASS_BELOW: Final = {"debezium_unwrap.DebeziumUnwrap"}
"""What has a class of its own below."""


def _load(path: str) -> Any:
    module, _, nested = path.partition(".")
    loaded: Any = importlib.import_module(f"connect.transforms.{module}")
    for name in nested.split("."):
        loaded = getattr(loaded, name)
    return loaded


def _tests(kit: type, attribute: str, path: str, props: Mapping[str, str]) -> type:
    """A class of tests for one plugin, as its author would write it."""

    @pytest.fixture(name="props")
    def given(self: object) -> Mapping[str, str]:
        return props

    library = LIBRARIES.get(path)
    missing = library is not None and importlib.util.find_spec(library) is None
    marks = [pytest.mark.skipif(missing, reason=f"{library} is not installed")]
    return type("Test", (kit,), {attribute: _load(path), "props": given, "pytestmark": marks})


for _path, _props in TRANSFORMATIONS.items():
    _name = "Test" + _path.partition(".")[2].replace(".", "")
    globals()[_name] = _tests(TransformationTests, "transformation_class", _path, _props)

for _path, _props in PREDICATES.items():
    globals()["Test" + _path.partition(".")[2]] = _tests(PredicateTests, "predicate_class", _path, _props)


class TestExtractTopicHeader(TransformationTests):
    """The transformation that takes the topic from a header: none of the samples has one that names a topic."""

    transformation_class = ExtractTopic.Header

    @pytest.fixture
    def props(self) -> Mapping[str, str]:
        return {"field": "to", "skip.missing.or.null": "true"}

    @pytest.fixture
    def records(self) -> Sequence[Record]:
        to = NO_HEADERS.add("to", "elsewhere", Schema.string())
        return [
            record.replace(headers=to) if index % 2 else record for index, record in enumerate(sample_source_records())
        ]


class TestDebeziumUnwrap(TransformationTests):
    """The transformation of Debezium's change events."""

    transformation_class = DebeziumUnwrap

    @pytest.fixture(params=["drop", "tombstone", "rewrite", "delete-to-tombstone"])
    def props(self, request: pytest.FixtureRequest) -> Mapping[str, str]:
        return {"delete.tombstone.handling.mode": request.param, "add.fields": "op,source.ts_ms", "add.headers": "op"}

    @pytest.fixture
    def records(self) -> Sequence[Record]:
        rows = [{"id": number, "name": f"row {number}"} for number in range(3)]
        events: list[dict[str, Any] | None] = [
            {"op": "c", "before": None, "after": rows[0], "source": {"ts_ms": 1}},
            {"op": "u", "before": rows[0], "after": rows[1], "source": {"ts_ms": 2}},
            {"op": "d", "before": rows[1], "after": None, "source": {"ts_ms": 3}},
            None,
            {"op": "r", "before": None, "after": rows[2], "source": {"ts_ms": 4}},
        ]
        return [
            *sink_records(events, topic="server.orders", schema=ENVELOPE),
            *sink_records(events, topic="server.orders"),
            *sample_source_records(),
        ]


def test_every_transformation_and_predicate_is_tested() -> None:
    known = {*TRANSFORMATIONS, *PREDICATES, *WITH_A_CLASS_BELOW}
    found = set()
    for info in pkgutil.iter_modules(connect.transforms.__path__):
        module = importlib.import_module(f"connect.transforms.{info.name}")
        for name in getattr(module, "__all__", ()):
            plugin = getattr(module, name)
            public = inspect.isclass(plugin) and issubclass(plugin, (Transformation, Predicate))
            if public and plugin.__module__ == module.__name__ and not inspect.isabstract(plugin):
                found.add(f"{info.name}.{name}")
    assert found <= known, "Give these a line in TRANSFORMATIONS or PREDICATES."
