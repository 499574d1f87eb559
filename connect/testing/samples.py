"""Sample values and records of many kinds for testing converters and transformations."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any, Final

from connect.data import (
    NO_HEADERS,
    Headers,
    Schema,
    SchemaAndValue,
    SinkRecord,
    SourceRecord,
    TimestampType,
    date_schema,
    decimal_schema,
    time_schema,
    timestamp_schema,
)

__all__ = ["sample_sink_records", "sample_source_records", "sample_values", "sink_records"]

_NOON: Final = 1_700_000_000_000
_INSTANT: Final = dt.datetime(2024, 2, 29, 12, 30, 15, 250_000, tzinfo=dt.UTC)
_CUSTOMER: Final = Schema.struct(
    {
        "id": Schema.int64(),
        "name": Schema.string(optional=True),
        "tags": Schema.array(Schema.string()),
        "address": Schema.struct({"city": Schema.string(), "zip": Schema.int32(optional=True)}, optional=True),
        "joined": timestamp_schema(optional=True),
        "level": Schema.string(default="basic"),
    },
    name="customer",
    version=2,
)
_CUSTOMERS: Final[Sequence[dict[str, Any]]] = (
    {
        "id": 1,
        "name": "Zoë",
        "tags": ["a", "b"],
        "address": {"city": "Ghent", "zip": 9000},
        "joined": _INSTANT,
        "level": "gold",
    },
    {"id": 2, "name": None, "tags": [], "address": None, "joined": None, "level": "basic"},
    {"id": -(2**40), "name": "", "tags": ["\N{SNOWMAN}"], "address": {"city": "", "zip": None}, "joined": _INSTANT}
    | {"level": "basic"},
)


def sample_values() -> list[SchemaAndValue]:
    """Return values of every type, with and without schema, at the limits of their ranges, null and nested."""
    return [*_primitive_values(), *_logical_values(), *_nested_values(), *_schemaless_values()]


def sample_source_records() -> list[SourceRecord]:
    """Return source records with many kinds of keys and values, including tombstones."""
    return [
        SourceRecord(
            "orders",
            value.value,
            value.schema,
            key.value,
            key.schema,
            partition=index % 2 or None,
            timestamp=_NOON + index,
            headers=headers,
            source_partition={"table": "orders"},
            source_offset={"row": index},
        )
        for index, (key, value, headers) in enumerate(_sample_contents())
    ]


def sample_sink_records() -> list[SinkRecord]:
    """Return sink records with the same contents, as if consumed from one partition."""
    return [
        SinkRecord(
            "orders",
            value.value,
            value.schema,
            key.value,
            key.schema,
            partition=3,
            timestamp=_NOON + index,
            headers=headers,
            offset=100 + index,
            timestamp_type=TimestampType.CREATE_TIME,
            original_topic="orders",
            original_partition=3,
            original_offset=100 + index,
        )
        for index, (key, value, headers) in enumerate(_sample_contents())
    ]


def sink_records(
    values: Iterable[Any], *, topic: str = "test", schema: Schema | None = None, partitions: int = 1
) -> list[SinkRecord]:
    """Return sink records with these values, distributed over the partitions in turn."""
    return [
        SinkRecord(
            topic,
            value,
            schema,
            partition=index % partitions,
            timestamp=_NOON + index,
            offset=index // partitions,
            timestamp_type=TimestampType.CREATE_TIME,
            original_topic=topic,
            original_partition=index % partitions,
            original_offset=index // partitions,
        )
        for index, value in enumerate(values)
    ]


def _pairs(schema: Schema | None, *values: Any) -> list[SchemaAndValue]:
    return [SchemaAndValue(schema, value) for value in values]


def _primitive_values() -> list[SchemaAndValue]:
    pairs: list[SchemaAndValue] = []
    for bits, make in ((8, Schema.int8), (16, Schema.int16), (32, Schema.int32), (64, Schema.int64)):
        pairs += _pairs(make(), 0, 1, -(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
        pairs += _pairs(make(optional=True), 7, None)
    pairs += _pairs(Schema.float32(), 0.0, 1.5, -0.25)
    pairs += _pairs(Schema.float64(), 0.1, -1e300, 5e-324, math.pi)
    pairs += _pairs(Schema.boolean(), True, False)
    pairs += _pairs(Schema.string(), "", "plain", 'quote " and \\', "line\nend\t", "Zoë \N{SNOWMAN} \U0001f600", "12")
    pairs += _pairs(Schema.string(optional=True), "there", None)
    pairs += _pairs(Schema.string(default="given"), "other")
    pairs += _pairs(Schema.bytes(), b"", b"\x00\xff", b"text")
    pairs += _pairs(Schema.bytes(optional=True), None)
    return pairs


def _logical_values() -> list[SchemaAndValue]:
    return [
        *_pairs(decimal_schema(2), Decimal("0.00"), Decimal("-12345678901234567890.25")),
        *_pairs(decimal_schema(0, optional=True), Decimal(7), None),
        *_pairs(date_schema(), dt.date(1970, 1, 1), dt.date(2024, 2, 29), dt.date(1899, 12, 31)),
        *_pairs(time_schema(), dt.time(0), dt.time(23, 59, 59, 999_000)),
        *_pairs(timestamp_schema(), _INSTANT, dt.datetime(1969, 12, 31, 23, 59, 59, 1000, tzinfo=dt.UTC)),
        *_pairs(timestamp_schema(optional=True), None, _INSTANT),
    ]


def _nested_values() -> list[SchemaAndValue]:
    return [
        *_pairs(_CUSTOMER, *_CUSTOMERS),
        *_pairs(_CUSTOMER.as_optional(), None, _CUSTOMERS[0]),
        *_pairs(Schema.array(Schema.int32(optional=True)), [], [1, None, 3]),
        *_pairs(Schema.array(_CUSTOMER), list(_CUSTOMERS)),
        *_pairs(Schema.map(Schema.string(), Schema.int64()), {}, {"a": 1, "": 2}),
        *_pairs(Schema.map(Schema.int32(), Schema.string(optional=True)), {1: "one", 2: None}),
        *_pairs(Schema.struct({}), {}),
    ]


def _schemaless_values() -> list[SchemaAndValue]:
    return _pairs(
        None,
        None,
        True,
        12,
        -(2**63),
        0.5,
        "text",
        b"bytes",
        [],
        [1, "two", None, {"three": 3.5}],
        {},
        {"id": 1, "name": None, "address": {"city": "Ghent", "zip": 9000}, "tags": ["a"]},
    )


def _sample_contents() -> list[tuple[SchemaAndValue, SchemaAndValue, Headers]]:
    keys = [
        *_pairs(None, None, "key", {"id": 1, "name": "x"}),
        *_pairs(Schema.string(), "key"),
        *_pairs(_CUSTOMER, _CUSTOMERS[0]),
    ]
    values: Sequence[SchemaAndValue] = [
        *_pairs(_CUSTOMER, *_CUSTOMERS),
        *_pairs(_CUSTOMER.as_optional(), None, _CUSTOMERS[0]),
        *_pairs(None, {"id": 1, "name": None, "address": {"city": "Ghent"}}, {}, None, "text", 12),
        *_pairs(Schema.string(), "text"),
        *_pairs(Schema.string(optional=True), None, "12"),
        *_pairs(Schema.int64(), 1_700_000_000_000),
        *_pairs(Schema.array(Schema.int32()), [1, 2]),
        *_pairs(Schema.map(Schema.string(), Schema.string()), {"name": "Zoë", "id": "1"}),
    ]
    some = NO_HEADERS.add("trace", "abc", Schema.string()).add("n", 1, Schema.int32()).add("trace", None)
    return [
        (keys[index % len(keys)], value, some if index % 3 == 1 else NO_HEADERS)
        for index, value in enumerate([value for value in values for _ in range(len(keys))])
    ]
