"""Decoded records on their way into the columns of a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import pyarrow as pa

from connect.data import Column, Schema, Type, ValueColumn
from connect.data.arrow import conform, to_array
from connect.errors import DataError, SchemaError
from connectors.spark.decoding.inference import as_row, infer_rows, prune
from connectors.spark.decoding.report import Report
from connectors.spark.schema import VALUE_COLUMN, in_common, table_schema, widen_where_possible
from connectors.spark.types import table_type

__all__ = ["KEY_COLUMN", "Rows"]

KEY_COLUMN: Final = "key"
_EMPTY: Final = Schema.struct({})


@dataclass(frozen=True, slots=True)
class Rows:
    """Records that go to one table: values of one schema, keys of one schema if the table has them, offsets."""

    table: str
    value: Column
    key: Column | None
    offsets: Any

    def survey(self, report: Report) -> None:
        """Note the schema these rows show."""
        report.seen[self.table] = in_common(report.seen.get(self.table, _EMPTY), self._schema())

    def fit(self, table: Schema, report: Report, *, may_grow: bool) -> pa.RecordBatch | None:
        """The rows in the columns of the table; records that do not fit are rejected.

        With ``may_grow``, ``None`` if the table would hold more of these rows with a wider schema.
        """
        if may_grow and self._has_schemas() and widen_where_possible(table, self._schema()) is not table:
            return None
        try:
            array = self._array(table, report.untyped)
        except DataError:
            if may_grow and widen_where_possible(table, self._schema()) is not table:
                return None
            array = self._one_by_one(table, report)
        return table_type(table).record_batch(array)

    def _has_schemas(self) -> bool:
        return self.value.schema is not None and (self.key is None or self.key.schema is not None)

    def _schema(self) -> Schema:
        """The schema of a table for these rows alone."""
        seen = _schema_shown(self.value)
        if self.key is None:
            return seen
        if seen.field(KEY_COLUMN) is not None:
            raise SchemaError(
                f"The values have a field {KEY_COLUMN}, and with store.kafka.keys=true the records' keys have a column "
                "of that name: rename the field (ReplaceField), or leave the keys out."
            )
        key = _schema_shown(_wrapped(self.key))
        return Schema.struct([*key.fields, *seen.fields])

    def _array(self, table: Schema, untyped: set[str]) -> Any:
        if self.key is None:
            return _struct_array(self.value, table, untyped)
        key_part, value_part = _parts(table)
        keys = _struct_array(_wrapped(self.key), key_part, untyped)
        values = _struct_array(self.value, value_part, untyped)
        names = [*key_part.field_names, *value_part.field_names]
        together = pa.StructArray.from_arrays([*keys.flatten(), *values.flatten()], names)
        return conform(together, table)

    def _one_by_one(self, table: Schema, report: Report) -> Any:
        arrays: list[Any] = [to_array([], table)]
        for index, offset in enumerate(self.offsets.to_pylist()):
            key = None if self.key is None else self.key.take([index])
            row = Rows(self.table, self.value.take([index]), key, self.offsets.slice(index, 1))
            try:
                arrays.append(row._array(table, report.untyped))
            except DataError as error:
                report.reject(offset, error)
        return pa.concat_arrays(arrays)


def _schema_shown(values: Column) -> Schema:
    if values.schema is not None:
        return _table_schema(values.schema)
    return infer_rows([as_row(value) for value in values if value is not None])


_table_schema = lru_cache(maxsize=256)(table_schema)


@lru_cache(maxsize=64)
def _parts(table: Schema) -> tuple[Schema, Schema]:
    """The table's key column and its others, as two tables."""
    keys = [field for field in table.fields if field.name == KEY_COLUMN]
    others = [field for field in table.fields if field.name != KEY_COLUMN]
    return Schema.struct(keys), Schema.struct(others)


def _wrapped(keys: Column) -> Column:
    """Keys as rows of a table with the key column alone."""
    rows: list[Mapping[str, Any]] = [{KEY_COLUMN: key} for key in keys]
    if keys.schema is None:
        return ValueColumn(rows)
    return ValueColumn(rows, Schema.struct({KEY_COLUMN: keys.schema}))


def _struct_array(values: Column, table: Schema, untyped: set[str]) -> Any:
    """The values as rows of the table, an array of structs; a value that is null is a row of nulls."""
    if values.schema is None:
        return _schemaless_array(values, table, untyped)
    array: Any = values.to_arrow()
    if values.schema.type is not Type.STRUCT:
        array = pa.StructArray.from_arrays([array], [VALUE_COLUMN])
    if array.null_count:
        array = pa.StructArray.from_arrays(array.flatten(), fields=list(array.type))
    return conform(array, table)


def _schemaless_array(values: Column, table: Schema, untyped: set[str]) -> Any:
    rows = [{} if value is None else as_row(value) for value in values]
    try:
        return to_array(rows, table)
    except DataError:
        return to_array([prune(row, table, untyped) for row in rows], table)
