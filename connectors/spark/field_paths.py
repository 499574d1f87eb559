"""The paths of the fields in files that have a schema: ``origin``, ``gate.name``, ``tags[]``, ``tags[].x``.

A compaction reads the fields of the table; a file with others would lose them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO

import pyarrow.parquet as pq
from pyarrow import types

from connectors.spark.avro_file import avro_schema

__all__ = ["of_avro", "of_orc", "of_parquet"]


def of_parquet(file: BinaryIO) -> frozenset[str]:
    """Those of a Parquet file."""
    return frozenset(_of_arrow(pq.read_schema(file), ""))


def of_orc(file: BinaryIO) -> frozenset[str]:
    """Those of an ORC file."""
    from pyarrow import orc  # noqa: PLC0415 - only this format needs it

    return frozenset(_of_arrow(orc.ORCFile(file).schema, ""))


def of_avro(file: BinaryIO) -> frozenset[str]:
    """Those of an Avro file."""
    return frozenset(_of_avro(avro_schema(file), ""))


def _of_arrow(fields: Any, path: str) -> Iterator[str]:
    for field in fields:
        yield from _of_type(field.type, f"{path}.{field.name}" if path else field.name)


def _of_type(data_type: Any, path: str) -> Iterator[str]:
    yield path
    if types.is_struct(data_type):
        yield from _of_arrow(data_type, path)
    elif types.is_map(data_type):
        yield from _of_type(data_type.key_type, f"{path}[]")
        yield from _of_type(data_type.item_type, f"{path}[]")
    elif types.is_list(data_type):
        yield from _of_type(data_type.value_type, f"{path}[]")


def _of_avro(schema: Any, path: str) -> Iterator[str]:
    if isinstance(schema, list):
        for choice in schema:
            yield from _of_avro(choice, path)
        return
    if path:
        yield path
    if not isinstance(schema, dict):
        return
    for field in schema.get("fields", ()):
        yield from _of_avro(field["type"], f"{path}.{field['name']}" if path else field["name"])
    for inner in ("items", "values"):
        if inner in schema:
            yield from _of_avro(schema[inner], f"{path}[]")
    if isinstance(schema.get("type"), dict | list):
        yield from _of_avro(schema["type"], path)
