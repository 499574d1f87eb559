"""The limits that a target sets to columns, for executors: a record with a column beyond them is a bad one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from connect.data import Schema, Type
from connect.errors import SchemaError
from connectors.spark.formats import FileFormat, make_format
from connectors.spark.hive_table import hive_table, partition_columns
from connectors.spark.options.layout import LayoutOptions
from connectors.spark.partitioner import Partitioner, check_parts, make_partitioner

__all__ = ["UNWIDENED", "file_limits", "table_limits"]

UNWIDENED: Final[Mapping[str, frozenset[tuple[Type, Type]]]] = {
    "parquet": frozenset({(Type.BYTES, Type.BYTES)}),
    "iceberg": frozenset(
        (integer, fraction)
        for integer in (Type.INT8, Type.INT16, Type.INT32)
        for fraction in (Type.FLOAT32, Type.FLOAT64)
    ),
    "delta": frozenset({(Type.INT8, Type.FLOAT32), (Type.INT16, Type.FLOAT32)}),
}
"""The types that columns of tables in a format keep, each with the wider one that records may have; those of bytes are
decimals with more digits.
"""


_METADATA: Final = ("_file", "_pos", "_deleted", "_spec_id", "_partition", "_row_id", "_last_updated_sequence_number")
"""The names of Iceberg's own columns: Spark reads no table that has another column of that name."""
_NAMED_AT_ONCE: Final = ("s3", "azure")
"""The kinds of stores in which Spark gives folders their final names."""


@dataclass(frozen=True, slots=True)
class _ColumnLimits:
    """What the folders of a table, the files in them, and its catalog can hold."""

    partitioner: Partitioner
    format: FileFormat | None
    reserved: Sequence[str] = ()
    divided_by: Sequence[str] | None = None
    """The fields that name folders for Hive, if tables are registered there; the others are parts of folders."""
    named: bool = False

    def __call__(self, columns: Schema) -> None:
        """Raise :class:`~connect.errors.SchemaError` for columns that they cannot hold."""
        self.partitioner.check_fields(columns)
        if self.format is not None:
            named = self.partitioner.columns
            self.format.check(Schema.struct([item for item in columns.fields if item.name not in named]))
        for name in columns.field_names:
            if name in self.reserved:
                raise SchemaError(f"Iceberg has a column {name} of its own: rename the field (ReplaceField).")
        if self.named:
            check_parts(self.partitioner, columns)
        if self.divided_by is not None:
            hive_table(columns, partition_columns(columns, self.divided_by, self.partitioner.parts or ()))


def table_limits(layout: LayoutOptions, table_format: str) -> Callable[[Schema], None]:
    """Return what checks the columns of records for tables that have a log or a catalog of their own."""
    return _ColumnLimits(make_partitioner(layout), None, _METADATA if table_format == "iceberg" else ())


def file_limits(layout: LayoutOptions, store: str, *, in_hive: bool) -> Callable[[Schema], None]:
    """Return what checks the columns of records for files in a kind of store, which Hive may know as tables."""
    divided_by = layout.partition_field_name if layout.partitioner == "FieldPartitioner" else ()
    named = store in _NAMED_AT_ONCE
    return _ColumnLimits(make_partitioner(layout), make_format(layout), (), divided_by if in_hive else None, named)
