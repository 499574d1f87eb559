"""Parses JSON texts with pyarrow, carefully: they are not one stream, and pyarrow is less strict than orjson."""

from __future__ import annotations

from functools import lru_cache
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
_STEP: Final = 4096
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
    # pyarrow takes all the texts as one stream. So each is wrapped in its own object with its number: the numbers
    # reveal texts that were no JSON value or more than one.
    data: Any = pc.binary_join_element_wise(_openings(len(texts)), texts, b"}\n", b"").buffers()[2]
    source: Any = pa.BufferReader(data)
    explicit = [pa.field("i", pa.int64())] + ([] if expected is None else [pa.field("v", expected)])
    parsed: Any = arrow_json.read_json(
        source,
        read_options=arrow_json.ReadOptions(use_threads=False, block_size=data.size + 1),
        parse_options=arrow_json.ParseOptions(explicit_schema=pa.schema(explicit), unexpected_field_behavior="infer"),
    )
    numbers = parsed["i"].combine_chunks()
    if parsed.column_names != ["i", "v"] or not numbers.equals(_numbers(len(texts))):
        raise UncertainReadingError
    rows = parsed["v"].combine_chunks()
    rows.validate(full=True)  # pyarrow accepts text that is not UTF-8
    return rows


def _openings(length: int) -> Any:
    return _all_openings(-(-length // _STEP) * _STEP).slice(0, length)


def _numbers(length: int) -> Any:
    return _all_numbers(-(-length // _STEP) * _STEP).slice(0, length)


# Batches of records vary in length.
@lru_cache(maxsize=8)
def _all_openings(length: int) -> Any:
    return pa.array([b'{"i":%d,"v":' % number for number in range(length)], pa.binary())


@lru_cache(maxsize=8)
def _all_numbers(length: int) -> Any:
    return pa.array(range(length), pa.int64())


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
