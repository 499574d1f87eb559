"""Parquet and ORC files, written by Arrow.

Records with a schema are written as they fill a group of rows. Records without one get the columns that their values
have; their file is written when it ends, because a later record may add a column.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, Final

from connect.data import ArrowColumn, Column, Schema, Type, ValueColumn
from connect.errors import DataError, SchemaError
from connect.kits.files.formats.record_writer import ByteSink

__all__ = ["OrcFormat", "ParquetFormat"]

_GROUP_BYTES: Final = 8 << 20
"""About how many bytes of Arrow's memory a group of rows has."""
_PARQUET_EXTENSIONS: Final = {
    "none": "",
    "gzip": ".gz",
    "snappy": ".snappy",
    "lz4": ".lz4",
    "brotli": ".br",
    "zstd": ".zstd",
}
_MOST_TABLES: Final = 4
_TABLE_BYTES: Final = 500
"""About what a column of a table takes beside its content."""
_MOST_ROWS: Final = 64
_CELL_BYTES: Final = 100
"""About what a Python value takes beside its content."""


@dataclass(frozen=True)
class _ArrowFormat:
    """What both formats have in common."""

    needs_struct: ClassVar[bool] = True
    codec: str = "snappy"

    def writer(self, sink: Callable[[bytes], object], schema: Schema | None, seed: str) -> _TableWriter:  # noqa: ARG002
        """Return the writer of a file."""
        if schema is not None and schema.type is not Type.STRUCT:
            kind = schema.type.value
            raise SchemaError(
                f"{type(self).__name__} has columns, and a value of type {kind} has none: use a converter that makes "
                "structs, wrap values with the transformation HoistField$Value, or use AvroFormat or JsonFormat."
            )
        writer = _TableWriter(lambda layout: self._opened(ByteSink(sink), layout), self._check, schema)
        if schema is not None:
            self._check(_layout(schema))
        return writer

    def _check(self, layout: Any) -> None:
        """Raise :class:`~connect.errors.SchemaError` if files cannot have these columns."""
        if reason := _refusal(self, layout):
            raise SchemaError(f"{type(self).__name__} cannot have these columns: {reason} Use another format.class.")

    def _opened(self, sink: Any, layout: Any) -> Any:
        raise NotImplementedError


@dataclass(frozen=True)
class ParquetFormat(_ArrowFormat):
    """Parquet, with one codec for all columns."""

    @property
    def extension(self) -> str:
        """The end of the names of files, which names the codec."""
        return f"{_PARQUET_EXTENSIONS[self.codec]}.parquet"

    def _opened(self, sink: Any, layout: Any) -> Any:
        import pyarrow.parquet as pq  # noqa: PLC0415 - loaded only where files are written

        codec: Any = self.codec
        return pq.ParquetWriter(sink, layout, compression=codec)


@dataclass(frozen=True)
class OrcFormat(_ArrowFormat):
    """ORC."""

    @property
    def extension(self) -> str:
        """The end of the names of files."""
        return ".orc"

    def _opened(self, sink: Any, layout: Any) -> Any:  # noqa: ARG002
        from pyarrow import orc  # noqa: PLC0415 - loaded only where files are written

        compression: Any = {"none": "uncompressed"}.get(self.codec, self.codec)
        return orc.ORCWriter(sink, compression=compression)


class _TableWriter:
    """Collects tables into groups of rows."""

    def __init__(self, opened: Callable[[Any], Any], check: Callable[[Any], None], schema: Schema | None) -> None:
        self._opened = opened
        self._check = check
        self._schema = schema
        self._layout: Any = None if schema is None else _layout(schema)
        self._writer: Any = None
        self._tables: list[Any] = []
        self._rows: list[Any] = []
        """Values of the schema that are not in a table yet."""
        self.held = 0

    def write(self, column: Column) -> None:
        if isinstance(column, ArrowColumn) and self._are_few(column):
            self._collect(column)
        elif len(column):
            self._tabulate()
            self._append(self._table(column))
        if self._schema is not None and self.held >= _GROUP_BYTES:
            self._write_group()

    def _are_few(self, column: ArrowColumn) -> bool:
        is_ours = self._schema is not None and column.schema is self._schema
        return is_ours and column.has_values and len(column) < _MOST_ROWS

    def _collect(self, column: ArrowColumn) -> None:
        """Keep a few values as they are, as their schema has them: a table of its own would take more of everything."""
        self.held += column.to_arrow().nbytes + _CELL_BYTES * len(column) * len(self._layout)
        self._rows += column.values()
        if len(self._rows) >= _MOST_ROWS:
            self._tabulate()

    def _tabulate(self) -> None:
        """Make a table of the values that are none yet."""
        if self._rows:
            rows, self._rows = self._rows, []
            self._append(self._table(ValueColumn(rows, self._schema)))

    def _append(self, table: Any) -> None:
        self._tables.append(table)
        self.held = sum(table.nbytes + _TABLE_BYTES * table.num_columns for table in self._tables)
        if len(self._tables) >= _MOST_TABLES:
            self._join()

    def close(self) -> None:
        if self._rows or self._tables or self._writer is None:
            self._write_group()
        self._writer.close()

    def _table(self, column: Column) -> Any:
        """Return values as a table; raises :class:`~connect.errors.DataError` if the file cannot hold them."""
        import pyarrow as pa  # noqa: PLC0415 - as above

        array: Any = column.to_arrow()
        if not pa.types.is_struct(array.type):
            raise DataError(
                f"A value of Arrow's type {array.type} has no columns: use a converter that makes structs, or "
                "AvroFormat or JsonFormat."
            )
        rows = pa.RecordBatch.from_struct_array(array)
        if self._schema is not None:
            return pa.Table.from_batches([rows]).cast(self._layout)
        table = pa.Table.from_batches([rows])
        if not table.num_columns:
            raise DataError("A value without any field has no columns.")
        try:
            layouts = [table.schema] if self._layout is None else [self._layout, table.schema]
            layout = pa.unify_schemas(layouts, promote_options="default")
        except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
            raise DataError(
                f"The fields differ in type from those before in the same file: {error} Give the records a schema."
            ) from error
        if layout != self._layout:
            self._check(_without_nulls(layout))
            self._layout = layout
        return table

    def _join(self) -> None:
        """Make one table of those that wait: many small ones take more memory than their content."""
        import pyarrow as pa  # noqa: PLC0415 - as above

        whole = pa.concat_tables([_with_layout(table, self._layout) for table in self._tables]).combine_chunks()
        self._tables = [whole]
        self.held = whole.nbytes + _TABLE_BYTES * whole.num_columns

    def _write_group(self) -> None:
        import pyarrow as pa  # noqa: PLC0415 - as above

        self._tabulate()
        if self._layout is None:
            self._layout = pa.schema([])
        if self._schema is None:
            self._layout = _without_nulls(self._layout)
        if self._writer is None:
            self._writer = self._opened(self._layout)
        tables = [_with_layout(table, self._layout) for table in self._tables]
        self._tables, self.held = [], 0
        if tables:
            whole = pa.concat_tables(tables).combine_chunks()
            self._writer.write(whole)


@lru_cache(maxsize=256)
def _refusal(form: _ArrowFormat, layout: Any) -> str | None:
    """Return why a file cannot have columns; ``None`` if it can. The library says so when they are written."""
    import pyarrow as pa  # noqa: PLC0415 - as above

    try:
        writer = form._opened(ByteSink(len), layout)
        writer.write(layout.empty_table())
        writer.close()
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid, pa.ArrowTypeError) as error:
        return str(error).partition("\n")[0]
    return None


def _without_nulls(layout: Any) -> Any:
    """Return columns in which those that only have nulls so far are texts."""
    import pyarrow as pa  # noqa: PLC0415 - as above

    return pa.schema([field.with_type(pa.string()) if pa.types.is_null(field.type) else field for field in layout])


@lru_cache(maxsize=256)
def _layout(schema: Schema) -> Any:
    from connect.data.arrow import arrow_schema  # noqa: PLC0415 - brings pyarrow

    if not schema.fields:
        raise SchemaError("A struct without any field has no columns for the file: use AvroFormat or JsonFormat.")
    return arrow_schema(_relaxed(schema, below_optional=False))


def _relaxed(schema: Schema, *, below_optional: bool) -> Schema:
    """Return a schema in which what is below an optional part is optional, too.

    Where the part is null, so is what is below it, and Arrow's writers refuse that in a required column.
    """
    optional = schema.optional or below_optional
    fields = {field.name: _relaxed(field.schema, below_optional=optional) for field in schema.fields}
    items = schema.value_schema
    return schema.replace(
        optional=optional,
        fields=fields,
        value_schema=None if items is None else _relaxed(items, below_optional=optional),
    )


def _with_layout(table: Any, layout: Any) -> Any:
    import pyarrow as pa  # noqa: PLC0415 - as above

    if table.schema.equals(layout):
        return table
    columns = [
        table[field.name].cast(field.type) if field.name in table.schema.names else pa.nulls(len(table), field.type)
        for field in layout
    ]
    return pa.table(columns, schema=layout)
