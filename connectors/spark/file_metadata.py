"""Reads the metadata of data files: how many rows and which fields they have, without decoding a value.

A broken file raises ``ValueError`` or ``OSError``. Fields are named by their paths: ``origin``, ``gate.name``,
``tags[]``, ``tags[].x``. A compaction reads the fields that the table knows; other fields of a file would be lost.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import sys
import zlib
from collections.abc import Iterator
from typing import Any, BinaryIO, Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import types

__all__ = [
    "avro_fields",
    "avro_rows",
    "csv_rows",
    "line_rows",
    "orc_fields",
    "orc_rows",
    "parquet_fields",
    "parquet_rows",
]

_CHUNK_BYTES: Final = 1 << 20
_GZIP: Final = b"\x1f\x8b"
_MAGIC: Final = b"Obj\x01"
_SYNC: Final = 16
_MOST_BYTES: Final = 10


def parquet_rows(file: BinaryIO) -> int:
    """Count the rows of a Parquet file, from its footer."""
    try:
        return int(pq.read_metadata(file).num_rows)
    except pa.ArrowException as error:
        raise ValueError(str(error)) from error


def orc_rows(file: BinaryIO) -> int:
    """Count the rows of an ORC file, from its footer."""
    from pyarrow import orc  # noqa: PLC0415 - only this format needs it

    try:
        return int(orc.ORCFile(file).nrows)
    except pa.ArrowException as error:
        raise ValueError(str(error)) from error


def line_rows(file: BinaryIO) -> int:
    """Count the lines of a text file, gzipped or not; the last line must be terminated."""
    count, last = 0, b"\n"
    content = _plain(file)
    try:
        while chunk := content.read(_CHUNK_BYTES):
            count += chunk.count(b"\n")
            last = chunk[-1:]
    except (EOFError, zlib.error) as error:
        raise ValueError(f"its compressed data is corrupt: {error}") from error
    if last != b"\n":
        raise ValueError("its last line is incomplete")
    return count


def csv_rows(file: BinaryIO) -> int:
    """Count the records of a CSV file with a header, gzipped or not; values may contain line breaks."""
    csv.field_size_limit(sys.maxsize)
    try:
        rows = csv.reader(io.TextIOWrapper(_plain(file), encoding="utf-8", newline=""), strict=True)
        return max(0, sum(1 for _ in rows) - 1)
    except (csv.Error, EOFError, zlib.error) as error:
        raise ValueError(f"it is not valid CSV: {error}") from error


def _plain(file: BinaryIO) -> Any:
    start = file.read(len(_GZIP))
    file.seek(0)
    return gzip.GzipFile(fileobj=file) if start == _GZIP else file


def avro_rows(file: BinaryIO) -> int:
    """Count the rows of an Avro file, from its block headers; raise ``ValueError`` if the file is broken."""
    _metadata(file)
    sync = _exactly(file, _SYNC)
    rows = 0
    while byte := file.read(1):
        count = _long(file, byte)
        size = _long(file)
        if count < 0 or size < 0:
            raise ValueError("it has a block with a negative size")
        file.seek(size, io.SEEK_CUR)
        if _exactly(file, _SYNC) != sync:
            raise ValueError("a block does not end with the file's sync marker")
        rows += count
    return rows


def parquet_fields(file: BinaryIO) -> frozenset[str]:
    """Return the field paths of a Parquet file."""
    return frozenset(_arrow_fields(pq.read_schema(file), ""))


def orc_fields(file: BinaryIO) -> frozenset[str]:
    """Return the field paths of an ORC file."""
    from pyarrow import orc  # noqa: PLC0415 - only this format needs it

    return frozenset(_arrow_fields(orc.ORCFile(file).schema, ""))


def avro_fields(file: BinaryIO) -> frozenset[str]:
    """Return the field paths of an Avro file."""
    return frozenset(_avro_fields(_avro_schema(file), ""))


def _arrow_fields(fields: Any, path: str) -> Iterator[str]:
    for field in fields:
        yield from _type_fields(field.type, f"{path}.{field.name}" if path else field.name)


def _type_fields(data_type: Any, path: str) -> Iterator[str]:
    yield path
    if types.is_struct(data_type):
        yield from _arrow_fields(data_type, path)
    elif types.is_map(data_type):
        yield from _type_fields(data_type.key_type, f"{path}[]")
        yield from _type_fields(data_type.item_type, f"{path}[]")
    elif types.is_list(data_type):
        yield from _type_fields(data_type.value_type, f"{path}[]")


def _avro_fields(schema: Any, path: str) -> Iterator[str]:
    if isinstance(schema, list):
        for choice in schema:
            yield from _avro_fields(choice, path)
        return
    if path:
        yield path
    if not isinstance(schema, dict):
        return
    for field in schema.get("fields", ()):
        yield from _avro_fields(field["type"], f"{path}.{field['name']}" if path else field["name"])
    for inner in ("items", "values"):
        if inner in schema:
            yield from _avro_fields(schema[inner], f"{path}[]")
    if isinstance(schema.get("type"), dict | list):
        yield from _avro_fields(schema["type"], path)


def _avro_schema(file: BinaryIO) -> Any:
    """Return the schema in the header, as parsed JSON."""
    return json.loads(_metadata(file).get("avro.schema", b"null"))


def _metadata(file: BinaryIO) -> dict[str, bytes]:
    """Read the metadata map in the header: blocks of name and bytes pairs, up to an empty block."""
    if file.read(len(_MAGIC)) != _MAGIC:
        raise ValueError("it is not an Avro file")
    found: dict[str, bytes] = {}
    while count := _long(file):
        if count < 0:
            _long(file)
        for _ in range(abs(count)):
            name = _exactly(file, _long(file)).decode()
            found[name] = _exactly(file, _long(file))
    return found


def _long(file: BinaryIO, first: bytes = b"") -> int:
    """Read a zigzag number, whose byte ``first`` was read already."""
    number = 0
    for place in range(_MOST_BYTES):
        byte = first or _exactly(file, 1)
        first = b""
        number |= (byte[0] & 0x7F) << (7 * place)
        if byte[0] < 0x80:
            return (number >> 1) ^ -(number & 1)
    raise ValueError("it has a number that is too long")


def _exactly(file: BinaryIO, size: int) -> bytes:
    data = file.read(size) if size >= 0 else b""
    if len(data) != size:
        raise ValueError("it ends too early")
    return data
