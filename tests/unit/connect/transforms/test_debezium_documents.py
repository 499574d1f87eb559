"""Debezium's transformations of MongoDB's change events, and those with an expression, by their Java names."""

from __future__ import annotations

import datetime as dt
import json
from typing import Any

import pytest

from connect.data import Schema, SinkRecord
from connect.errors import ConfigError, DataError
from connect.internals.plugins import PluginKind, PluginRegistry
from connect.testing import sink_records

REGISTRY = PluginRegistry.discover()
TEXT = Schema.string(optional=True)
KEY = Schema.struct({"id": Schema.string()}, name="md.lab.c.Key")
UPDATE = Schema.struct({"updatedFields": TEXT, "removedFields": Schema.array(Schema.string(), optional=True)})
SOURCE = Schema.struct({"ts_ms": Schema.int64(), "collection": Schema.string()}, name="Source")
ENVELOPE = Schema.struct(
    {
        "before": TEXT,
        "after": TEXT,
        "updateDescription": UPDATE.as_optional(),
        "source": SOURCE,
        "op": Schema.string(),
        "ts_ms": Schema.int64(optional=True),
    },
    name="md.lab.c.Envelope",
)
UNWRAP = "connector.mongodb.transforms.ExtractNewDocumentState"
OUTBOX = "connector.mongodb.transforms.outbox.MongoEventRouter"


def made(java: str, **options: str) -> Any:
    """The transformation of Debezium's, from options with underscores for dots."""
    plugin = REGISTRY.load(PluginKind.TRANSFORMATION, f"io.debezium.{java}")
    return plugin.configured({key.replace("_", "."): value for key, value in options.items()})


def change(op: str, identity: str = "1", tombstone: bool = False, **parts: Any) -> SinkRecord:
    """A change event of MongoDB as Debezium writes it."""
    event = {"before": None, "after": None, "updateDescription": None, "op": op, "ts_ms": 99}
    event |= {"source": {"ts_ms": 5, "collection": "c"}, **parts}
    (record,) = sink_records([None if tombstone else event], topic="md.lab.c", schema=ENVELOPE)
    return record.replace(key={"id": identity}, key_schema=KEY)


RECORDED = (
    '{"_id": 1,"s": "x","l": {"$numberLong": "1099511627776"},"dec": {"$numberDecimal": "1.50"},"n": null,'
    '"oid": {"$oid": "0123456789ab0123456789ab"},"dt": {"$date": 1704164645123},'
    '"bin": {"$binary": "AP8=","$type": "00"},"sub": {"k": "v"},"ts": {"$timestamp": {"t": 1700000000,"i": 1}},'
    '"re": {"$regex": "^a","$options": "i"},"min": {"$minKey": 1},"many": [{"a": 1},{"b": true}],"none": []}'
)


def test_a_document_becomes_a_struct() -> None:
    new = made(UNWRAP).apply(change("c", after=RECORDED))
    assert (new.key, new.key_schema) == ({"id": 1}, Schema.struct({"id": Schema.int32(optional=True)}))
    assert new.value == {
        "_id": 1,
        "s": "x",
        "l": 1099511627776,
        "dec": "1.50",
        "n": None,
        "oid": "0123456789ab0123456789ab",
        "dt": dt.datetime(2024, 1, 2, 3, 4, 5, 123_000, dt.UTC),
        "bin": b"\x00\xff",
        "sub": {"k": "v"},
        "ts": dt.datetime(2023, 11, 14, 22, 13, 20, tzinfo=dt.UTC),
        "re": {"regex": "^a", "options": "i"},
        "many": [{"a": 1, "b": None}, {"a": None, "b": True}],
        "none": [],
    }
    fields = {field.name: field.schema for field in new.value_schema.fields}
    assert new.value_schema.name == "md.lab.c"
    assert fields["_id"] is Schema.int32(optional=True)
    assert fields["l"] is Schema.int64(optional=True)
    assert fields["sub"] is Schema.struct({"k": TEXT}, name="md.lab.c.sub", optional=True)
    assert fields["none"] is Schema.array(TEXT, optional=True)


def test_arrays_of_different_types_need_the_encoding_as_documents() -> None:
    given = change("c", after='{"_id": 1, "mixed": [1, "a", {"z": 1}]}')
    with pytest.raises(DataError, match=r"array md\.lab\.c\.mixed .* INT32 and STRING: set array.encoding to document"):
        made(UNWRAP).apply(given)
    new = made(UNWRAP, array_encoding="document").apply(given)
    assert new.value == {"_id": 1, "mixed": {"_0": 1, "_1": "a", "_2": {"z": 1}}}
    flat = made(UNWRAP, array_encoding="document", flatten_struct="true", flatten_struct_delimiter="-").apply(given)
    assert flat.value == {"_id": 1, "mixed-_0": 1, "mixed-_1": "a", "mixed-_2-z": 1}


def test_an_update_without_the_document_becomes_the_fields_it_sets() -> None:
    described = {"updatedFields": '{"s": "y", "sub.k": "w"}', "removedFields": ["i"]}
    given = change("u", identity='{"$oid": "0123456789ab0123456789ac"}', updateDescription=described)
    oid = "0123456789ab0123456789ac"
    assert made(UNWRAP).apply(given).value == {"s": "y", "sub.k": "w", "_id": oid}
    assert made(UNWRAP, flatten_struct="true").apply(given).value == {"s": "y", "sub_k": "w", "_id": oid}


@pytest.mark.parametrize(
    ("mode", "delete", "tombstone"),
    [
        ("drop", "dropped", "dropped"),
        ("tombstone", None, "dropped"),
        ("delete-to-tombstone", None, "dropped"),
        ("rewrite", {"_id": 1, "__deleted": True}, "dropped"),
        ("rewrite-with-tombstone", {"_id": 1, "__deleted": True}, None),
    ],
)
def test_deletes_are_handled_by_the_mode(mode: str, delete: Any, tombstone: Any) -> None:
    unwrap = made(UNWRAP, delete_tombstone_handling_mode=mode)

    def value(record: SinkRecord) -> Any:
        new = unwrap.apply(record)
        return "dropped" if new is None else new.value

    assert value(change("d", before='{"_id": 1}')) == delete
    assert value(change("d", tombstone=True)) == tombstone


def test_fields_of_the_event_are_added_and_the_topic_is_routed() -> None:
    unwrap = made(UNWRAP, add_fields="op,source.ts_ms,missing", add_headers="op", route_by_field="to")
    new = unwrap.apply(change("c", after='{"_id": 1, "to": "elsewhere"}'))
    assert (new.topic, new.value) == ("elsewhere", {"_id": 1, "to": "elsewhere", "__op": "c", "__source_ts_ms": 5})
    assert [(header.key, header.value) for header in new.headers] == [("__op", "c")]


def test_what_is_no_event_of_mongodb_passes_and_what_is_broken_is_told_without_its_content() -> None:
    heartbeat = change("c").replace(value_schema=Schema.struct({"ts_ms": Schema.int64()}, name="Heartbeat"))
    assert made(UNWRAP).apply(heartbeat) is heartbeat
    with pytest.raises(DataError, match="Field after is not a document of MongoDB") as caught:
        made(UNWRAP).apply(change("c", after='{"secret": '))
    assert "secret" not in str(caught.value)
    with pytest.raises(DataError, match=r"A value \$date of a document cannot be read"):
        made(UNWRAP).apply(change("c", after='{"d": {"$date": "never"}}'))
    with pytest.raises(DataError, match="not a document of MongoDB: RecursionError"):
        made(UNWRAP).apply(change("c", after='{"a":' * 100_000))


def test_events_without_schema_become_plain_documents() -> None:
    given = change("c", after='{"_id": 1, "l": {"$numberLong": "7"}, "mixed": [1, "a"]}')
    new = made(UNWRAP).apply(given.replace(value_schema=None, key_schema=None))
    assert (new.key, new.value, new.value_schema) == ({"id": 1}, {"_id": 1, "l": 7, "mixed": [1, "a"]}, None)


def test_options_of_older_versions_are_refused_with_what_to_write() -> None:
    with pytest.raises(ConfigError, match=r"add.source.fields is not supported: list the fields in add.fields"):
        made(UNWRAP, add_source_fields="db")


def test_events_of_an_outbox_collection_go_to_their_topics() -> None:
    document = {"_id": {"$oid": "0123456789ab0123456789ab"}, "aggregatetype": "order", "aggregateid": "7"}
    document |= {"type": "made", "payload": {"n": 1, "m": [2]}, "at": {"$numberLong": "1700000000123"}}
    given = change("c", after=json.dumps(document))
    options = {"collection_field_event_timestamp": "at", "collection_fields_additional_placement": "type:header:kind"}
    new = made(OUTBOX, **options).apply(given)
    assert (new.topic, new.key, new.value) == ("outbox.event.order", "7", '{"n": 1,"m": [2]}')
    assert new.timestamp == 1_700_000_000_123
    headers = {header.key: header.value for header in new.headers}
    assert headers == {"id": "0123456789ab0123456789ab", "kind": "made"}
    assert made(OUTBOX, **options, collection_expand_json_payload="true").apply(given).value == {"n": 1, "m": [2]}
    assert made(OUTBOX).apply(change("d")) is None
    with pytest.raises(ConfigError, match=r"collection.fields.additional.placement: Write field:header"):
        made(OUTBOX, collection_fields_additional_placement="type")


# -- with an expression --------------------------------------------------------------------------------------------


def test_records_are_kept_and_routed_by_an_expression() -> None:
    pytest.importorskip("cel")
    update, create = sink_records([{"op": "u"}, {"op": "c"}], topic="server.t")
    keep = made("transforms.Filter", language="cel", condition="value.op == 'u'")
    assert (keep.apply(update), keep.apply(create)) == (update, None)
    route = made("transforms.ContentBasedRouter", language="cel", topic_expression="value.op == 'u' ? 'updates' : null")
    assert (route.apply(update).topic, route.apply(create)) == ("updates", create)
    with pytest.raises(DataError, match="must be a topic or null, but is 1"):
        made("transforms.ContentBasedRouter", language="cel", topic_expression="1").apply(update)


@pytest.mark.parametrize(("mode", "kept"), [("keep", True), ("drop", False), ("evaluate", True)])
def test_records_without_a_value_and_of_other_topics_are_handled_as_told(mode: str, kept: bool) -> None:
    pytest.importorskip("cel")
    (tombstone,) = sink_records([None], topic="server.t")
    options = {"language": "cel", "null_handling_mode": mode}
    keep = made("transforms.Filter", condition="value == null", **options)
    assert (keep.apply(tombstone) is tombstone) is kept
    other = made("transforms.Filter", condition="false", topic_regex="server[.]other", **options)
    assert other.apply(tombstone) is tombstone


@pytest.mark.parametrize(
    ("condition", "advice"),
    [
        ("value.op == 'u'", "Set language to cel: condition can stay as it is"),
        ("def x = value.op; x", "write condition in the Common Expression Language, for example: value.op == 'u'"),
    ],
)
def test_a_script_is_refused_with_what_to_write(condition: str, advice: str) -> None:
    pytest.importorskip("cel")
    with pytest.raises(ConfigError, match=advice):
        made("transforms.Filter", language="jsr223.groovy", condition=condition)
