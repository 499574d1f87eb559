"""Conversions between values and text and among values, by the rules of Kafka Connect's ``Values``.

Like Kafka Connect's, these rules are lenient in places: :func:`parse_string` of ``1,2`` is 1, and
:func:`convert_to_int8` of 300 is 44. The SimpleHeaderConverter and InsertHeader use :func:`parse_exactly` and
:func:`parse_literal`, which leave such text as it is. Use :func:`connect.data.validate` for strict checks.
"""

from connect.data.values.convert import (
    convert_to_boolean,
    convert_to_date,
    convert_to_decimal,
    convert_to_float32,
    convert_to_float64,
    convert_to_int8,
    convert_to_int16,
    convert_to_int32,
    convert_to_int64,
    convert_to_list,
    convert_to_map,
    convert_to_struct,
    convert_to_time,
    convert_to_timestamp,
)
from connect.data.values.format import convert_to_string, escape
from connect.data.values.infer import infer_schema
from connect.data.values.parse import parse_exactly, parse_literal, parse_string

__all__ = [
    "convert_to_boolean",
    "convert_to_date",
    "convert_to_decimal",
    "convert_to_float32",
    "convert_to_float64",
    "convert_to_int8",
    "convert_to_int16",
    "convert_to_int32",
    "convert_to_int64",
    "convert_to_list",
    "convert_to_map",
    "convert_to_string",
    "convert_to_struct",
    "convert_to_time",
    "convert_to_timestamp",
    "escape",
    "infer_schema",
    "parse_exactly",
    "parse_literal",
    "parse_string",
]
