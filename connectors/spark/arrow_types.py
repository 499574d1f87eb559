"""The Arrow types of table columns, as Spark accepts them.

They are those of :mod:`connect.data.arrow`, except that a timestamp counts microseconds, and a time of day is an
``int32`` of milliseconds since midnight: Spark has no type for it that every Parquet reader knows.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import pyarrow as pa
from pyarrow import types as kinds

from connect.data import Schema, Type
from connect.data.arrow import arrow_type
from connect.data.logical import LOGICAL_NAMES, TIME_NAME, TIMESTAMP_NAME
from connect.errors import SchemaError

__all__ = ["TableType", "table_type"]

_LOGICAL: Final[dict[str | None, Any]] = {TIMESTAMP_NAME: pa.timestamp("us", tz="UTC"), TIME_NAME: pa.int32()}


@dataclass(frozen=True, slots=True)
class TableType:
    """The columns of a table in Arrow."""

    columns: pa.Schema

    def record_batch(self, rows: Any) -> pa.RecordBatch:
        """Convert the rows of a struct array to a batch of these columns."""
        arrays = [
            array if array.type.equals(column.type) else array.cast(column.type)
            for array, column in zip(rows.flatten(), self.columns, strict=True)
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self.columns)


@lru_cache(maxsize=64)
def table_type(table: Schema) -> TableType:
    """Return the columns of a table; raise :class:`~connect.errors.SchemaError` if Spark lacks a type."""
    return TableType(pa.schema([_field(field.name, field.schema) for field in table.fields]))


def _field(name: str, schema: Schema, path: str = "", *, nullable: bool = True) -> Any:
    """Return a column or nested field; ``path`` locates it in errors."""
    return pa.field(name, _type(path or name, schema), nullable)


def _type(path: str, schema: Schema) -> Any:
    if schema.name in LOGICAL_NAMES:
        return _logical_type(path, schema)
    if schema.type is Type.STRUCT:
        if not schema.fields:
            raise SchemaError(
                f"Column {path} is a struct without fields, which table files cannot hold: give it a field, or "
                "drop it (ReplaceField)."
            )
        return pa.struct([_field(field.name, field.schema, f"{path}.{field.name}") for field in schema.fields])
    if schema.value_schema is None:
        return arrow_type(schema)
    if schema.key_schema is None:
        return pa.list_(_field("element", schema.value_schema, f"{path}[]"))
    key = _field("key", schema.key_schema, f"{path}.key", nullable=False)
    return pa.map_(key, _field("value", schema.value_schema, f"{path}.value"))


def _logical_type(name: str, schema: Schema) -> Any:
    data_type = _LOGICAL.get(schema.name) or arrow_type(schema)
    if kinds.is_decimal256(data_type):
        raise SchemaError(
            f"Column {name} is a decimal with more than 38 digits, the most that Spark supports: cast it, or "
            "give its schema a smaller precision (parameter connect.decimal.precision)."
        )
    return data_type
