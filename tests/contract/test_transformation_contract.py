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
from connect.transforms.community.timestamp_now_field import TimestampNowField
from connect.transforms.debezium.by_logical_table_router import ByLogicalTableRouter
from connect.transforms.debezium.changed_record_state import ExtractChangedRecordState
from connect.transforms.debezium.document_event_router import DocumentEventRouter
from connect.transforms.debezium.document_unwrap import DocumentUnwrap
from connect.transforms.debezium.event_router import EventRouter
from connect.transforms.debezium.partition_routing import PartitionRouting
from connect.transforms.debezium.timezone_converter import TimezoneConverter
from connect.transforms.debezium_unwrap import DebeziumUnwrap
from connect.transforms.extract_topic import ExtractTopic

TRANSFORMATIONS: Final[Mapping[str, Mapping[str, str]]] = {
    "community.change_case.ChangeCase": {"from": "LOWER_CAMEL", "to": "UPPER_UNDERSCORE"},
    "community.concat_fields.ConcatFields": {
        "field.names": "id,name,none",
        "output.field.name": "all",
        "delimiter": "-",
    },
    "community.drop.Drop": {},
    "community.hash.Hash": {"field.name": "name", "function": "sha256", "skip.missing.or.null": "true"},
    "community.key_to_value.KeyToValue": {"key.fields": "*"},
    "community.make_tombstone.MakeTombstone": {},
    "community.message_timestamp_router.MessageTimestampRouter": {"message.timestamp.keys": "joined,id"},
    "debezium.content_based.ContentBasedFilter": {
        "language": "cel",
        "condition": "topic == 'a'",
        "null.handling.mode": "drop",
    },
    "debezium.content_based.ContentBasedRouter": {"language": "cel", "topic.expression": "topic + '.all'"},
    "debezium.header_to_value.HeaderToValue": {"headers": "trace", "fields": "traced", "operation": "move"},
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
    "debezium.content_based.ContentBasedFilter": "cel",
    "debezium.content_based.ContentBasedRouter": "cel",
    "expression.Expression": "cel",
    "filters.ExpressionFilter": "cel",
    "filters.JsonPathFilter": "jsonpath",
    "predicates.ExpressionMatches": "cel",
}
"""The optional libraries that some of them need."""

WITH_A_CLASS_BELOW: Final = {
    "community.timestamp_now_field.TimestampNowField",
    "debezium.by_logical_table_router.ByLogicalTableRouter",
    "debezium.changed_record_state.ExtractChangedRecordState",
    "debezium.document_event_router.DocumentEventRouter",
    "debezium.document_unwrap.DocumentUnwrap",
    "debezium.event_router.EventRouter",
    "debezium.partition_routing.PartitionRouting",
    "debezium.timezone_converter.TimezoneConverter",
    "debezium_unwrap.DebeziumUnwrap",
}
"""What has a class of its own below."""


def _load(path: str) -> Any:
    module, _, name = path.rpartition(".")
    return getattr(importlib.import_module(f"connect.transforms.{module}"), name)


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
    _name = "Test" + _path.rpartition(".")[2]
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


CHANGES: Final[Mapping[str, tuple[type[Any], Mapping[str, str]]]] = {
    "ByLogicalTableRouter": (
        ByLogicalTableRouter,
        {"topic.regex": "(server)[.](.*)", "topic.replacement": "$1.all", "key.field.regex": ".*[.](.*)"}
        | {"key.field.replacement": "$1"},
    ),
    "ChangedRecordState": (
        ExtractChangedRecordState,
        {"header.changed.name": "Changed", "header.unchanged.name": "Unchanged"},
    ),
    "EventRouter": (EventRouter, {"table.expand.json.payload": "true"}),
    "EventRouterWithEnvelope": (
        EventRouter,
        {"table.fields.additional.placement": "type:envelope:kind,type:header", "route.by.field": "type"},
    ),
    "PartitionRouting": (
        PartitionRouting,
        {"partition.payload.fields": "change.name,source.ts_ms", "partition.topic.num": "5"},
    ),
    "TimezoneConverter": (TimezoneConverter, {"converted.timezone": "+02:00"}),
}
OUTBOX: Final = Schema.struct(
    {
        "id": Schema.string(),
        "aggregateid": Schema.string(),
        "aggregatetype": Schema.string(),
        "type": Schema.string(),
        "payload": Schema.string(optional=True),
        "name": Schema.string(optional=True),
        "at": Schema.int64(optional=True, name="io.debezium.time.Timestamp"),
    },
    name="server.outbox.Value",
    optional=True,
)


def changes() -> Sequence[Record]:
    """Change events of all kinds, with a schema and without, and records that are none."""
    rows = [
        {"id": f"{number}", "aggregateid": "7", "aggregatetype": "order", "type": "made", "payload": payload}
        | {"name": f"n{number}", "at": 1_700_000_000_000 + number}
        for number, payload in enumerate(['{"a":[1,2]}', "text", None, " "])
    ]
    source = Schema.struct({"ts_ms": Schema.int64(), "table": Schema.string()}, name="source")
    envelope = Schema.struct(
        {"before": OUTBOX, "after": OUTBOX, "source": source, "op": Schema.string(), "ts_ms": Schema.int64()},
        name="server.outbox.Envelope",
        optional=True,
    )
    parts = {"source": {"ts_ms": 5, "table": "outbox"}, "ts_ms": 6}
    events: list[dict[str, Any] | None] = [
        *({"op": "c", "before": None, "after": row, **parts} for row in rows),
        {"op": "u", "before": rows[0], "after": rows[1], **parts},
        {"op": "d", "before": rows[1], "after": None, **parts},
        None,
    ]
    return [
        *sink_records(events, topic="server.outbox", schema=envelope),
        *sink_records(events, topic="server.outbox"),
        *sample_source_records(),
    ]


def _of_changes(plugin: type[Any], options: Mapping[str, str]) -> type:
    @pytest.fixture
    def props(self: object) -> Mapping[str, str]:
        return options

    @pytest.fixture
    def records(self: object) -> Sequence[Record]:
        return changes()

    return type("Test", (TransformationTests,), {"transformation_class": plugin, "props": props, "records": records})


for _name, (_plugin, _options) in CHANGES.items():
    globals()[f"TestChanges{_name}"] = _of_changes(_plugin, _options)


def document_changes() -> Sequence[Record]:
    """Change events of MongoDB of all kinds, with a schema and without, and records that are none."""
    text = Schema.string(optional=True)
    update = Schema.struct({"updatedFields": text, "removedFields": Schema.array(Schema.string(), optional=True)})
    source = Schema.struct({"ts_ms": Schema.int64()}, name="source")
    parts = {"before": text, "after": text, "updateDescription": update.as_optional(), "source": source}
    envelope = Schema.struct(
        {**parts, "op": Schema.string(), "ts_ms": Schema.int64()}, name="server.c.Envelope", optional=True
    )
    outbox = (
        '{"_id": {"$oid": "0123456789ab0123456789ab"}, "aggregateid": "7", "aggregatetype": "order", "type": "made"'
    )
    after = outbox + ', "payload": {"a": [1, 2], "n": {"$numberLong": "5"}}, "at": {"$date": 1704164645123}}'
    event = {"before": None, "after": None, "updateDescription": None, "source": {"ts_ms": 5}, "ts_ms": 6}
    events: list[dict[str, Any] | None] = [
        {**event, "op": "c", "after": after},
        {**event, "op": "u", "updateDescription": {"updatedFields": '{"a.b": 1}', "removedFields": ["c"]}},
        {**event, "op": "d", "before": after},
        None,
    ]
    key = Schema.struct({"id": Schema.string()}, name="server.c.Key")
    typed = sink_records(events, topic="server.c", schema=envelope)
    plain = sink_records(events, topic="server.c")
    return [
        *(record.replace(key={"id": "1"}, key_schema=key) for record in typed),
        *(record.replace(key={"id": "1"}) for record in plain),
        *sample_source_records(),
    ]


def _of_documents(plugin: type[Any], options: Mapping[str, str]) -> type:
    @pytest.fixture
    def props(self: object) -> Mapping[str, str]:
        return options

    @pytest.fixture
    def records(self: object) -> Sequence[Record]:
        return document_changes()

    return type("Test", (TransformationTests,), {"transformation_class": plugin, "props": props, "records": records})


for _name, (_plugin, _options) in {
    "Unwrap": (DocumentUnwrap, {"delete.tombstone.handling.mode": "rewrite", "add.fields": "op", "add.headers": "op"}),
    "FlatUnwrap": (DocumentUnwrap, {"flatten.struct": "true", "array.encoding": "document"}),
    "EventRouter": (DocumentEventRouter, {"collection.expand.json.payload": "true"}),
}.items():
    globals()[f"TestDocuments{_name}"] = _of_documents(_plugin, _options)


class TestTimestampNowField(TransformationTests):
    """The transformation that sets a field to the current time, which is another one each time."""

    transformation_class = TimestampNowField

    @pytest.fixture
    def props(self) -> Mapping[str, str]:
        return {"fields": "now"}

    def identity(self, record: Record) -> object:
        """Return all but the time."""
        key, value = (_without_now(part) for part in (record.key, record.value))
        return super().identity(record.replace(key=key, value=value))


def _without_now(part: Any) -> Any:
    return {**part, "now": None} if isinstance(part, dict) and "now" in part else part


def test_every_transformation_and_predicate_is_tested() -> None:
    known = {*TRANSFORMATIONS, *PREDICATES, *WITH_A_CLASS_BELOW}
    found = set()
    for info in pkgutil.walk_packages(connect.transforms.__path__, "connect.transforms."):
        if info.name.startswith("connect.transforms.fields"):
            # Their base classes.
            continue
        module = importlib.import_module(info.name)
        for name in getattr(module, "__all__", ()):
            plugin = getattr(module, name)
            public = inspect.isclass(plugin) and issubclass(plugin, (Transformation, Predicate))
            if public and plugin.__module__ == module.__name__ and not inspect.isabstract(plugin):
                found.add(f"{info.name.removeprefix('connect.transforms.')}.{name}")
    assert found <= known, "Give these a line in TRANSFORMATIONS or PREDICATES."
