"""Avro container files in a folder."""

from __future__ import annotations

import datetime as dt
import decimal
import io
import json
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from connect.data import date_schema, decimal_schema, timestamp_schema
from connect.errors import DataError
from connect.kits.avro.wire_format import varint
from connect.kits.files.readers.formats.avro import AvroTable
from equipment.examples import examples
from equipment.growth import assert_grows_evenly

SYNC = bytes(range(16))
PAIR = {
    "type": "record",
    "name": "shop.pair",
    "fields": [{"name": "n", "type": "long"}, {"name": "t", "type": ["null", "string"]}],
}
PAIRS = [{"n": number, "t": None if number % 3 else f"text {number}"} for number in range(50)]
LONGEST = 1 << 20


def avro(
    values: list[Any], schema: Any = PAIR, *, codec: str = "null", interval: int = 100, sync: bytes = SYNC
) -> bytes:
    out = io.BytesIO()
    fastavro.writer(out, schema, values, codec=codec, sync_interval=interval, sync_marker=sync)
    return out.getvalue()


def long(number: int) -> bytes:
    return varint(number << 1 ^ number >> 63)


def container(schema: Any, codec: str, *blocks: tuple[int, bytes]) -> bytes:
    """A file of blocks that are packed already."""
    properties = {"avro.schema": json.dumps(schema).encode(), "avro.codec": codec.encode()}
    head = b"".join(long(len(part)) + part for pair in properties.items() for part in (pair[0].encode(), pair[1]))
    body = b"".join(long(count) + long(len(data)) + data + SYNC for count, data in blocks)
    return b"Obj\x01" + long(len(properties)) + head + b"\0" + SYNC + body


def rows_of(data: bytes, folder: Path, start: int = 0) -> list[Any]:
    """What the format reads, which it verifies first."""
    file = folder / "x.avro"
    file.write_bytes(data)
    table = AvroTable(str(file), LONGEST)
    try:
        total = table.verify()
        rows = [value for block in table.blocks(start) for value in block.column]
        assert len(rows) == max(0, total - start)
        return rows
    finally:
        table.close()


@pytest.mark.parametrize("codec", ["null", "deflate", "bzip2", "xz"])
def test_a_file_is_read_from_any_row(tmp_path: Path, codec: str) -> None:
    data = avro(PAIRS, codec=codec)
    assert list(fastavro.reader(io.BytesIO(data))) == PAIRS
    for start in (0, 1, 7, 49, 50):
        assert rows_of(data, tmp_path, start) == PAIRS[start:]


def packed(codec: str, data: bytes) -> bytes:
    if codec == "snappy":
        packed: bytes = pa.Codec("snappy").compress(data, asbytes=True)
        return packed + zlib.crc32(data).to_bytes(4, "big")
    if codec == "lz4":
        return len(data).to_bytes(4, "little") + pa.Codec("lz4_raw").compress(data, asbytes=True)
    made: bytes = pa.Codec("zstd").compress(data, asbytes=True)
    return made


@pytest.mark.parametrize("codec", ["snappy", "zstandard", "lz4"])
def test_the_codecs_of_arrow_are_read(tmp_path: Path, codec: str) -> None:
    body = b"".join(long(number) for number in range(1000))
    data = container("long", codec, (1000, packed(codec, body)), (0, packed(codec, b"")))
    assert rows_of(data, tmp_path) == list(range(1000))
    for damaged in (packed(codec, body)[:-3], packed(codec, body)[:-50], b"\xff" * 50, b""):
        with pytest.raises(DataError):
            rows_of(container("long", codec, (1000, damaged)), tmp_path)


def test_values_have_the_types_that_the_avro_converter_gives_them(tmp_path: Path) -> None:
    schema = {
        "type": "record",
        "name": "rich",
        "fields": [
            {"name": "day", "type": {"type": "int", "logicalType": "date"}},
            {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
            {"name": "fine", "type": {"type": "long", "logicalType": "timestamp-micros"}},
            {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 6, "scale": 2}},
            {"name": "kind", "type": {"type": "enum", "name": "k", "symbols": ["A", "B"]}},
            {"name": "either", "type": ["null", "int", "string"]},
            {"name": "tags", "type": {"type": "map", "values": {"type": "array", "items": "float"}}},
        ],
    }
    at = dt.datetime(2013, 5, 1, 12, 30, 0, 5000, dt.UTC)
    row = {
        "day": dt.date(2013, 5, 1),
        "at": at,
        "fine": at,
        "price": decimal.Decimal("12.30"),
        "kind": "B",
        "either": "text",
        "tags": {"a": [0.5]},
    }
    file = tmp_path / "x.avro"
    file.write_bytes(avro([row], schema))
    table = AvroTable(str(file), LONGEST)
    (block,) = table.blocks(0)
    table.close()
    assert list(block.column) == [{**row, "fine": 1367411400005000, "either": {"int": None, "string": "text"}}]
    assert block.column.schema is not None
    kinds = {field.name: field.schema for field in block.column.schema.fields}
    assert kinds["day"] is date_schema()
    assert kinds["at"] is timestamp_schema()
    assert kinds["price"].name == decimal_schema(2).name


@given(
    st.lists(st.fixed_dictionaries({"n": st.integers(-(2**63), 2**63 - 1), "t": st.none() | st.text()}), max_size=30),
    st.integers(16, 500),
)
@settings(deadline=None, max_examples=examples(60))
def test_rows_and_columns_are_what_was_written(
    tmp_path_factory: pytest.TempPathFactory, rows: list[dict[str, Any]], interval: int
) -> None:
    file = tmp_path_factory.mktemp("avro") / "x.avro"
    file.write_bytes(avro(rows, interval=interval))
    table = AvroTable(str(file), LONGEST)
    blocks = list(table.blocks(0))
    table.close()
    assert [row for block in blocks for row in block.column] == rows
    assert [row for block in blocks for row in block.column.to_arrow().to_pylist()] == rows


def test_a_file_that_is_cut_is_not_half_read(tmp_path: Path) -> None:
    data = avro(PAIRS)
    whole = 0
    for end in range(len(data)):
        try:
            rows = rows_of(data[:end], tmp_path)
        except DataError:
            continue
        # At the end of a block a file looks as if it had been finished there.
        assert data[:end].endswith(SYNC)
        assert rows == PAIRS[: len(rows)]
        whole += 1
    assert whole == data.count(SYNC) - 1


@given(st.integers(0, 10_000), st.integers(1, 255))
@settings(deadline=None, max_examples=examples(300))
def test_a_damaged_file_is_read_whole_or_refused(tmp_path_factory: pytest.TempPathFactory, place: int, by: int) -> None:
    data = bytearray(avro(PAIRS, codec="deflate"))
    data[place % len(data)] ^= by
    try:
        rows = rows_of(bytes(data), tmp_path_factory.getbasetemp())
    except DataError:
        return
    assert len(rows) == len(PAIRS)


def deflated(data: bytes) -> bytes:
    packer = zlib.compressobj(9, wbits=-15)
    return packer.compress(data) + packer.flush()


EMPTY = {"type": "record", "name": "e", "fields": []}


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (container("bytes", "deflate", (1, deflated(bytes(1 << 24)))), "more than 4194304 bytes after decompression"),
        (container("bytes", "snappy", (1, b"\xff\xff\xff\xff\x0f" + bytes(8))), "after decompression"),
        (container("bytes", "lz4", (1, b"\xff\xff\xff\xff" + bytes(8))), "after decompression"),
        (container("bytes", "zstandard", (1, packed("zstandard", bytes(1 << 24)))), "after decompression"),
        (container("long", "null", (6, b"\0" * 5)), "it ends too early"),
        (container("long", "null", (1 << 40, b"\0" * 5)), "1099511627776 values in 5 bytes"),
        (container(EMPTY, "null", (1 << 50, b"")), "1125899906842624 values in 0 bytes"),
        (container("long", "null", (1, b"\0" * 5)), "4 bytes after its values"),
        (container("long", "null")[:-17] + b"\x02\xfe\xff\xff\xff\xff\xff\xff\xff\x7f", "its header is damaged"),
        (container("long", "nul", (1, b"\0")), "its codec is 'nul'"),
        (container({"type": "strin"}, "null"), "uses the type strin"),
        (container({"type": "array", "items": EMPTY}, "null", (1, long(1 << 40) + b"\0")), "elements and fields"),
        (b"Obj\x01" + b"\xff" * 30, "too many bytes"),
        (b"PAR1", "not an Avro container file"),
        (b"", "not an Avro container file"),
    ],
    ids=range(15),
)
def test_a_hostile_file_is_refused_at_small_cost(tmp_path: Path, data: bytes, reason: str) -> None:
    with pytest.raises(DataError) as refused:
        rows_of(data, tmp_path)
    assert reason in str(refused.value)


@pytest.mark.growth
def test_refusing_takes_time_in_proportion_to_the_file(tmp_path: Path) -> None:
    def damaged(count: int) -> bytes:
        return avro([{"n": number, "t": "x"} for number in range(count)], interval=64)[:-1]

    def read(data: bytes) -> None:
        with pytest.raises(DataError):
            rows_of(data, tmp_path)

    assert_grows_evenly(read, damaged, 2_000)


# -- in a folder ---------------------------------------------------------------------------------------------------


def test_a_task_resumes_after_any_row(folder: Any, start: Any, source_context: Any, rows: Callable[..., Any]) -> None:
    file = folder.write("a.avro", avro(PAIRS[:20], codec="deflate"))
    records = rows(start(source_context(), **{"batch.size": "3"}))
    assert [record.value for record in records] == PAIRS[:20]
    assert records[0].value_schema.name == "shop.pair"
    assert dict(records[4].source_offset).keys() == {"position", "row", "fingerprint"}
    assert records[4].source_offset["position"] == records[4].source_offset["row"] == 5
    assert records[-1].source_offset["finished"] == file.stat().st_size
    for count in range(1, 21):
        context = source_context()
        context.commit(records[count - 1].source_partition, records[count - 1].source_offset)
        assert [record.value for record in rows(start(context))] == PAIRS[count:20]


def test_a_file_that_grows_is_read_on(folder: Any, start: Any, context: Any, rows: Callable[..., Any]) -> None:
    file = folder.write("a.avro", avro(PAIRS[:5]))
    task = start(context)
    assert len(rows(task)) == 5
    file.write_bytes(avro(PAIRS[:9]))
    folder.settle(file)
    assert [record.value for record in rows(task)] == PAIRS[5:9]


def test_another_file_of_the_name_is_read_from_its_beginning(
    folder: Any, start: Any, source_context: Any, rows: Callable[..., Any]
) -> None:
    file = folder.write("a.avro", avro(PAIRS[:5]))
    context = source_context()
    records = rows(start(context))
    context.commit(records[-1].source_partition, records[-1].source_offset)
    folder.write(file.name, avro(PAIRS[10:20], sync=bytes(16)))
    assert [record.value for record in rows(start(context))] == PAIRS[10:20]
    folder.write(file.name, avro(PAIRS[:3]))
    assert [record.value for record in rows(start(context))] == PAIRS[:3]


def test_a_file_is_not_opened_before_it_is_settled(
    folder: Any, start: Any, context: Any, rows: Callable[..., Any]
) -> None:
    file = folder.write("a.avro", avro(PAIRS)[:-5], fresh=True)
    task = start(context, **{"settle.ms": "3600000"})
    assert rows(task) == []
    assert task.remaining() == {"bytes": file.stat().st_size, "files": 1}
    file.write_bytes(avro(PAIRS))
    folder.settle(file)
    assert len(rows(start(context))) == 50


def test_nothing_of_a_damaged_file_is_published(
    folder: Any, start: Any, source_context: Any, rows: Callable[..., Any]
) -> None:
    folder.write("a.avro", avro(PAIRS)[:-5])
    context = source_context(tolerate=True)
    assert rows(start(context)) == []
    ((record, error),) = context.errant_record_reporter.reported
    assert record.value.endswith("a.avro")
    assert "a.avro, which is damaged or in another format: the block at byte" in str(error)


@pytest.mark.parametrize("name", ["a.avro.gz", "a.parquet.gz"])
def test_a_table_that_is_packed_once_more_is_refused(
    folder: Any, start: Any, source_context: Any, rows: Callable[..., Any], name: str
) -> None:
    folder.write(name, b"")
    context = source_context(tolerate=True)
    assert rows(start(context)) == []
    ((_, error),) = context.errant_record_reporter.reported
    assert "Decompress it" in str(error)
