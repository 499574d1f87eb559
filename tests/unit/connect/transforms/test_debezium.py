"""Debezium's transformations, by their Java names, on its change events."""

from __future__ import annotations

import datetime as dt
import logging
from typing import Any

import pytest

from connect.data import Headers, Schema, SinkRecord, SourceRecord, timestamp_schema
from connect.errors import ConfigError, ConnectError, DataError
from connect.internals.plugins import PluginKind, PluginRegistry

REGISTRY = PluginRegistry.discover()
TEXT = Schema.string()
OPTIONAL = Schema.string(optional=True)
MICROS = "io.debezium.time.MicroTimestamp"


def made(java: str, **options: str) -> Any:
    """The transformation of Debezium's, from options with underscores for dots."""
    plugin = REGISTRY.load(PluginKind.TRANSFORMATION, f"io.debezium.transforms.{java}")
    return plugin.configured({key.replace("_", "."): value for key, value in options.items()})


def envelope(row: Schema, name: str = "server.db.table") -> Schema:
    """The schema of change events."""
    source = Schema.struct({"ts_ms": Schema.int64(), "table": TEXT}, name="Source")
    parts = {"before": row, "after": row, "source": source, "op": TEXT, "ts_ms": Schema.int64(optional=True)}
    return Schema.struct(parts, name=f"{name}.Envelope", version=1)


def event(op: str, before: Any = None, after: Any = None, table: str = "t") -> dict[str, Any]:
    return {"before": before, "after": after, "source": {"ts_ms": 5, "table": table}, "op": op, "ts_ms": 99}


# -- ByLogicalTableRouter ------------------------------------------------------------------------------------------

ROW = Schema.struct({"id": Schema.int32(), "name": OPTIONAL}, name="server.db.shard1.Value", optional=True)
SHARD = envelope(ROW, "server.db.shard1")
KEY = Schema.struct({"id": Schema.int32()}, name="server.db.shard1.Key")
ROUTES = {"topic_regex": r"(.*)shard(.*)", "topic_replacement": "$1all"}


def shard(value: Any, schema: Schema | None = SHARD, **others: Any) -> SourceRecord:
    given = {"key": {"id": 1}, "key_schema": KEY, "source_partition": {}, "source_offset": {}} | others
    return SourceRecord("server.db.shard1", value, schema, **given)


def test_tables_are_joined_in_one_topic_with_their_names_in_the_key() -> None:
    given = event("c", after={"id": 1, "name": "Ann"})
    new = made("ByLogicalTableRouter", **ROUTES).apply(shard(given))
    assert new.topic == "server.db.all"
    assert new.key == {"id": 1, "__dbz__physicalTableIdentifier": "server.db.shard1"}
    assert new.key_schema is Schema.struct(
        {"id": Schema.int32(), "__dbz__physicalTableIdentifier": TEXT}, name="server.db.all.Key"
    )
    assert new.value == given
    assert new.value_schema is envelope(ROW.replace(name="server.db.all.Value"), "server.db.all")


@pytest.mark.parametrize(
    ("options", "key"),
    [
        ({"key_enforce_uniqueness": "false"}, {"id": 1}),
        ({"key_field_name": "table"}, {"id": 1, "table": "server.db.shard1"}),
        (
            {"key_field_regex": ".*[.](.*)", "key_field_replacement": "<$1>"},
            {"id": 1, "__dbz__physicalTableIdentifier": "<shard1>"},
        ),
        (
            {"key_field_regex": "other", "key_field_replacement": "x"},
            {"id": 1, "__dbz__physicalTableIdentifier": "server.db.shard1"},
        ),
    ],
)
def test_the_key_tells_the_table_as_it_is_told(options: Any, key: Any) -> None:
    router = made("ByLogicalTableRouter", **ROUTES, **options)
    assert router.apply(shard(event("c"))).key == key
    assert router.apply(shard(event("c"), None, key_schema=None)).key == key


def test_what_does_not_match_passes_and_tombstones_are_routed() -> None:
    router = made("ByLogicalTableRouter", **ROUTES)
    other = shard(event("c")).replace(topic="server.db.other")
    assert router.apply(other) is other
    tombstone = router.apply(shard(None, None))
    assert (tombstone.topic, tombstone.value, tombstone.value_schema) == ("server.db.all", None, None)
    assert router.apply(shard(event("c"), key=None, key_schema=None)).key is None
    heartbeat = shard({"ts_ms": 1}, Schema.struct({"ts_ms": Schema.int64()}, name="Heartbeat"))
    assert router.apply(heartbeat).value_schema is heartbeat.value_schema


def test_an_empty_topic_is_not_routed_to(caplog: pytest.LogCaptureFixture) -> None:
    given = shard(event("c"))
    assert made("ByLogicalTableRouter", topic_regex=".*", topic_replacement="").apply(given) is given
    assert "makes an empty topic" in caplog.text


@pytest.mark.parametrize(("mode", "name"), [("none", "a-b.1"), ("avro", "a_b.1"), ("avro_unicode", "a_u002db.1")])
def test_names_of_schemas_are_adjusted(mode: str, name: str) -> None:
    router = made("ByLogicalTableRouter", topic_regex=".*", topic_replacement="a-b.1", schema_name_adjustment_mode=mode)
    assert router.apply(shard(None)).key_schema.name == f"{name}.Key"


def test_a_regex_of_the_key_needs_a_replacement() -> None:
    with pytest.raises(ConfigError, match="must be non-empty"):
        made("ByLogicalTableRouter", **ROUTES, key_field_regex="x")


# -- EventRouter ---------------------------------------------------------------------------------------------------

OUTBOX = Schema.struct(
    {
        "id": TEXT,
        "aggregatetype": TEXT,
        "aggregateid": TEXT,
        "type": TEXT,
        "payload": OPTIONAL,
        "at": Schema.int64(optional=True, name=MICROS),
        "version": Schema.int32(optional=True),
    },
    name="server.outbox.Value",
    optional=True,
)


def outbox(payload: Any = '{"n":1}', op: str = "c", schema: bool = True, **columns: Any) -> SinkRecord:
    row = {"id": "e1", "aggregatetype": "order", "aggregateid": "7", "type": "made", "payload": payload}
    row |= {"at": 1_700_000_000_123_456, "version": 3, **columns}
    value = event(op, row if op in "ud" else None, None if op == "d" else row)
    return SinkRecord(
        topic="server.outbox",
        partition=2,
        offset=7,
        timestamp=1,
        key={"id": "e1"},
        value=value,
        value_schema=envelope(OUTBOX) if schema else None,
        original_topic="server.outbox",
        original_partition=2,
        original_offset=7,
    )


@pytest.mark.parametrize("schema", [True, False])
def test_an_event_goes_to_the_topic_of_its_aggregate(schema: bool) -> None:
    new = made("outbox.EventRouter").apply(outbox(schema=schema))
    assert (new.topic, new.timestamp, new.partition) == ("outbox.event.order", 99, 2)
    assert (new.key, new.key_schema) == ("7", TEXT if schema else None)
    assert (new.value, new.value_schema) == ('{"n":1}', OPTIONAL if schema else None)
    assert [(header.key, header.value, header.schema) for header in new.headers] == [
        ("id", "e1", TEXT if schema else None)
    ]
    assert (new.original_topic, new.offset) == ("server.outbox", 7)


@pytest.mark.parametrize(
    ("options", "topic"),
    [
        ({"route_by_field": "type"}, "outbox.event.made"),
        ({"route_topic_replacement": "events.${routedByValue}"}, "events.order"),
        ({"route_topic_regex": "(o)(.*)", "route_topic_replacement": "$2-$1"}, "rder-o"),
        ({"route_topic_regex": "no", "route_topic_replacement": "x"}, "order"),
    ],
)
def test_the_topic_is_made_as_it_is_told(options: Any, topic: str) -> None:
    assert made("outbox.EventRouter", **options).apply(outbox()).topic == topic


def test_columns_are_placed_in_headers_the_envelope_and_the_partition() -> None:
    router = made(
        "outbox.EventRouter",
        table_fields_additional_placement="type:header:eventType,type:envelope:kind,aggregateid:envelope,version:partition",
        table_field_event_schema_version="version",
    )
    new = router.apply(outbox())
    assert new.value == {"payload": '{"n":1}', "kind": "made", "aggregateid": "7"}
    assert new.value_schema is Schema.struct(
        {"payload": OPTIONAL, "kind": TEXT, "aggregateid": TEXT}, name="server.outbox.order.Value", version=3
    )
    assert [(header.key, header.value) for header in new.headers] == [("id", "e1"), ("eventType", "made")]
    assert new.partition == 3


def test_a_column_that_is_missing_fails_the_event_or_is_left_out() -> None:
    options = {"table_fields_additional_placement": "none:header,none:envelope"}
    with pytest.raises(DataError, match="no column none"):
        made("outbox.EventRouter", **options).apply(outbox())
    lenient = made("outbox.EventRouter", **options, table_fields_additional_error_on_missing="false")
    assert lenient.apply(outbox()).value == {"payload": '{"n":1}'}
    for column in ("event_id", "event_key", "event_payload", "event_timestamp"):
        with pytest.raises(DataError, match="no column none"):
            made("outbox.EventRouter", **{f"table_field_{column}": "none"}).apply(outbox())


@pytest.mark.parametrize(
    ("text", "schema", "value"),
    [
        (
            '{"n":1,"big":5000000000,"f":1.5,"s":"x","b":true,"o":{"a":null,"k":[1,2]},"e":[],"z":null}',
            Schema.struct(
                {
                    "n": Schema.int32(optional=True),
                    "big": Schema.int64(optional=True),
                    "f": Schema.float64(optional=True),
                    "s": OPTIONAL,
                    "b": Schema.boolean(optional=True),
                    "o": Schema.struct(
                        {"k": Schema.array(Schema.int32(optional=True), optional=True)}, name="payload.o", optional=True
                    ),
                },
                name="payload",
                optional=True,
            ),
            {"n": 1, "big": 5_000_000_000, "f": 1.5, "s": "x", "b": True, "o": {"k": [1, 2]}},
        ),
        (
            '[{"a":1},{"b":"x"},null]',
            Schema.array(
                Schema.struct({"a": Schema.int32(optional=True), "b": OPTIONAL}, name="payload", optional=True),
                optional=True,
            ),
            [{"a": 1, "b": None}, {"a": None, "b": "x"}, None],
        ),
    ],
)
def test_json_in_the_payload_is_expanded(text: str, schema: Schema, value: Any) -> None:
    new = made("outbox.EventRouter", table_expand_json_payload="true").apply(outbox(text))
    assert new.value == value
    assert new.value_schema is schema


def test_nulls_in_json_may_be_kept_as_bytes() -> None:
    router = made(
        "outbox.EventRouter", table_expand_json_payload="true", table_json_payload_null_behavior="optional_bytes"
    )
    new = router.apply(outbox('{"z":null}'))
    assert (new.value, new.value_schema.field("z").schema) == ({"z": None}, Schema.bytes(optional=True))


@pytest.mark.parametrize(
    "text",
    ["", "x", "5", "{", "[]", '[1,"a"]', '{"a":[1,2.5]}', '{"a":1e400}', '{"a":NaN}', '{"a":99999999999999999999}'],
)
def test_what_cannot_be_expanded_stays_text(text: str, caplog: pytest.LogCaptureFixture) -> None:
    new = made("outbox.EventRouter", table_expand_json_payload="true").apply(outbox(text))
    assert (new.value, new.value_schema) == (text, OPTIONAL)
    assert "is not expanded" in caplog.text
    assert (
        made("outbox.EventRouter", table_expand_json_payload="true").apply(outbox("[" * 100_000)).value == "[" * 100_000
    )


@pytest.mark.parametrize("payload", [None, "", "  "])
def test_an_empty_payload_may_be_a_tombstone(payload: Any) -> None:
    assert made("outbox.EventRouter").apply(outbox(payload)).value == payload
    new = made("outbox.EventRouter", route_tombstone_on_empty_payload="true").apply(outbox(payload))
    assert (new.value, new.value_schema, new.key) == (None, None, "7")


@pytest.mark.parametrize(("at", "timestamp"), [(1_700_000_000_123_456, 1_700_000_000_123), (-1_500, -1), (None, 99)])
def test_the_timestamp_may_be_that_of_a_column(at: Any, timestamp: int) -> None:
    assert made("outbox.EventRouter", table_field_event_timestamp="at").apply(outbox(at=at)).timestamp == timestamp


def test_a_number_without_a_unit_is_no_timestamp() -> None:
    with pytest.raises(DataError, match="must be a timestamp of Debezium"):
        made("outbox.EventRouter", table_field_event_timestamp="version").apply(outbox())


def test_deletes_and_tombstones_are_dropped_and_others_pass() -> None:
    router = made("outbox.EventRouter")
    assert router.apply(outbox(op="d")) is None
    assert router.apply(outbox().replace(value=None)) is None
    heartbeat = outbox().replace(value={"ts_ms": 1}, value_schema=None)
    assert router.apply(heartbeat) is heartbeat


@pytest.mark.parametrize(("behavior", "level"), [("warn", logging.WARNING), ("error", logging.ERROR)])
def test_an_update_is_dropped_and_told(behavior: str, level: int, caplog: pytest.LogCaptureFixture) -> None:
    assert made("outbox.EventRouter", table_op_invalid_behavior=behavior).apply(outbox(op="u")) is None
    assert [record.levelno for record in caplog.records] == [level]


def test_an_update_may_fail_the_task() -> None:
    with pytest.raises(ConnectError, match="was changed, which is no event") as raised:
        made("outbox.EventRouter", debezium_op_invalid_behavior="fatal").apply(outbox(op="u"))
    assert not isinstance(raised.value, DataError)


def test_older_names_of_the_columns_count() -> None:
    router = made("outbox.EventRouter", table_field_payload="type", table_field_payload_id="id")
    new = router.apply(outbox())
    assert (new.key, new.value) == ("e1", "made")


@pytest.mark.parametrize("placement", ["type", "type:body", "a:header:b:c"])
def test_a_column_without_a_place_is_refused(placement: str) -> None:
    with pytest.raises(ConfigError, match="column:header"):
        made("outbox.EventRouter", table_fields_additional_placement=placement)


# -- HeaderToValue -------------------------------------------------------------------------------------------------


def with_headers(value: Any, schema: Schema | None, **headers: Any) -> SinkRecord:
    given = outbox().replace(value=value, value_schema=schema, headers=Headers(()))
    for key, item in headers.items():
        given.headers = given.headers.add(key, item, TEXT if isinstance(item, str) else None)
    return given


NESTED = Schema.struct({"id": Schema.int32(), "at": Schema.struct({"x": TEXT}, optional=True)}, name="N")


@pytest.mark.parametrize(("operation", "left"), [("copy", ["a", "b", "c"]), ("move", ["c"])])
def test_headers_become_fields(operation: str, left: list[str]) -> None:
    moved = made("HeaderToValue", headers="a,b,none", fields="A,at.B,N", operation=operation)
    value = {"id": 1, "at": {"x": "y"}}
    expected = {"id": 1, "at": {"x": "y", "B": 5}, "A": "va"}
    new = moved.apply(with_headers(value, NESTED, a="va", b=5, c="vc"))
    assert new.value == expected
    inner = Schema.struct({"x": TEXT, "B": Schema.int64()}, optional=True)
    assert new.value_schema is Schema.struct({"id": Schema.int32(), "at": inner, "A": TEXT}, name="N")
    assert [header.key for header in new.headers] == left
    assert moved.apply(with_headers(value, None, a="va", b=5)).value == expected


def test_a_header_without_a_place_stays() -> None:
    moved = made("HeaderToValue", headers="a", fields="at.A", operation="move")
    given = with_headers({"id": 1, "at": None}, NESTED, a="va")
    assert moved.apply(given) is given
    for unchanged in (with_headers(None, None, a="va"), with_headers({"id": 1, "at": {"x": "y"}}, NESTED)):
        assert moved.apply(unchanged) is unchanged


@pytest.mark.parametrize(
    ("field", "value"), [("id", {"id": 1, "at": None}), ("id.A", {"id": 1, "at": None}), ("A", "text")]
)
def test_a_field_that_cannot_be_added_is_refused(field: str, value: Any) -> None:
    with pytest.raises(DataError):
        made("HeaderToValue", headers="a", fields=field, operation="copy").apply(with_headers(value, NESTED, a="va"))


def test_as_many_fields_as_headers_are_needed() -> None:
    with pytest.raises(ConfigError, match="same number"):
        made("HeaderToValue", headers="a,b", fields="A", operation="copy")


# -- ExtractChangedRecordState -------------------------------------------------------------------------------------


def test_headers_tell_the_fields_that_an_update_changes() -> None:
    told = made("ExtractChangedRecordState", header_changed_name="Changed", header_unchanged_name="Unchanged")
    before, after = {"id": 1, "name": "Ann", "f": float("nan")}, {"id": 1, "name": None, "f": float("nan")}
    new = told.apply(outbox().replace(value=event("u", before, after)))
    names = Schema.array(OPTIONAL, optional=True, name="Changed")
    assert [(header.key, header.value, header.schema) for header in new.headers] == [
        ("Changed", ["name"], names),
        ("Unchanged", ["id", "f"], names.replace(name="Unchanged")),
    ]
    assert not list(made("ExtractChangedRecordState").apply(outbox(op="u")).headers)
    for unchanged in (outbox(op="c"), outbox(op="d"), outbox().replace(value=None), outbox().replace(value={"a": 1})):
        assert told.apply(unchanged) is unchanged


# -- PartitionRouting ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "value", "partition"),
    [
        ("change.name", event("c", None, {"name": "hello"}), 99162322 % 7),
        ("change.name", event("d", {"name": "hello"}, None), 99162322 % 7),
        ("after.name,source.table", event("c", None, {"name": "hello"}, table="Aa"), (99162322 + 2112) % 7),
        ("after.name", event("c", None, {"name": "polygenelubricants"}), 0),
        ("op,after.none", event("c", None, {"name": "x"}), ord("c") % 7),
        ("after.name", event("c", None, {"name": None}), 2),
        ("after.name", event("t"), 2),
        ("op", {"a": 1}, 2),
        ("op", None, 2),
    ],
)
def test_partitions_are_chosen_by_fields(fields: str, value: Any, partition: int) -> None:
    for key in ("partition_payload_fields", "partition_payload_field"):
        routed = made("partitions.PartitionRouting", **{key: fields}, partition_topic_num="7")
        assert routed.apply(outbox().replace(value=value, value_schema=None)).partition == partition


def test_a_struct_and_murmur_choose_no_partition() -> None:
    routed = made("partitions.PartitionRouting", partition_payload_fields="source", partition_topic_num="7")
    with pytest.raises(DataError, match="name a field within it"):
        routed.apply(outbox())
    with pytest.raises(ConfigError, match="use java"):
        made(
            "partitions.PartitionRouting",
            partition_payload_fields="op",
            partition_topic_num="7",
            partition_hash_function="murmur",
        )


# -- TimezoneConverter ---------------------------------------------------------------------------------------------

NOON = 1_700_000_000 // 86_400 * 86_400 + 43_200
TIMES = Schema.struct(
    {
        "ms": Schema.int64(name="io.debezium.time.Timestamp", optional=True),
        "us": Schema.int64(name=MICROS, optional=True),
        "ns": Schema.int64(name="io.debezium.time.NanoTimestamp", optional=True),
        "ts": timestamp_schema(optional=True),
        "zt": Schema.string(name="io.debezium.time.ZonedTimestamp", optional=True),
        "zd": Schema.string(name="io.debezium.time.ZonedTime", optional=True),
        "day": Schema.int32(name="io.debezium.time.Date", optional=True),
        "n": Schema.int64(optional=True),
    },
    optional=True,
)
MOMENT = dt.datetime.fromtimestamp(NOON, dt.UTC)
GIVEN = {
    "ms": NOON * 1000 + 123,
    "us": NOON * 1_000_000 + 123_456,
    "ns": NOON * 1_000_000_000 + 123_456_789,
    "ts": MOMENT,
    "zt": "2023-11-14T12:00:00.123450Z",
    "zd": "12:00:00Z",
    "day": 5,
    "n": 7,
}


def shifted(hours: int) -> dict[str, Any]:
    seconds = hours * 3600
    return {
        "ms": GIVEN["ms"] - seconds * 1000,
        "us": GIVEN["us"] - seconds * 1_000_000,
        "ns": GIVEN["ns"] - seconds * 1_000_000_000,
        "ts": MOMENT - dt.timedelta(hours=hours),
        "zt": f"2023-11-14T{12 + hours:02}:00:00.12345+{hours:02}:00",
        "zd": f"{12 + hours:02}:00:00+{hours:02}:00",
        "day": 5,
        "n": 7,
    }


def converted(value: Any, topic: str = "server.db.t", zone: str = "+08:00", **options: str) -> Any:
    given = outbox().replace(topic=topic, value=value, value_schema=envelope(TIMES))
    new = made("TimezoneConverter", converted_timezone=zone, **options).apply(given)
    assert new.value_schema is given.value_schema
    return new.value


def test_times_are_brought_to_another_zone() -> None:
    assert converted(event("u", GIVEN, GIVEN)) == event("u", shifted(8), shifted(8))
    assert converted(event("c", None, {**GIVEN, "ms": None})) == event("c", None, {**shifted(8), "ms": None})


@pytest.mark.parametrize(
    ("options", "before", "after"),
    [
        ({"include_list": "source:t"}, set(shifted(8)), set(shifted(8))),
        ({"include_list": "source:other"}, set(), set()),
        ({"include_list": "topic:server.db.t:ms"}, {"ms"}, {"ms"}),
        ({"include_list": "source:t:before.ms,source:t:after.us"}, {"ms"}, {"us"}),
        ({"include_list": "source:t:ms,t:us"}, {"ms", "us"}, {"ms", "us"}),
        ({"include_list": "t:ms"}, {"ms"}, {"ms"}),
        ({"exclude_list": "t:ms"}, set(GIVEN) - {"ms"}, set(GIVEN) - {"ms"}),
        ({"exclude_list": "source:t"}, set(), set()),
        ({"exclude_list": "source:other"}, set(GIVEN), set(GIVEN)),
    ],
)
def test_the_fields_are_chosen_by_topic_and_table(options: Any, before: set[str], after: set[str]) -> None:
    def expected(names: set[str]) -> dict[str, Any]:
        return {name: shifted(8)[name] if name in names else item for name, item in GIVEN.items()}

    assert converted(event("u", GIVEN, GIVEN), **options) == event("u", expected(before), expected(after))


def test_summer_time_is_that_of_the_local_time() -> None:
    noon = {"ms": 1_719_835_200_000, "zt": "2024-07-01T12:00:00Z"}
    new = converted(event("c", None, noon), zone="Europe/Rome")["after"]
    assert new == {"ms": noon["ms"] - 7_200_000, "zt": "2024-07-01T14:00:00+02:00"}
    assert converted(event("c", None, noon), zone="+00:00")["after"] == noon


@pytest.mark.parametrize("row", [{"zt": "yesterday"}, {"zd": "2023-11-14T12:00:00Z"}, {"ms": 10**18}])
def test_what_is_no_time_is_refused_by_name(row: Any) -> None:
    with pytest.raises(DataError, match=r"field after\."):
        converted(event("c", None, row))


def test_events_without_schema_and_other_records_keep_their_times() -> None:
    converter = made("TimezoneConverter", converted_timezone="+08:00")
    for given in (outbox(schema=False), outbox().replace(value=None), outbox().replace(value=5, value_schema=None)):
        assert converter.apply(given) is given


@pytest.mark.parametrize(
    "options",
    [
        {"converted_timezone": "Mars/North"},
        {"converted_timezone": "+8"},
        {"converted_timezone": "+08:00", "include_list": "a:b", "exclude_list": "c:d"},
        {"converted_timezone": "+08:00", "include_list": "a:b:c:d"},
        {},
    ],
)
def test_wrong_options_of_the_zone_are_refused(options: Any) -> None:
    with pytest.raises(ConfigError):
        made("TimezoneConverter", **options)


def test_the_older_name_of_unwrapping_counts() -> None:
    new = made("UnwrapFromEnvelope").apply(outbox(schema=False))
    assert new.value["aggregateid"] == "7"
