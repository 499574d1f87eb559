"""Files of each format, read back by libraries that have nothing to do with ours."""

from __future__ import annotations

import csv
import datetime as dt
import time
import zlib
from collections.abc import Sequence
from decimal import Decimal
from io import BytesIO
from pathlib import Path
from typing import Any, Final

import duckdb
import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

from connect.data import ArrowColumn, Schema, ValueColumn, date_schema, decimal_schema, time_schema, timestamp_schema
from connect.errors import DataError, SchemaError
from connect.kits.files.formats.arrow_files import OrcFormat, ParquetFormat
from connect.kits.files.formats.avro_container import AvroFormat
from connect.kits.files.formats.compression import compressed
from connect.kits.files.formats.delimited import CsvFormat
from connect.kits.files.formats.json_values import json_encoder, json_lines_encoder
from connect.kits.files.formats.record_writer import FileFormat
from connect.kits.files.formats.text_lines import JsonFormat, StringFormat
from equipment.growth import assert_grows_evenly

SCHEMA: Final = Schema.struct(
    {
        "id": Schema.int64(),
        "small": Schema.int8(),
        "ratio": Schema.float32(optional=True),
        "name": Schema.string(optional=True),
        "raw": Schema.bytes(),
        "price": decimal_schema(2),
        "day": date_schema(),
        "time": time_schema(),
        "at": timestamp_schema(),
        "tags": Schema.array(Schema.string()),
        "counts": Schema.map(Schema.string(), Schema.int32()),
        "place": Schema.struct(
            {"city": Schema.string(), "zip": Schema.int32(optional=True)}, optional=True, name="place"
        ),
    },
    name="order",
)


def value_of(number: int) -> dict[str, Any]:
    return {
        "id": number,
        "small": number % 100,
        "ratio": None if number % 3 else 0.5,
        "name": None if number % 2 else f"näme {number}",
        "raw": bytes([number % 256, 0]),
        "price": Decimal(number).scaleb(-2),
        "day": dt.date(2024, 1, 1) + dt.timedelta(days=number % 365),
        "time": dt.time(1, 2, 3, 4000),
        "at": dt.datetime(2024, 1, 1, tzinfo=dt.UTC) + dt.timedelta(milliseconds=number),
        "tags": ["a"] * (number % 3),
        "counts": {"x": number},
        "place": None if number % 5 else {"city": "Ulm", "zip": None},
    }


def file_of(form: FileFormat, values: Sequence[Any], schema: Schema | None, batch: int = 1000) -> bytes:
    content = bytearray()
    writer = form.writer(content.extend, schema, "seed")
    for start in range(0, len(values), batch):
        writer.write(ValueColumn(values[start : start + batch], schema))
    writer.close()
    return bytes(content)


VALUES: Final = [value_of(number) for number in range(2500)]


@pytest.mark.parametrize("codec", ["null", "deflate", "bzip2", "xz"])
def test_avro_is_read_by_others(codec: Any) -> None:
    data = file_of(AvroFormat(codec), VALUES, SCHEMA)
    reader: Any = fastavro.reader(BytesIO(data))
    assert list(reader) == VALUES
    assert reader.codec == codec
    assert file_of(AvroFormat(codec), VALUES, SCHEMA, 7) == data, "the same bytes, however records come"


@pytest.mark.parametrize("codec", ["snappy", "zstandard"])
def test_blocks_of_avro_that_few_libraries_read(codec: Any) -> None:
    plain, data = file_of(AvroFormat(), VALUES[:10], SCHEMA), file_of(AvroFormat(codec), VALUES[:10], SCHEMA)
    mark = data[-16:]
    whole, packed = (part[part.index(mark) + 16 : -16][3:] for part in (plain, data))
    # In front of each block are a byte with the number of records, and two with its size.
    if codec == "zstandard":
        assert pa.Codec("zstd").decompress(packed, decompressed_size=len(whole), asbytes=True) == whole
        return
    assert pa.Codec("snappy").decompress(packed[:-4], decompressed_size=_snappy_size(packed), asbytes=True) == whole
    assert packed[-4:] == zlib.crc32(whole).to_bytes(4, "big")


def _snappy_size(packed: bytes) -> int:
    size = shift = 0
    for byte in packed:
        size |= (byte & 0x7F) << shift
        shift += 7
        if not byte & 0x80:
            return size
    return size


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "brotli", "zstd"])
def test_parquet_is_read_by_others(tmp_path: Path, codec: str) -> None:
    form = ParquetFormat(codec)
    file = tmp_path / f"x{form.extension}"
    file.write_bytes(file_of(form, VALUES, SCHEMA))
    rows = pq.read_table(file).to_pylist(maps_as_pydicts="strict")
    assert rows == VALUES
    counted = duckdb.sql(f"select count(*), sum(id), max(place.city), sum(price) from '{file}'").fetchall()
    assert counted == [(2500, 3123750, "Ulm", Decimal("31237.50"))]


def test_groups_of_rows_are_written_as_they_fill() -> None:
    wide = Schema.struct({"text": Schema.string()})
    sizes: list[int] = []
    writer = ParquetFormat("none").writer(lambda data: sizes.append(len(data)), wide, "")
    for _ in range(20):
        writer.write(ValueColumn([{"text": "x" * 1000 + str(n)} for n in range(1000)], wide))
        assert writer.held < 10 << 20
    assert sum(sizes) > 0
    writer.close()


@pytest.mark.parametrize("sizes", [(1,) * 200, (63, 1, 64, 2), (5, 500, 5, 1, 1, 300), (1,)])
def test_few_rows_at_a_time_keep_their_order(sizes: Sequence[int]) -> None:
    """Some are kept as they came until they are worth a table."""
    content = bytearray()
    writer = ParquetFormat().writer(content.extend, SCHEMA, "")
    whole, start = ArrowColumn.of(ValueColumn(VALUES, SCHEMA)), 0
    for size in sizes:
        writer.write(whole.slice(start, start + size))
        assert writer.held > 0
        start += size
    writer.close()
    assert pq.read_table(BytesIO(bytes(content))).to_pylist(maps_as_pydicts="strict") == VALUES[:start]
    assert writer.held == 0


def test_orc_is_read_by_others() -> None:
    plain = Schema.struct([field for field in SCHEMA.fields if field.name != "time"])
    values = [{name: part for name, part in value.items() if name != "time"} for value in VALUES]
    table = orc.read_table(BytesIO(file_of(OrcFormat(), values, plain)))
    assert table["id"].to_pylist() == list(range(2500))
    assert table["price"].to_pylist() == [value["price"] for value in values]
    assert table["at"].to_pylist() == [value["at"] for value in values]


@pytest.mark.parametrize("form", [ParquetFormat(), OrcFormat()])
def test_columns_of_records_without_a_schema_are_found(form: FileFormat) -> None:
    values = [{"a": 1}, {"a": 2, "b": "x"}, {"b": None, "c": [1.5]}]
    data = file_of(form, values, None, 1)
    table = pq.read_table(BytesIO(data)) if isinstance(form, ParquetFormat) else orc.read_table(BytesIO(data))
    assert table.to_pylist() == [
        {"a": 1, "b": None, "c": None},
        {"a": 2, "b": "x", "c": None},
        {"a": None, "b": None, "c": [1.5]},
    ]


def test_a_value_that_does_not_fit_leaves_the_file_as_it_was() -> None:
    content = bytearray()
    writer = ParquetFormat().writer(content.extend, None, "")
    writer.write(ValueColumn([{"a": 1}]))
    for wrong in ({"a": "text"}, "text", {}):
        with pytest.raises(DataError):
            writer.write(ValueColumn([wrong]))
    writer.write(ValueColumn([{"a": 2}]))
    writer.close()
    assert pq.read_table(BytesIO(bytes(content))).to_pylist() == [{"a": 1}, {"a": 2}]
    with pytest.raises(SchemaError, match="HoistField"):
        ParquetFormat().writer(content.extend, Schema.string(), "")
    with pytest.raises(SchemaError, match="HoistField"):
        CsvFormat().writer(content.extend, Schema.int32(), "")


def test_columns_that_a_format_lacks_are_refused_before_anything_is_written() -> None:
    content = bytearray()
    with pytest.raises(SchemaError, match=r"OrcFormat cannot have these columns: .*time32.* Use another format\.class"):
        OrcFormat().writer(content.extend, Schema.struct({"at": time_schema()}), "")
    writer = OrcFormat().writer(content.extend, None, "")
    with pytest.raises(DataError, match="OrcFormat cannot have these columns"):
        writer.write(ValueColumn([{"at": dt.time(1)}]))
    writer.write(ValueColumn([{"a": 1, "b": None}]))
    writer.close()
    assert orc.read_table(BytesIO(bytes(content))).to_pylist() == [{"a": 1, "b": None}]


def test_csv_is_read_by_others(tmp_path: Path) -> None:
    file = tmp_path / "x.csv"
    values = [{"a": n, "b": ('q"', "x,y", "li\nne", "")[n % 4], "c": None} for n in range(100)]
    file.write_bytes(file_of(CsvFormat(), values, None))
    with file.open(newline="") as stream:
        assert list(csv.DictReader(stream)) == [{**value, "a": str(value["a"]), "c": ""} for value in values]


@pytest.mark.parametrize("kind", ["gzip", "snappy", "zstd"])
def test_compressed_files_are_read_by_others(kind: Any) -> None:
    text = b"".join(b"line %d\n" % number for number in range(100_000))
    content = bytearray()
    sink = compressed(content.extend, kind)
    for start in range(0, len(text), 1000):
        sink.write(text[start : start + 1000])
    sink.close()
    data = bytes(content)
    if kind == "snappy":
        assert data.startswith(b"\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01")
        assert _unframed(data[16:]) == text
        return
    with pa.CompressedInputStream(pa.BufferReader(data), kind) as stream:
        assert stream.read() == text


def _unframed(data: bytes) -> bytes:
    """The blocks of xerial's stream: a size, and a block with the size of its content at its head."""
    out, codec, at = b"", pa.Codec("snappy"), 0
    while at < len(data):
        size = int.from_bytes(data[at : at + 4], "big")
        block = data[at + 4 : at + 4 + size]
        out += codec.decompress(block, decompressed_size=_snappy_size(block), asbytes=True)
        at += 4 + size
    return out


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"f": float("inf"), "n": None}, b'{"f":"Infinity","n":null}'),
        ([float("-inf"), -(1 << 64)], b'["-Infinity",-18446744073709551616]'),
        ({1: "a", 2: True}, b'{"1":"a","2":true}'),
        (Decimal("1.50"), b"1.50"),
        (dt.datetime(1970, 1, 1, 0, 0, 2, tzinfo=dt.UTC), b"2000"),
        (dt.date(1970, 1, 2), b"86400000"),
        (dt.time(0, 0, 1), b"1000"),
    ],
)
def test_json_of_values_without_a_schema(value: Any, text: bytes) -> None:
    assert json_encoder(None)([value]) == [text + b"\n"]


def test_json_in_the_order_of_the_schema() -> None:
    schema = Schema.struct({"a": Schema.int32(), "b": Schema.string(optional=True)})
    assert json_encoder(schema)([{"b": "x", "a": 1}, {"a": 2}]) == [b'{"a":1,"b":"x"}\n', b'{"a":2,"b":null}\n']


ROW = Schema.struct({"a": Schema.string(optional=True), "b": Schema.float64(optional=True)}, optional=True)


@pytest.mark.parametrize(
    ("schema", "values"),
    [
        (ROW, [{"a": "x", "b": 1.5}, {"a": "y", "b": 2.0}]),
        (ROW, [{"a": "},{", "b": 1.5}, {"a": "y", "b": 2.0}]),
        (ROW, [{"a": "},{", "b": 1.5}]),
        (ROW, [{"a": "},{", "b": 1.5}, None]),
        (ROW, [{"a": "x", "b": float("nan")}, {"a": None, "b": None}]),
        (ROW, [{"a": "null", "b": float("nan")}, {"a": None, "b": 1.0}]),
        (ROW, [{"a": "null", "b": None}, {"a": None, "b": float("inf")}]),
        (ROW, [{"b": 1.0, "a": "x"}, {"a": "y"}]),
        (Schema.struct({}), [{}, {}]),
        (None, [{"a": None, "b": 1.0}, {"a": None, "b": float("nan")}]),
        (None, [{"a": None}, [None, float("nan")]]),
        (None, []),
        (None, [{}]),
        (None, [{}, {}, {}]),
        (None, [[{}, {}], [1]]),
        (None, [{"a": [{}, {}]}, None]),
        (None, [{"a": [{}, {}]}, {}]),
        (None, ["},{", 1, None, True]),
        (None, [{"a": [{"a": 1}, {"a": 2}]}, {"a": []}]),
        (None, [{"a": '},{"a":', "b": "},{"}, {"a": "},{"}, {"a": {"a": 1}}]),
        (None, [{'},{"': 1}, {'},{"': 2}]),
        (None, [{1: "x"}, {1: "y"}]),
        (None, [{"a": None, "b": float("inf")}, {"a": None, "b": {"c": [float("nan")]}}, {"a": None}]),
        (None, [{"a": 1 << 70}, {"b": {"c": [{}, {"d": "\n"}]}}]),
        (Schema.string(), ["},{", "a"]),
        (Schema.array(Schema.map(Schema.string(), Schema.int32())), [[{}, {}], []]),
    ],
)
def test_json_lines_of_all_values_are_those_of_each(schema: Schema | None, values: list[Any]) -> None:
    alone = [json_lines_encoder(schema)([value]) for value in values]
    assert json_lines_encoder(schema)(values) == b"".join(json_encoder(schema)(values)) == b"".join(alone)


@pytest.mark.parametrize("bad", [object(), "\ud800", {"x": object()}])
def test_what_has_no_json_is_refused(bad: Any) -> None:
    with pytest.raises(DataError):
        json_encoder(None)([bad])


@pytest.mark.parametrize("form", [AvroFormat(), JsonFormat(), ParquetFormat()])
def test_what_a_schema_asks_for_is_found_once_for_all_files(form: FileFormat) -> None:
    """A sink may have a thousand files open, of one schema."""
    wide = Schema.struct({f"{type(form).__name__}{at}": Schema.string(optional=True) for at in range(300)})

    def seconds(files: int) -> float:
        began = time.thread_time()
        for _ in range(files):
            form.writer(len, wide, "seed")
        return time.thread_time() - began

    assert seconds(1) > seconds(10)


def test_texts_with_line_breaks_are_refused() -> None:
    with pytest.raises(DataError, match="line break"):
        file_of(StringFormat(), ["a\nb"], Schema.string())


def _nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


def test_nesting_beyond_reason_is_refused() -> None:
    with pytest.raises(DataError):
        json_encoder(None)([_nested(100_000)])


@pytest.mark.growth
@pytest.mark.parametrize("form", [JsonFormat(), AvroFormat(), ParquetFormat()])
def test_the_time_grows_with_the_records(form: FileFormat) -> None:
    assert_grows_evenly(lambda values: file_of(form, values, SCHEMA), lambda size: VALUES * size, 4)
