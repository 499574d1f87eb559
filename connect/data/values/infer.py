"""Schema inference for single values, by Kafka Connect's rules."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from connect.data.numerals import INT64_MAX, INT64_MIN
from connect.data.schema import Schema
from connect.errors import DataError

__all__ = ["infer_schema"]


def infer_schema(value: Any) -> Schema | None:
    """Return the schema of a value, or ``None`` if the value alone does not determine one.

    Python's numbers have no width, so they are int64 and float64. As in Kafka Connect, empty or mixed arrays and maps
    have no schema, and neither have decimals, dates and times. Raises :class:`~connect.errors.DataError` if the value
    is nested too deeply.
    """
    try:
        return _inferred(value)
    except RecursionError as error:
        raise DataError(f"The {type(value).__name__} is nested too deeply to infer a schema.") from error


def _inferred(value: Any) -> Schema | None:
    schema: Schema | None = None
    match value:
        case bool():
            schema = Schema.boolean()
        case int():
            schema = Schema.int64() if INT64_MIN <= value <= INT64_MAX else None
        case float():
            schema = Schema.float64()
        case str():
            schema = Schema.string()
        case bytes() | bytearray() | memoryview():
            schema = Schema.bytes()
        case Mapping():
            key, element = _common_schema(value.keys()), _common_schema(value.values())
            schema = Schema.map(key, element) if key is not None and element is not None else None
        case Sequence():
            element = _common_schema(value)
            schema = element and Schema.array(element)
    return schema


def _common_schema(values: Iterable[Any]) -> Schema | None:
    """Return the schema of all the values, optional if one of them is null."""
    nulls = False
    common: Schema | None = None
    for value in values:
        if value is None:
            nulls = True
            continue
        schema = _inferred(value)
        if schema is None or (common is not None and schema is not common):
            return None
        common = schema
    return common.as_optional() if common is not None and nulls else common
