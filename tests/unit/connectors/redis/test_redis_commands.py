"""What records become: the commands, and the records that have none."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pytest

from connect.data import Headers, Schema, SinkRecord
from connect.errors import DataError
from connect.testing.samples import sink_records
from connectors.redis.commands import RecordWriter
from connectors.redis.structures import Structure, Writing
from equipment.growth import assert_grows_evenly

STRUCT = Schema.struct({"id": Schema.int32(), "name": Schema.string(optional=True), "half": Schema.float32()})


def record(value: Any, key: Any = "k", **changes: Any) -> SinkRecord:
    return sink_records([value], topic="orders")[0].replace(key=key, value=value, **changes)


def commands(structure: str, given: SinkRecord, **writing: Any) -> list[tuple[Any, ...]]:
    made = Writing(Structure(structure), **{"keyspace": "${topic}", **writing})
    return list(RecordWriter(made).commands(given))


@pytest.mark.parametrize(
    ("structure", "key", "value", "expected"),
    [
        ("SET", "k", "v", [("SET", b"orders:k", b"v")]),
        ("SET", b"\xff", b"\x00", [("SET", b"orders:\xff", b"\x00")]),
        ("SET", 7, 1.0, [("SET", b"orders:7", b"1.0")]),
        ("SET", "k", {"a": [1]}, [("SET", b"orders:k", b'{"a":[1]}')]),
        ("SET", "k", None, [("DEL", b"orders:k")]),
        (
            "HSET",
            "k",
            {"a": 1, "b": True, "c": None},
            [("HSET", b"orders:k", b"a", b"1", b"b", b"true"), ("HDEL", b"orders:k", b"c")],
        ),
        ("HSET", "k", None, [("DEL", b"orders:k")]),
        ("JSONSET", "k", '{"a": 1}', [("JSON.SET", b"orders:k", "$", b'{"a": 1}')]),
        ("JSONSET", "k", {"a": 1}, [("JSON.SET", b"orders:k", "$", b'{"a":1}')]),
        ("JSONSET", "k", None, [("DEL", b"orders:k")]),
        ("JSONMERGE", "k", {"a": 1}, [("JSON.MERGE", b"orders:k", "$", b'{"a":1}')]),
        ("XADD", None, {"a": 1, "b": None}, [("XADD", b"orders", "*", b"a", b"1")]),
        ("LPUSH", "k", "any", [("LPUSH", b"orders", b"k")]),
        ("RPUSH", "k", {}, [("RPUSH", b"orders", b"k")]),
        ("RPUSH", "k", None, [("LREM", b"orders", 0, b"k")]),
        ("SADD", "k", 1, [("SADD", b"orders", b"k")]),
        ("SADD", "k", None, [("SREM", b"orders", b"k")]),
        ("ZADD", "k", 1.5, [("ZADD", b"orders", "1.5", b"k")]),
        ("ZADD", "k", Decimal("1.50"), [("ZADD", b"orders", "1.50", b"k")]),
        ("ZADD", "k", None, [("ZREM", b"orders", b"k")]),
        ("TSADD", 5, 1.5, [("TS.ADD", b"orders", 5, "1.5", "ON_DUPLICATE", "LAST")]),
        ("TSADD", 5, None, [("TS.DEL", b"orders", 5, 5)]),
        ("DEL", "k", "any", [("DEL", b"orders:k")]),
        ("PUBLISH", None, "v", [("PUBLISH", b"orders", b"v")]),
    ],
)
def test_each_structure(structure: str, key: Any, value: Any, expected: list[Any]) -> None:
    assert commands(structure, record(value, key)) == expected


@pytest.mark.parametrize(
    ("structure", "key", "value"),
    [
        ("SET", None, "v"),
        ("SET", "", "v"),
        ("SET", {"id": 1}, "v"),
        ("SET", "\ud800", "v"),
        ("HSET", "k", "v"),
        ("HSET", "k", {}),
        ("JSONSET", "k", "{"),
        ("JSONSET", "k", {"a": float("nan")}),
        ("XADD", "k", None),
        ("XADD", "k", {"a": None}),
        ("ZADD", "k", "1"),
        ("ZADD", "k", True),
        ("ZADD", "k", float("nan")),
        ("TSADD", "k", 1.0),
        ("TSADD", -1, 1.0),
        ("TSADD", True, 1.0),
    ],
)
def test_what_cannot_be_written_is_a_bad_record(structure: str, key: Any, value: Any) -> None:
    with pytest.raises(DataError):
        commands(structure, record(value, key))


def test_the_fields_of_a_struct() -> None:
    given = record({"id": 1, "name": None, "half": 0.1}, value_schema=STRUCT)
    assert commands("HSET", given) == [
        ("HSET", b"orders:k", b"id", b"1", b"half", b"0.1"),
        ("HDEL", b"orders:k", b"name"),
    ]


def test_values_as_texts() -> None:
    moment = dt.datetime(2024, 1, 2, 3, 4, 5, 678000, tzinfo=dt.UTC)
    values = {
        "at": moment,
        "on": dt.date(2024, 1, 2),
        "price": Decimal("1.50"),
        "big": 1e10,
        "raw": b"\x00",
        "in": {"a": 1},
    }
    ((_, _, _, *fields),) = commands("XADD", record(values))
    assert dict(zip(fields[::2], fields[1::2], strict=True)) == {
        b"at": b"2024-01-02T03:04:05.678Z",
        b"on": b"2024-01-02",
        b"price": b"1.50",
        b"big": b"1.0E10",
        b"raw": b"\x00",
        b"in": b'{"a":1}',
    }


def test_keys() -> None:
    assert commands("SET", record("v"), keyspace="") == [("SET", b"k", b"v")]
    assert commands("SET", record("v"), keyspace="a_${topic}", separator="/") == [("SET", b"a_orders/k", b"v")]
    assert commands("SET", record("é", "ü"), keyspace="", charset="latin-1") == [("SET", b"\xfc", b"\xe9")]


def test_times_to_live() -> None:
    def headed(value: Any) -> SinkRecord:
        return record("v", headers=Headers().add("redis.key.ttl", value))

    assert commands("SET", record("v"), ttl_seconds=9) == [("SET", b"orders:k", b"v", "EX", 9)]
    assert commands("SADD", record("v"), ttl_seconds=9) == [("SADD", b"orders", b"k"), ("EXPIRE", b"orders", 9)]
    assert commands("SET", headed("5"), ttl_seconds=9) == [("SET", b"orders:k", b"v", "EX", 5)]
    assert commands("SET", headed(-1), ttl_seconds=9) == [("SET", b"orders:k", b"v")]
    with pytest.raises(DataError, match=r"redis\.key\.ttl"):
        commands("SET", headed("soon"))


def test_paths_of_merges_come_from_a_header() -> None:
    given = record('{"a": 1}', headers=Headers().add("path", "$.x"))
    assert commands("JSONMERGE", given, json_path_header="path") == [("JSON.MERGE", b"orders:k", "$.x", b'{"a": 1}')]
    assert commands("JSONMERGE", record("1"), json_path="$.y") == [("JSON.MERGE", b"orders:k", "$.y", b"1")]


def test_streams_are_kept_short() -> None:
    assert commands("XADD", record({"a": 1}), stream_length=5) == [
        ("XADD", b"orders", "MAXLEN", "~", 5, "*", b"a", b"1")
    ]


def test_wide_values_cost_what_they_hold() -> None:
    def write(given: SinkRecord) -> None:
        commands("HSET", given)

    assert_grows_evenly(write, lambda size: record({f"f{number}": number for number in range(size)}), 20_000)
