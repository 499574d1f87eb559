"""What an executor makes of raw rows, without Spark: it is given Arrow batches and gives Arrow batches."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

from connect.config import HIGH, Config, option
from connect.data import Record, Schema
from connect.errors import ConnectError, DataError, RetriableError
from connect.internals.chain.raw_records import RawRecord
from connect.internals.chain.tolerance import Stage
from connect.offset_set import OffsetSet
from connect.transformation import Transformation
from connectors.spark.decoding.decoder import DecodePlan, Decoder, Mode, adjusted_name
from connectors.spark.decoding.failures import FAILURE_ROWS, Examiner, failures_of
from connectors.spark.decoding.report import LoadStop, Report
from connectors.spark.schema import Evolution, KafkaColumns

BYTE_KEYS = {"key.converter": "converters.byte_array.ByteArrayConverter"}
JSON = {"value.converter": "converters.json.JsonConverter", "value.converter.schemas.enable": "false", **BYTE_KEYS}
ENVELOPED = {"value.converter": "converters.json.JsonConverter", **BYTE_KEYS}
TEXT = {"value.converter": "converters.string.StringConverter", **BYTE_KEYS}
HEADERS = {"header.converter": "converters.simple_header.SimpleHeaderConverter"}

HEADER_LISTS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
LONG = Schema.int64(optional=True)
STRING = Schema.string(optional=True)


class RouteConfig(Config):
    field: str = option(importance=HIGH, doc="The field that names the topic.")


class Route(Transformation[RouteConfig]):
    """Sends a record to the topic a field names, drops those without, and fails for some names."""

    def apply(self, record: Any) -> Any:
        topic = record.value.get(self.config.field)
        if topic == "bad":
            raise DataError("this one is bad")
        if topic == "locked":
            raise ConnectError("nobody is let in")
        if topic == "busy":
            raise RetriableError("come back later")
        return None if topic is None else record.replace(topic=topic)


class Describe(Transformation[Config]):
    """Replaces the value by what is known of the record."""

    def apply(self, record: Any) -> Any:
        assert isinstance(record, Record)
        header = record.headers.last_with_key("h")
        return record.replace(value={"at": record.timestamp, "key": record.key, "h": header and header.value})


def transforms(name: str, **settings: str) -> dict[str, str]:
    return {
        "transforms": "t",
        "transforms.t.type": f"{__name__}.{name}",
        "plugin.import.allowlist": f"{__name__}.*",
        **{f"transforms.t.{key}": value for key, value in settings.items()},
        **HEADERS,
    }


def raw(values: Sequence[Any], first: int = 0, **columns: Any) -> pa.RecordBatch:
    data = [value if value is None or isinstance(value, bytes) else json.dumps(value).encode() for value in values]
    arrays = {
        "partition": pa.array([3] * len(data), pa.int32()),
        "offset": pa.array(range(first, first + len(data)), pa.int64()),
        "value": pa.array(data, pa.binary()),
        **columns,
    }
    return pa.RecordBatch.from_pydict(arrays)


def decode(
    props: Mapping[str, str],
    batches: Sequence[pa.RecordBatch],
    table: Schema | None = None,
    to: str = "t",
    **plan: Any,
) -> tuple[list[dict[str, Any]], Report]:
    mode = plan.pop("mode", Mode.SURVEY if table is None else Mode.WRITE)
    order = DecodePlan("t", mode, props, table=to, schema=table, **{"tables": frozenset({"t"}), **plan})
    report = Report("t")
    rows = [row for batch in Decoder(order, report).decode(iter(batches)) for row in batch.to_pylist()]
    return rows, report


def test_a_survey_shows_the_schema_and_writes_nothing() -> None:
    rows, report = decode(JSON, [raw([{"a": 1}]), raw([{"a": 2.5, "b": "x"}], first=7)])
    assert rows == []
    assert report.seen == {"t": Schema.struct({"a": Schema.float64(optional=True), "b": STRING})}
    assert (report.partition, report.first, report.last, report.read, report.written) == (3, 0, 7, 2, 2)


def test_rows_are_in_the_columns_of_the_table() -> None:
    table = Schema.struct({"b": STRING, "a": LONG})
    rows, report = decode(JSON, [raw([{"a": 1}, {"a": None, "b": "x"}])], table)
    assert rows == [{"b": None, "a": 1}, {"b": "x", "a": None}]
    assert not report.grown


def test_rows_that_need_another_schema_end_the_pass() -> None:
    table = Schema.struct({"a": LONG})
    batches = [raw([{"a": 1}]), raw([{"a": 1, "b": 2}]), raw([{"a": 3}])]
    rows, report = decode(JSON, batches, table)
    assert rows == [{"a": 1}]
    assert report.grown
    assert report.read == 2


def test_a_pass_that_shows_its_rows_at_once_ends_at_the_first_record_that_forbids_the_load() -> None:
    table = Schema.struct({"a": LONG})
    with pytest.raises(LoadStop) as grown:
        decode(JSON, [raw([{"a": 1, "b": 2}])], table, stops=True)
    assert grown.value.rejection is None
    with pytest.raises(LoadStop) as bad:
        decode(JSON, [raw([{"a": 1}, {"a": "x"}], first=10)], table, stops=True, mode=Mode.FINAL)
    told = LoadStop.found_in(RuntimeError(f"org.apache.spark.SparkException: ... LoadStop: {bad.value}\n\tat ..."))
    assert told is not None
    assert str(told.rejection).startswith("topic t, partition 3, offset 11: ")
    assert LoadStop.found_in(RuntimeError("out of memory")) is None
    values: list[Any] = [{"a": 1}, b"{"]
    left_out = {3: OffsetSet.of([1])}
    rows, report = decode(JSON, [raw(values)], table, stops=True, left_out=left_out, mode=Mode.FINAL)
    assert (rows, len(report.rejected)) == ([{"a": 1}], 1)


def test_after_a_survey_what_does_not_fit_is_a_bad_record() -> None:
    table = Schema.struct({"a": LONG})
    values: list[Any] = [{"a": 1}, {"a": "x"}, b"{", {"a": 2}, {"a": 2**70}, {"a": 1.5}]
    rows, report = decode(JSON, [raw(values, first=10)], table, mode=Mode.FINAL)
    assert [row["a"] for row in rows][:2] == [1, 2]
    assert {rejection.offset for rejection in report.rejections} >= {11, 12, 15}
    assert len(report.rejected) == len(report.rejections)
    assert report.written + len(report.rejected) == report.read == 6
    assert str(report.rejections[0]).startswith("topic t, partition 3, offset 1")


@pytest.mark.parametrize(
    ("behavior", "rows", "rejected", "ignored"),
    [("fail", [1], 1, 0), ("ignore", [1], 0, 1), ("write", [1, None], 0, 0)],
)
def test_a_record_without_a_value(behavior: str, rows: list[Any], rejected: int, ignored: int) -> None:
    table = Schema.struct({"a": LONG})
    found, report = decode(JSON, [raw([{"a": 1}, None])], table, null_values=behavior)
    assert [row["a"] for row in found] == rows
    assert (len(report.rejected), report.ignored) == (rejected, ignored)


def test_envelopes_bring_their_schema_and_are_widened_into_the_table() -> None:
    schema = {"type": "struct", "fields": [{"field": "a", "type": "int32"}]}
    table = Schema.struct({"a": LONG, "b": STRING})
    rows, report = decode(ENVELOPED, [raw([{"schema": schema, "payload": {"a": 5}}])], table)
    assert rows == [{"a": 5, "b": None}]
    assert not report.grown
    wider = {"type": "struct", "fields": [{"field": "c", "type": "boolean"}]}
    rows, report = decode(ENVELOPED, [raw([{"schema": wider, "payload": {"c": True}}])], table)
    assert (rows, report.grown) == ([], True)
    other = {"type": "struct", "fields": [{"field": "b", "type": "int64"}]}
    rows, report = decode(ENVELOPED, [raw([{"schema": other, "payload": {"b": 1}}])], table)
    assert (rows, len(report.rejected)) == ([], 1)


def test_envelopes_out_of_the_ordinary_are_read_as_the_converter_reads_them() -> None:
    fields = [{"field": "a", "type": "int64", "optional": True}]
    values = [
        json.dumps({"schema": {"type": "struct", "fields": [*fields, *more]}, "payload": payload}).encode()
        for more, payload in [
            ([], {"a": 1}),
            ([], {"a": None}),
            ([], None),
            ([{"field": "b", "type": "string"}], {"a": 2, "b": "x"}),
            ([], {"a": "no number"}),
            ([], {"a": 2**60}),
        ]
    ]
    values += [b"", b"no JSON", values[0] + b" ", values[0][:-1], values[0] + values[1]]
    values.append(values[0][: values[0].index(b'{"a"')])
    table = Schema.struct({"a": LONG, "b": STRING})
    for start in range(len(values)):
        for chosen in (values[start : start + 1], values[start:]):
            by_column = decode(ENVELOPED, [raw(list(chosen))], table, mode=Mode.FINAL)
            assert by_column == decode(ENVELOPED, [raw(list(chosen))], table, mode=Mode.FINAL, by_row=True)


def test_values_that_are_no_structs_are_the_column_value() -> None:
    table = Schema.struct({"value": STRING})
    rows, _ = decode(TEXT, [raw([b"one", b"\xff", b""])], table)
    assert [row["value"] for row in rows] == ["one", "\ufffd", ""]
    rows, report = decode(JSON, [raw([1, [2], "x"])])
    assert report.seen["t"].field_names == ("value",)


def test_keys_have_a_column_of_their_own() -> None:
    table = Schema.struct({"key": Schema.bytes(optional=True), "a": LONG})
    keys = pa.array([b"k", None], pa.binary())
    rows, report = decode(JSON, [raw([{"a": 1}, {"a": 2}], key=keys)], table, kafka_columns=KafkaColumns("key"))
    assert rows == [{"key": b"k", "a": 1}, {"key": None, "a": 2}]
    rows, report = decode(JSON, [raw([{"key": 1}], key=keys[:1])], kafka_columns=KafkaColumns("key"))
    assert len(report.rejected) == 1
    assert "ReplaceField" in report.rejections[0].reason


WHOLE = {
    "key": pa.array([b"k", None, b"x"], pa.binary()),
    "timestamp": pa.array([1500, 1600, -1], pa.int64()),
    "timestampType": pa.array([0, 1, -1], pa.int32()),
    "headers": pa.array([[{"key": "h", "value": b"v"}, {"key": "h", "value": None}], None, []], HEADER_LISTS),
}


def test_headers_and_origin_have_columns_of_their_own() -> None:
    kafka_columns = KafkaColumns("k", "h", "m")
    _, report = decode(JSON, [raw([{"a": 1}, {"a": 2}, {"a": 3}], **WHOLE)], kafka_columns=kafka_columns)
    table = report.seen["t"]
    assert table.field_names == ("k", "h", "m", "a")
    rows, report = decode(JSON, [raw([{"a": 1}, b"{", {"a": 3}], first=7, **WHOLE)], table, kafka_columns=kafka_columns)
    assert [rejection.offset for rejection in report.rejections] == [8]
    at = datetime(1970, 1, 1, 0, 0, 1, 500_000, tzinfo=UTC)
    assert rows == [
        {
            "k": b"k",
            "h": [{"key": "h", "value": b"v"}, {"key": "h", "value": None}],
            "m": {"topic": "t", "partition": 3, "offset": 7, "timestamp": at},
            "a": 1,
        },
        {"k": b"x", "h": [], "m": {"topic": "t", "partition": 3, "offset": 9, "timestamp": None}, "a": 3},
    ]


def test_columns_beside_values_that_are_read_by_column() -> None:
    kafka_columns = KafkaColumns(None, "h", "m")
    _, report = decode(JSON, [raw([{"a": 1}, {"a": 2}, {"a": 3}], **WHOLE)], kafka_columns=kafka_columns)
    rows, report = decode(
        JSON, [raw([{"a": 1}, {"a": 2}, {"a": 3}], **WHOLE)], report.seen["t"], kafka_columns=kafka_columns
    )
    assert not report.grown
    assert [(row["a"], row["m"]["offset"], row["h"]) for row in rows] == [
        (1, 0, [{"key": "h", "value": b"v"}, {"key": "h", "value": None}]),
        (2, 1, None),
        (3, 2, []),
    ]
    rows, report = decode(JSON, [raw([{"a": 1}] * 3, **WHOLE)], Schema.struct({"a": LONG}), kafka_columns=kafka_columns)
    assert (rows, report.grown) == ([], True)


def test_transformations_drop_route_and_fail_records() -> None:
    props = {**JSON, **transforms("Route", field="to")}
    values: list[Any] = [{"to": "x", "a": 1}, {"a": 2}, {"to": "bad"}, {"to": "y", "a": 3}]
    _, report = decode(props, [raw(values)])
    assert report.seen.keys() == {"x", "y"}
    assert [rejection.offset for rejection in report.rejections] == [2]
    table = Schema.struct({"to": STRING, "a": LONG})
    both = frozenset({"x", "y"})
    rows, report = decode(props, [raw(values)], table, to="y", tables=both, accounts=False)
    assert rows == [{"to": "y", "a": 3}]
    assert len(report.rejected) == 0
    _, report = decode(props, [raw(values)], table, to="x", tables=frozenset({"x"}))
    assert report.grown


def test_transformations_see_the_whole_record() -> None:
    headers = [[{"key": "h", "value": b"v"}], None]
    columns = {
        "key": pa.array([b"k", None], pa.binary()),
        "timestamp": pa.array([1500, 1600], pa.int64()),
        "timestampType": pa.array([0, 1], pa.int32()),
        "headers": pa.array(headers, pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))),
    }
    table = Schema.struct({"at": LONG, "key": Schema.bytes(optional=True), "h": STRING})
    rows, report = decode({**JSON, **transforms("Describe")}, [raw([{}, {}], **columns)], table)
    assert report.rejections == []
    assert rows == [{"at": 1500, "key": b"k", "h": "v"}, {"at": 1600, "key": None, "h": None}]


def test_empty_arrays_and_objects_without_a_type_are_told() -> None:
    table = Schema.struct({"a": LONG})
    rows, report = decode(JSON, [raw([{"a": 1, "b": [], "c": {"d": {}}, "e": None}])], table)
    assert rows == [{"a": 1}]
    assert not report.grown
    assert report.untyped == {"b", "c.d"}


def test_only_the_first_bad_records_are_kept() -> None:
    _, report = decode(JSON, [raw([b"{"] * 250)])
    assert len(report.rejected) == 250
    assert len(report.rejections) == 100


def test_a_plan_is_plain_data() -> None:
    plan = DecodePlan("t", Mode.WRITE, JSON, schema=Schema.struct({"a": LONG}))
    assert replace(plan, table="t").table == "t"


@pytest.mark.parametrize("accounts", [True, False])
@pytest.mark.parametrize(("topic", "reason"), [("locked", "nobody is let in"), ("busy", "come back later")])
def test_what_is_not_about_a_record_fails_the_load(topic: str, reason: str, accounts: bool) -> None:
    """A registry that refuses everybody, or is not there now, say: no record is left out for it."""
    with pytest.raises(ConnectError, match=reason):
        decode(JSON | transforms("Route", field="to"), [raw([{"to": "t"}, {"to": topic}])], accounts=accounts)


def examine(
    props: Mapping[str, str], batches: Sequence[pa.RecordBatch], asked: Sequence[int], **more: Any
) -> list[Any]:
    tables = more.pop("tables", {"t": Schema.struct({"a": LONG})})
    plan = DecodePlan("t", Mode.FINAL, props)
    examiner = Examiner(plan, tables, {3: OffsetSet.of(asked)}, more.pop("budget", 1_000_000))
    rows = pa.Table.from_batches(list(examiner.examine(iter(batches))), FAILURE_ROWS)
    return list(failures_of(rows))


def test_bad_records_are_told_whole_with_their_errors() -> None:
    columns = {
        "key": pa.array([b"k", None, b"x"], pa.binary()),
        "timestamp": pa.array([1500, 1600, None], pa.int64()),
        "timestampType": pa.array([0, 1, -1], pa.int32()),
        "headers": pa.array([[{"key": "h", "value": b"v"}], None, []], HEADER_LISTS),
    }
    values: list[Any] = [b"{", {"a": "x"}, None]
    broken, wrong, null = examine(JSON, [raw(values, first=10, **columns), raw([{"a": 1}], first=13)], [10, 11, 12])
    assert broken.raw == RawRecord("t", 3, 10, 1500, "CreateTime", b"k", b"{", [("h", b"v")])
    assert (broken.stage, broken.executing) == (Stage.VALUE_CONVERTER, "converters.json.converter.JsonConverter")
    assert (broken.error_class, broken.trace[:9]) == ("connect.errors.DataError", "Traceback")
    assert wrong.raw == RawRecord("t", 3, 11, 1600, "LogAppendTime", None, b'{"a": "x"}', [])
    assert (wrong.stage, wrong.executing) == (Stage.TASK_PUT, "connectors.spark.sink.SparkSinkTask")
    assert null.raw == RawRecord("t", 3, 12, None, "NoTimestampType", b"x", None, [])
    assert "behavior.on.null.values" in str(null.error)


def test_no_more_bad_records_are_told_at_once_than_there_is_room_for() -> None:
    batches = [raw([b"{" * 100] * 4), raw([b"{"] * 4, first=4)]
    told = examine(JSON, batches, range(8), budget=1)
    assert [failure.raw.offset for failure in told] == [0]
    assert len(examine(JSON, batches, range(8), budget=10_000_000)) == 8


def test_a_record_that_is_bad_only_sometimes_is_told_all_the_same() -> None:
    (failure,) = examine(JSON, [raw([{"a": 1}])], [0])
    assert "does not always give the same result" in str(failure.error)


def test_records_that_are_bad_for_one_of_several_tables_are_told() -> None:
    props = {**JSON, **transforms("Route", field="to")}
    tables = {"x": Schema.struct({"to": STRING, "a": LONG}), "y": Schema.struct({"to": STRING, "a": STRING})}
    values: list[Any] = [{"to": "x", "a": "?"}, {"to": "y", "a": 1}, {"to": "bad"}, {"to": "z"}]
    told = [str(failure.error) for failure in examine(props, [raw(values)], range(4), tables=tables)]
    assert '"a"' in told[0] or "a" in told[0]
    assert told[2] == "this one is bad"
    assert "goes to z" in told[3]
    (early,) = examine(props, [raw([{"to": "bad"}])], [0], tables={})
    assert str(early.error) == "this one is bad"


# -- how tables change -------------------------------------------------------------------------------------------

FLOAT = Schema.float64(optional=True)
BRANCHES = Evolution.of("NONE", "new-column")
PRICED = {"type": "struct", "fields": [{"field": "p", "type": "double"}]}


def test_values_that_a_column_cannot_hold_go_to_one_of_their_own() -> None:
    table = Schema.struct({"p": LONG})
    values: list[Any] = [{"p": 1}, {"p": 1.5}, {"p": "x"}, {"p": None}]
    _, report = decode(JSON, [raw(values)], table, evolution=BRANCHES)
    assert report.grown
    _, report = decode(JSON, [raw(values)], evolution=BRANCHES)
    wider = BRANCHES.grown(table, report.seen["t"])
    assert wider == Schema.struct({"p": LONG, "p_float64": FLOAT, "p_string": STRING})
    rows, report = decode(JSON, [raw(values)], wider, evolution=BRANCHES)
    assert not report.grown
    assert [tuple(row.values()) for row in rows] == [
        (1, None, None),
        (None, 1.5, None),
        (None, None, "x"),
        (None, None, None),
    ]
    rows, report = decode(ENVELOPED, [raw([{"schema": PRICED, "payload": {"p": 2.0}}])], wider, evolution=BRANCHES)
    assert rows == [{"p": None, "p_float64": 2.0, "p_string": None}]


def test_columns_of_their_own_are_made_where_the_conflict_is() -> None:
    table = Schema.struct({"a": Schema.array(Schema.struct({"p": LONG}, optional=True), optional=True)})
    values: list[Any] = [{"a": [{"p": 1}, {"p": 1.5}, None]}, {"a": [{"p": 0.5}]}]
    _, report = decode(JSON, [raw(values)], evolution=BRANCHES)
    wider = BRANCHES.grown(table, report.seen["t"])
    rows, report = decode(JSON, [raw(values)], wider, evolution=BRANCHES, mode=Mode.FINAL)
    assert rows == [
        {"a": [{"p": 1, "p_float64": None}, {"p": None, "p_float64": 1.5}, None]},
        {"a": [{"p": None, "p_float64": 0.5}]},
    ]
    inner = {"type": "array", "items": PRICED}
    schema = {"type": "struct", "fields": [{"field": "a", **inner}]}
    rows, report = decode(
        ENVELOPED, [raw([{"schema": schema, "payload": {"a": [{"p": 2.0}]}}])], wider, evolution=BRANCHES
    )
    assert rows == [{"a": [{"p": None, "p_float64": 2.0}]}]


def test_a_field_of_the_name_that_is_needed_is_a_bad_record() -> None:
    table = Schema.struct({"p": LONG, "p_float64": FLOAT})
    values: list[Any] = [{"p": 1.5, "p_float64": 2.0}, {"p": 1, "p_float64": 2.0}]
    rows, report = decode(JSON, [raw(values)], table, evolution=BRANCHES, mode=Mode.FINAL)
    assert rows == [{"p": 1, "p_float64": 2.0}]
    assert list(report.rejected) == [0]


def test_a_table_that_stays_as_it_is_leaves_new_fields_out() -> None:
    forward = Evolution.of("FORWARD", "fail")
    table = Schema.struct({"a": LONG, "s": Schema.struct({"x": LONG}, optional=True)})
    values: list[Any] = [{"a": 1, "s": {"x": 1, "y": 2}}, {"b": 2}, {"a": "x"}]
    for rows in (values, values[:2]):
        found, report = decode(JSON, [raw(rows)], table, evolution=forward)
        assert found == [{"a": 1, "s": {"x": 1}}, {"a": None, "s": None}]
        assert (report.grown, report.unknown, len(report.rejected)) == (False, {"s.y", "b"}, len(rows) - 2)
    wide = {"type": "struct", "fields": [{"field": "a", "type": "int64"}, {"field": "b", "type": "string"}]}
    narrow = Schema.struct({"a": Schema.int32(optional=True)})
    payloads = [{"a": 5, "b": "x"}, {"a": 2**40, "b": "x"}]
    batch = raw([{"schema": wide, "payload": payload} for payload in payloads])
    found, report = decode(ENVELOPED, [batch], narrow, evolution=forward)
    assert (found, list(report.rejected), report.unknown) == ([{"a": 5}], [1], {"b"})


def test_a_fully_compatible_table_gets_columns_and_no_wider_types() -> None:
    full = Evolution.of("FULL", "fail")
    table = Schema.struct({"a": Schema.int32(optional=True)})
    seen = Schema.struct({"a": LONG, "b": STRING})
    assert full.grown(table, seen) == Schema.struct({"a": Schema.int32(optional=True), "b": STRING})
    assert Evolution.of("BACKWARD", "fail").grown(table, seen) == seen
    assert Evolution.of("FULL", "new-column").grown(table, seen).field_names == ("a", "a_int64", "b")


# -- names -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "avro", "hive"),
    [
        ("a", "a", "a"),
        ("orderId", "orderId", "orderid"),
        ("a.b c", "a_b_c", "a_b_c"),
        ("1st", "_1st", "_1st"),
        ("", "_", "_"),
        ("größe", "gr__e", "gr__e"),
        ("x\n=;{}", "x_____", "x_____"),
    ],
)
def test_names_that_others_cannot_hold_are_adjusted(name: str, avro: str, hive: str) -> None:
    assert (adjusted_name(name, "none"), adjusted_name(name, "avro"), adjusted_name(name, "hive")) == (name, avro, hive)


def test_names_are_adjusted_wherever_they_are() -> None:
    values: list[Any] = [{"a.b": [{"C d": 1}, None], "e": None}, {"a.b": None, "e": {"F": {"g-h": True}}}]
    expected = [
        {"a_b": [{"c_d": 1}, None], "e": None},
        {"a_b": None, "e": {"f": {"g_h": True}}},
    ]
    _, report = decode(JSON, [raw(values)], names="hive")
    table = report.seen["t"]
    rows, report = decode(JSON, [raw(values)], table, names="hive")
    assert (rows, report.grown) == (expected, False)
    items = {"type": "array", "optional": True, "items": {**structured("C d", "int64"), "optional": True}}
    inner = {**structured("F", {**structured("g-h", "boolean"), "optional": True}), "optional": True}
    fields = [{"field": "a.b", **items}, {"field": "e", **inner}]
    enveloped = [{"schema": {"type": "struct", "fields": fields}, "payload": value} for value in values]
    rows, report = decode(ENVELOPED, [raw(enveloped)], table, names="hive")
    assert (rows, report.grown) == (expected, False)


def structured(name: str, kind: Any) -> dict[str, Any]:
    described = kind if isinstance(kind, dict) else {"type": kind, "optional": True}
    return {"type": "struct", "fields": [{"field": name, **described}]}


def test_names_that_become_the_same_are_bad() -> None:
    _, report = decode(JSON, [raw([{"a": 1, "A": 2}, {"b": 1}])], names="hive")
    assert '"a" and "A" would both become column "a"' in report.rejections[0].reason
    assert list(report.rejected) == [0]


# -- one record is one record ------------------------------------------------------------------------------------

KAFKA_NAMES = [
    ({"keys": "key"}, "key"),
    ({"headers": "headers"}, "headers"),
    ({"metadata": "kafka"}, "kafka"),
]


def whole(values: Sequence[Any]) -> pa.RecordBatch:
    count = len(values)
    return raw(
        values,
        key=pa.array([b"k"] * count, pa.binary()),
        headers=pa.array([[]] * count, HEADER_LISTS),
        timestamp=pa.array([0] * count, pa.int64()),
        timestampType=pa.array([0] * count, pa.int32()),
    )


@pytest.mark.parametrize("mode", [Mode.SURVEY, Mode.WRITE, Mode.FINAL])
@pytest.mark.parametrize(("columns", "name"), KAFKA_NAMES)
def test_only_the_record_with_a_field_of_a_kafka_columns_name_is_bad(
    mode: Mode, columns: dict[str, str], name: str
) -> None:
    batch = whole([{"id": 1}, {"id": 2, name: "x"}, {"id": 3}])
    wanted = KafkaColumns(**columns)
    _, surveyed = decode({**JSON, **HEADERS}, [batch], kafka_columns=wanted)
    table = None if mode is Mode.SURVEY else surveyed.seen["t"]
    rows, report = decode({**JSON, **HEADERS}, [batch], table, kafka_columns=wanted, mode=mode)
    assert list(report.rejected) == [1]
    assert f"The values have a field {name}," in report.rejections[0].reason
    assert [row["id"] for row in rows] == ([] if mode is Mode.SURVEY else [1, 3])
    assert not report.grown


@pytest.mark.parametrize("mode", [Mode.SURVEY, Mode.WRITE, Mode.FINAL])
@pytest.mark.parametrize("others", [[], [b"not json"]])
def test_only_the_record_with_an_empty_name_is_bad(mode: Mode, others: list[Any]) -> None:
    values = [{"id": 1}, {"id": 2}, {"": 3}, {"id": 4, "s": {"": 1}}, *others]
    table = None if mode is Mode.SURVEY else Schema.struct({"id": LONG})
    rows, report = decode(JSON, [raw(values)], table, mode=mode)
    bad = [2, *([] if mode is Mode.SURVEY else [3]), *([4] if others else [])]
    assert list(report.rejected) == bad
    assert [row["id"] for row in rows] == ([] if mode is Mode.SURVEY else [1, 2])
    if mode is Mode.SURVEY:
        assert report.seen == {"t": Schema.struct({"id": LONG})}


@pytest.mark.parametrize("mode", [Mode.SURVEY, Mode.WRITE, Mode.FINAL])
def test_only_the_record_with_a_column_that_no_table_can_hold_is_bad(mode: Mode) -> None:
    def envelope(fields: list[dict[str, Any]], payload: dict[str, Any]) -> dict[str, Any]:
        return {"schema": {"type": "struct", "fields": fields}, "payload": payload}

    number = {"field": "id", "type": "int64", "optional": True}
    scale = {"type": "bytes", "name": "org.apache.kafka.connect.data.Decimal", "version": 1}
    decimal = {"field": "d", "optional": True, **scale, "parameters": {"scale": "40"}}
    nothing = {"field": "s", "type": "struct", "fields": [], "optional": True}
    values = [
        envelope([number], {"id": 1}),
        envelope([number, nothing], {"id": 2, "s": {}}),
        envelope([number, decimal], {"id": 3, "d": "AQ=="}),
        envelope([number], {"id": 4}),
    ]
    table = None if mode is Mode.SURVEY else Schema.struct({"id": LONG})
    rows, report = decode(ENVELOPED, [raw(values)], table, mode=mode)
    assert list(report.rejected) == [1, 2]
    assert "Column s is a struct without fields" in report.rejections[0].reason
    assert "Column d is a decimal with more than 38 digits" in report.rejections[1].reason
    assert [row["id"] for row in rows] == ([] if mode is Mode.SURVEY else [1, 4])
    assert not report.grown


@pytest.mark.parametrize("mode", [Mode.WRITE, Mode.FINAL])
def test_where_case_does_not_tell_names_apart_a_field_with_a_columns_name_in_other_letters_is_bad(mode: Mode) -> None:
    table = Schema.struct({"old": LONG})
    evolution = replace(Evolution(), folds=True)
    rows, report = decode(JSON, [raw([{"old": 1}, {"OLD": 2}, {"old": 3}])], table, mode=mode, evolution=evolution)
    assert (rows, list(report.rejected), report.grown) == ([{"old": 1}, {"old": 3}], [1], False)
    assert "cannot distinguish the fields OLD, old" in report.rejections[0].reason
    seen = Schema.struct({"a": Schema.struct({"x": LONG, "X": LONG}, optional=True), "A": LONG})
    kept = Schema.struct({"a": Schema.struct({"x": LONG}, optional=True)})
    assert evolution.grown(Schema.struct({}), seen) == kept
    assert evolution.grown(kept, seen) is kept
