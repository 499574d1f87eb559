"""Parses JSON texts with pyarrow, carefully: they are not one stream, and pyarrow is less strict than orjson."""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import json as arrow_json
from pyarrow import types as kinds

from connect.data import Schema, Type
from connect.data.arrow import arrow_type
from connectors.spark.decoding.column_reader import UncertainReadingError

__all__ = ["is_natural", "list_offsets", "parse_json", "select"]

_EXACT: Final = 2.0**53
_ENDING: Final = b"\0"
"""What pyarrow's parser takes for the end of all texts; nothing in JSON is written with it."""
_NATURAL: Final = {Type.INT8, Type.INT16, Type.INT32, Type.INT64, Type.FLOAT64, Type.BOOLEAN, Type.STRING}


def is_natural(schema: Schema) -> bool:
    """Return whether JSON has values of that type that pyarrow either reads correctly or rejects."""
    if schema.type is Type.STRUCT:
        return all(is_natural(field.schema) for field in schema.fields)
    if schema.type is Type.ARRAY and schema.value_schema is not None:
        return is_natural(schema.value_schema)
    return schema.name is None and schema.type in _NATURAL


def parse_json(texts: Any, expected: Any) -> Any:
    """Return the JSON objects of an array of bytes as structs: fields in ``expected`` get their types, others are
    inferred.

    Raises :class:`UncertainReadingError` unless each text is one object.
    """
    try:
        rows = _parsed(texts, expected)
    except pa.ArrowException as error:
        raise UncertainReadingError from error
    if not kinds.is_struct(rows.type) or rows.null_count:
        raise UncertainReadingError
    return rows


def _parsed(texts: Any, expected: Any) -> Any:
    # pyarrow takes all the texts as one stream. Each begins and ends like an object and none has a byte that ends the
    # stream, so one that ends within a value makes the next a mistake, and each is one object at least. If there are
    # as many objects as texts, each is exactly one.
    texts = _trimmed(texts)
    data: Any = pc.binary_join_element_wise(texts, b"\n", b"").buffers()[2]
    if _ENDING in data.to_pybytes():
        raise UncertainReadingError
    source: Any = pa.BufferReader(data)
    parsed: Any = arrow_json.read_json(
        source,
        read_options=arrow_json.ReadOptions(use_threads=False, block_size=data.size + 1),
        parse_options=arrow_json.ParseOptions(
            explicit_schema=None if expected is None else pa.schema(list(expected)), unexpected_field_behavior="infer"
        ),
    )
    if parsed.num_rows != len(texts):
        raise UncertainReadingError
    rows = parsed.to_struct_array().combine_chunks()
    rows.validate(full=True)  # pyarrow accepts text that is not UTF-8
    return rows


def _trimmed(texts: Any) -> Any:
    """Return the texts without white space at their ends; raise unless each begins and ends like an object."""
    if not pc.all(pc.starts_with(texts, "{")).as_py():
        raise UncertainReadingError
    if pc.all(pc.ends_with(texts, "}")).as_py():
        return texts
    trimmed = pc.ascii_rtrim(texts.view(pa.string()), " \t\r\n").view(pa.binary())
    if not pc.all(pc.ends_with(trimmed, "}")).as_py():
        raise UncertainReadingError
    return trimmed


def select(array: Any, schema: Schema) -> Any:
    """Return the array with only the fields of ``schema``, in the types that represent theirs.

    Raises :class:`UncertainReadingError` for floats that may stand for a whole number they cannot represent exactly.
    """
    if schema.type is Type.STRUCT:
        return _select_struct(array, schema)
    if schema.type is Type.ARRAY:
        assert schema.value_schema is not None
        items = select(array.flatten(), schema.value_schema)
        mask = array.is_null() if array.null_count else None
        return pa.ListArray.from_arrays(list_offsets(array), items, type=arrow_type(schema), mask=mask)
    if schema.type is Type.FLOAT64:
        _check_floats(array)
    wanted = arrow_type(schema)
    return array if array.type.equals(wanted) else array.cast(wanted)


def _select_struct(array: Any, schema: Schema) -> Any:
    wanted: Any = arrow_type(schema)
    if not schema.fields:
        return pa.array([{}] * len(array), wanted)
    children = [select(array.field(field.name), field.schema) for field in schema.fields]
    mask = array.is_null() if array.null_count else None
    return pa.StructArray.from_arrays(children, fields=list(wanted), mask=mask)


def _check_floats(array: Any) -> None:
    extent = pc.min_max(array)
    for name in ("min", "max"):
        end = extent[name].as_py()
        if end is not None and not abs(end) < _EXACT:
            raise UncertainReadingError


def list_offsets(array: Any) -> Any:
    """Return the offsets of an array's lists in its flattened items."""
    if not array.offset and not array.null_count:
        return array.offsets
    lengths = pc.fill_null(pc.list_value_length(array), 0).cast(pa.int64())
    return pa.concat_arrays([pa.array([0], pa.int64()), pc.cumulative_sum(lengths)]).cast(pa.int32())
