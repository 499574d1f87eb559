"""What an executor makes of raw rows, without Spark: it is given Arrow batches and gives Arrow batches."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from connect.config import HIGH, Config, option
from connect.data import Record, Schema
from connect.errors import ConnectError, DataError, RetriableError
from connect.transformation import Transformation
from connectors.spark.decoding.decoder import DecodePlan, Decoder, Mode
from connectors.spark.decoding.report import Report

BYTE_KEYS = {"key.converter": "converters.byte_array.ByteArrayConverter"}
JSON = {"value.converter": "converters.json.JsonConverter", "value.converter.schemas.enable": "false", **BYTE_KEYS}
ENVELOPED = {"value.converter": "converters.json.JsonConverter", **BYTE_KEYS}
TEXT = {"value.converter": "converters.string.StringConverter", **BYTE_KEYS}
HEADERS = {"header.converter": "converters.simple_header.SimpleHeaderConverter"}

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


def test_after_a_survey_what_does_not_fit_is_a_bad_record() -> None:
    table = Schema.struct({"a": LONG})
    values: list[Any] = [{"a": 1}, {"a": "x"}, b"{", {"a": 2}, {"a": 2**70}, {"a": 1.5}]
    rows, report = decode(JSON, [raw(values, first=10)], table, mode=Mode.FINAL)
    assert [row["a"] for row in rows][:2] == [1, 2]
    assert {rejection.offset for rejection in report.rejections} >= {11, 12, 15}
    assert report.rejected == len(report.rejections)
    assert report.written + report.rejected == report.read == 6
    assert str(report.rejections[0]).startswith("topic t, partition 3, offset 1")


@pytest.mark.parametrize(
    ("behavior", "rows", "rejected", "ignored"),
    [("fail", [1], 1, 0), ("ignore", [1], 0, 1), ("write", [1, None], 0, 0)],
)
def test_a_record_without_a_value(behavior: str, rows: list[Any], rejected: int, ignored: int) -> None:
    table = Schema.struct({"a": LONG})
    found, report = decode(JSON, [raw([{"a": 1}, None])], table, null_values=behavior)
    assert [row["a"] for row in found] == rows
    assert (report.rejected, report.ignored) == (rejected, ignored)


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
    assert (rows, report.rejected) == ([], 1)


def test_values_that_are_no_structs_are_the_column_value() -> None:
    table = Schema.struct({"value": STRING})
    rows, _ = decode(TEXT, [raw([b"one", b"\xff", b""])], table)
    assert [row["value"] for row in rows] == ["one", "\ufffd", ""]
    rows, report = decode(JSON, [raw([1, [2], "x"])])
    assert report.seen["t"].field_names == ("value",)


def test_keys_have_a_column_of_their_own() -> None:
    table = Schema.struct({"key": Schema.bytes(optional=True), "a": LONG})
    keys = pa.array([b"k", None], pa.binary())
    rows, report = decode(JSON, [raw([{"a": 1}, {"a": 2}], key=keys)], table, with_keys=True)
    assert rows == [{"key": b"k", "a": 1}, {"key": None, "a": 2}]
    rows, report = decode(JSON, [raw([{"key": 1}], key=keys[:1])], with_keys=True)
    assert report.rejected == 1
    assert "ReplaceField" in report.rejections[0].reason


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
    assert report.rejected == 0
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
    assert report.rejected == 250
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
