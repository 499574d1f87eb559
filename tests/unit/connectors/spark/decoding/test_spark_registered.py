"""What executors make of messages whose schemas are in a registry: the same rows and the same rejections whether they
are read by column or by row.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from connect.converter import Converter
from connect.data import Constant, Schema, ValueColumn
from connect.internals.chain.frames import unframed_column
from connectors.spark.decoding.decoder import Mode
from connectors.spark.schema import KafkaColumns
from converters.avro import AvroConverter
from converters.json_schema import JsonSchemaConverter
from converters.protobuf import ProtobufConverter
from equipment.fakes.schema_registry import MemoryRegistry, serving
from unit.connectors.spark.decoding.test_spark_decode import HEADER_LISTS, decode, raw

FIRST = Schema.struct({"id": Schema.int64(), "name": Schema.string(optional=True)}, name="Row")
SECOND = Schema.struct({"id": Schema.int64(), "name": Schema.string(optional=True), "x": Schema.float64()}, name="Row")
TABLE = Schema.struct(
    {
        "id": Schema.int64(optional=True),
        "name": Schema.string(optional=True),
        "x": Schema.float64(optional=True),
    }
)
HEADER_TABLE = Schema.struct(
    {
        "h": Schema.array(
            Schema.struct({"key": Schema.string(optional=True), "value": Schema.bytes(optional=True)}, optional=True),
            optional=True,
        )
    }
)


@pytest.fixture(scope="module")
def registry() -> Iterator[str]:
    with serving(MemoryRegistry(tells_guids=True)) as memory:
        yield memory.url


ALL = {
    "avro": (AvroConverter, {}),
    "json": (JsonSchemaConverter, {}),
    "protobuf": (ProtobufConverter, {"optional.for.nullables": "true"}),
}


@pytest.fixture(params=ALL)
def kind(request: pytest.FixtureRequest) -> str:
    """The format of the messages."""
    name: str = request.param
    return name


@pytest.fixture
def props(registry: str, kind: str) -> dict[str, str]:
    made, options = ALL[kind]
    given = {"schema.registry.url": registry, **options}
    return {
        "value.converter": f"{made.__module__.removesuffix('.converter')}.{made.__name__}",
        **{f"value.converter.{name}": value for name, value in given.items()},
    }


def rows(first: int, count: int, **more: Any) -> list[dict[str, Any]]:
    return [
        {"id": number, "name": None if number % 3 else f"é{number}", **more} for number in range(first, first + count)
    ]


@pytest.fixture
def converter(registry: str, kind: str) -> Iterator[Converter[Any]]:
    made, options = ALL[kind]
    found: Converter[Any] = made.configured({"schema.registry.url": registry, **options})
    yield found
    found.close()


def both_ways(props: dict[str, str], messages: list[Any], **plan: Any) -> tuple[list[dict[str, Any]], Any]:
    """The rows and the report, which reading by row and by column agree on."""
    found, report = decode(props, [raw(messages, 1000)], TABLE, **plan)
    expected, by_row = decode(props, [raw(messages, 1000)], TABLE, by_row=True, **plan)
    assert found == expected
    assert report.rejections == by_row.rejections
    assert (report.grown, report.written, report.ignored) == (by_row.grown, by_row.written, by_row.ignored)
    return found, report


def test_schemas_that_follow_each_other_are_rows_of_one_table(
    props: dict[str, str], kind: str, converter: Converter[Any]
) -> None:
    parts = [(FIRST, rows(0, 200)), (SECOND, rows(200, 300, x=0.5)), (FIRST, rows(500, 100))]
    messages = [
        message
        for schema, values in parts
        for message in converter.from_connect_column(kind, ValueColumn(values, schema))
    ]
    found, _ = both_ways(props, messages)
    assert found == [{"x": None, **row} for _, values in parts for row in values]


def test_schemas_that_alternate_are_rows_of_one_table(
    props: dict[str, str], kind: str, converter: Converter[Any]
) -> None:
    messages = [
        converter.from_connect(kind, SECOND if "x" in row else FIRST, row)
        for pair in zip(rows(0, 100), rows(100, 100, x=1.5), strict=True)
        for row in pair
    ]
    found, _ = both_ways(props, messages)
    assert [row["id"] for row in found] == [
        number for pair in zip(range(100), range(100, 200), strict=True) for number in pair
    ]


def test_bad_messages_are_named_one_by_one(props: dict[str, str], kind: str, converter: Converter[Any]) -> None:
    messages = list(converter.from_connect_column(kind, ValueColumn(rows(0, 300), FIRST)))
    cut, other = messages[7], messages[200]
    assert cut is not None
    assert other is not None
    messages[7], messages[200], messages[201] = cut[:-1] + b"\x00\x00", b"\x01" + other[1:], b""
    found, report = both_ways(props, messages, mode=Mode.FINAL)
    assert [row["id"] for row in found] == [number for number in range(300) if number not in (7, 200, 201)]
    assert [rejection.offset for rejection in report.rejections] == [1007, 1200, 1201]


@pytest.mark.parametrize("kind", ["avro"], indirect=True)
@pytest.mark.parametrize("null_values", ["fail", "ignore", "write"])
def test_a_null_in_a_message_is_a_record_without_a_value(
    props: dict[str, str], kind: str, converter: Converter[Any], registry: str, null_values: str
) -> None:
    """Other writers than Connect may write a null as a member of a union."""
    optional = FIRST.as_optional()
    messages = list(converter.from_connect_column(kind, ValueColumn(rows(0, 100), optional)))
    first = messages[0]
    assert first is not None
    messages[50] = first[:5] + b"\x00"
    found, report = both_ways(props, messages, mode=Mode.FINAL, null_values=null_values)
    assert len(found) == (100 if null_values == "write" else 99)
    assert [rejection.offset for rejection in report.rejections] == ([1050] if null_values == "fail" else [])


def test_schemas_that_headers_name_are_found_by_column_and_by_row(
    props: dict[str, str], kind: str, converter: Converter[Any], registry: str
) -> None:
    made, options = ALL[kind]
    in_headers = {"value.schema.id.serializer": "HeaderSchemaIdSerializer"}
    peer: Converter[Any] = made.configured({"schema.registry.url": registry, **options, **in_headers})
    column = ValueColumn(rows(0, 200), FIRST)
    values, headers = unframed_column(peer, peer.from_connect_column(kind, column), Constant(None, 200))
    peer.close()
    prefixed = converter.from_connect_column(kind, ValueColumn(rows(200, 100), FIRST))
    lists = [[{"key": name, "value": data} for name, data in row or ()] for row in headers]
    lists[7] = [{"key": "__value_schema_id", "value": b"\x01none"}]
    columns = {"headers": pa.array([*lists, *([None] * 100)], HEADER_LISTS)}
    batch = raw([*values, *prefixed], 1000, **columns)
    expected = [row for row in rows(0, 300) if row["id"] != 7]
    for plan in ({}, {"by_row": True}, {"kafka_columns": KafkaColumns(headers="h")}):
        table = TABLE if "kafka_columns" not in plan else Schema.struct([*TABLE.fields, *HEADER_TABLE.fields])
        found, report = decode(props, [batch], table, mode=Mode.FINAL, **plan)
        assert [{"id": row["id"], "name": row["name"]} for row in found] == expected
        assert [rejection.offset for rejection in report.rejections] == [1007]
    assert [header["key"] for header in found[0]["h"]] == ["__value_schema_id"]
