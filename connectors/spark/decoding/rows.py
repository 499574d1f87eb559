"""Fits decoded records into the columns of a table, and finds the columns for their fields."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final

import pyarrow as pa

from connect.data import ArrowColumn, Column, Schema, Type, ValueColumn
from connect.data.arrow import arrow_type, conform, to_array
from connect.data.logical import LOGICAL_NAMES
from connect.errors import DataError, SchemaError
from connectors.spark.arrow_types import table_type
from connectors.spark.decoding.inference import as_row, infer_rows, inferred, prune
from connectors.spark.decoding.json_text import list_offsets
from connectors.spark.decoding.report import Report
from connectors.spark.schema import VALUE_COLUMN, Evolution, in_common, table_schema

__all__ = ["Fitted", "Rows", "is_in_place", "place_array", "place_value"]

_EMPTY: Final = Schema.struct({})


@dataclass(frozen=True, slots=True)
class Rows:
    """Records that go to one table: values of one schema, the columns beside them by name, offsets, and timestamps if
    anything needs them.
    """

    table: str
    value: Column
    kafka_columns: tuple[tuple[str, Column], ...]
    offsets: Any
    timestamps: Any = None
    evolution: Evolution = Evolution()  # noqa: RUF009 - it never changes

    def survey(self, report: Report) -> None:
        """Note the schema these rows show."""
        seen, shows = self._shown(report)
        if shows:
            before = report.seen.get(self.table, _EMPTY)
            report.seen[self.table] = in_common(before, seen, branches=self.evolution.branches)

    def fit(self, table: Schema, report: Report, *, may_grow: bool) -> Fitted | None:
        """Return the rows in the columns of the table; records that do not fit are rejected.

        With ``may_grow``, the result is ``None`` if the table would hold more of these rows with a wider schema.
        """
        if may_grow and self._has_schemas() and self._grows(table):
            return None
        try:
            self._check_names()
            array = self._array(table, report)
        except DataError:
            if may_grow and self._grows(table):
                return None
            return self._one_by_one(table, report)
        return Fitted(table_type(table).record_batch(array), self.offsets, self.timestamps)

    def _has_schemas(self) -> bool:
        return all(column.schema is not None for column in (self.value, *dict(self.kafka_columns).values()))

    def _grows(self, table: Schema) -> bool:
        """Return whether the table would hold more of these rows with a wider schema."""
        seen, shows = self._shown(None)
        return shows and self.evolution.grown(table, seen) is not table

    def _shown(self, report: Report | None) -> tuple[Schema, bool]:
        """Return the schema of a table for those rows that a table can hold, and whether there are any; the others are
        rejected, if there is a report.
        """
        try:
            return self._schema(), True
        except DataError:
            seen, shows = _EMPTY, False
        for index, offset in enumerate(self.offsets.to_pylist()):
            try:
                alone = self._row(index)._schema()
            except DataError as error:
                if report is not None:
                    report.reject(offset, error)
            else:
                seen, shows = in_common(seen, alone, branches=self.evolution.branches), True
        return seen, shows

    def _check_names(self) -> None:
        """Raise :class:`~connect.errors.SchemaError` for a field whose name a Kafka column has taken."""
        taken = {self.evolution.key(name): name for name, _ in self.kafka_columns}
        if not taken:
            return
        for field, shown in _fields_of(self.value):
            name = taken.get(self.evolution.key(field))
            if name is not None and (shown is None or inferred(shown) is not None):
                raise SchemaError(
                    f"The values have a field {field}, but the table uses the column name {name} for data from Kafka: "
                    "set another column name (store.kafka.*.column), or rename the field (ReplaceField)."
                )

    def _schema(self) -> Schema:
        """Return the schema of a table for these rows alone, which a table can have."""
        self._check_names()
        seen = _schema_shown(self.value, self.evolution)
        table_type(seen)
        if self.evolution.refuses is not None:
            self.evolution.refuses(seen)
        if not self.kafka_columns:
            return seen
        fields = [
            field
            for name, column in self.kafka_columns
            for field in _schema_shown(_wrapped(name, column), self.evolution).fields
        ]
        return Schema.struct([*fields, *seen.fields])

    def _array(self, table: Schema, report: Report) -> Any:
        if not self.kafka_columns:
            return _struct_array(self.value, table, self.evolution, report)
        names = tuple(name for name, _ in self.kafka_columns)
        kafka_columns, values = _parts(table, names)
        parts = [
            _struct_array(_wrapped(name, column), part, self.evolution, report)
            for (name, column), part in zip(self.kafka_columns, kafka_columns, strict=True)
        ]
        arrays = [*parts, _struct_array(self.value, values, self.evolution, report)]
        labels = [name for part in (*kafka_columns, values) for name in part.field_names]
        together = pa.StructArray.from_arrays([child for array in arrays for child in array.flatten()], labels)
        return conform(together, table)

    def _reason(self, table: Schema) -> DataError | None:
        """Return why no table could hold these rows beside those of this one, if that is so."""
        try:
            seen = self._schema()
        except DataError as error:
            return error
        if self.evolution.folds and (kept := self.evolution.without_twins(table, seen)) is not seen:
            return SchemaError(
                f"The target cannot distinguish {_twins(table, seen, kept)}, because their names differ only in the "
                "case of letters: rename one (ReplaceField)."
            )
        return None

    def _row(self, index: int) -> Rows:
        kafka_columns = tuple((name, column.take([index])) for name, column in self.kafka_columns)
        offsets = self.offsets.slice(index, 1)
        return replace(self, value=self.value.take([index]), kafka_columns=kafka_columns, offsets=offsets)

    def _one_by_one(self, table: Schema, report: Report) -> Fitted:
        arrays: list[Any] = [to_array([], table)]
        fitting: list[int] = []
        for index, offset in enumerate(self.offsets.to_pylist()):
            row = self._row(index)
            try:
                row._check_names()
                arrays.append(row._array(table, report))
            except DataError as error:
                report.reject(offset, row._reason(table) or error)
            else:
                fitting.append(index)
        kept = pa.array(fitting, pa.int64())
        timestamps = None if self.timestamps is None else self.timestamps.take(kept)
        return Fitted(table_type(table).record_batch(pa.concat_arrays(arrays)), self.offsets.take(kept), timestamps)


@dataclass(frozen=True, slots=True)
class Fitted:
    """Rows in the columns of their table, with the offsets of their records, and their timestamps if needed."""

    rows: pa.RecordBatch
    offsets: Any
    timestamps: Any

    def without(self, indices: Container[int]) -> Fitted:
        """Return the other rows."""
        kept = pa.array([index for index in range(len(self.rows)) if index not in indices], pa.int64())
        timestamps = None if self.timestamps is None else self.timestamps.take(kept)
        return Fitted(self.rows.take(kept), self.offsets.take(kept), timestamps)


def _twins(table: Schema, seen: Schema, kept: Schema) -> str:
    """Name two fields, or a column and a field, that a target takes for one."""
    for name in seen.field_names:
        if kept.field(name) is None:
            both = {other for other in (*table.field_names, *seen.field_names) if other.lower() == name.lower()}
            return f"the fields {', '.join(sorted(both))}"
    return "fields of a struct"


def _fields_of(values: Column) -> Iterator[tuple[str, Any]]:
    """Yield the names of the columns that values have, with what they hold if they have no schema."""
    if values.schema is not None:
        yield from ((name, None) for name in _table_schema(values.schema).field_names)
        return
    for row in (as_row(value) for value in values if value is not None):
        yield from ((name, item) for name, item in row.items() if item is not None and isinstance(name, str))


def _schema_shown(values: Column, evolution: Evolution) -> Schema:
    if values.schema is not None:
        return _table_schema(values.schema)
    return infer_rows([as_row(value) for value in values if value is not None], branches=evolution.branches)


_table_schema = lru_cache(maxsize=256)(table_schema)


@lru_cache(maxsize=64)
def _parts(table: Schema, names: tuple[str, ...]) -> tuple[tuple[Schema, ...], Schema]:
    """Return the table's columns of these names, each as a table (without columns if it does not exist yet), and its
    others.
    """
    kafka_columns = tuple(Schema.struct([field for field in table.fields if field.name == name]) for name in names)
    return kafka_columns, Schema.struct([field for field in table.fields if field.name not in names])


def _wrapped(name: str, column: Column) -> Column:
    """Values as rows of a table with one column."""
    if isinstance(column, ArrowColumn) and column.schema is not None:
        schema = Schema.struct({name: column.schema})
        data_type: Any = arrow_type(schema)
        return ArrowColumn(pa.StructArray.from_arrays([column.to_arrow()], fields=list(data_type)), schema)
    rows: list[Mapping[str, Any]] = [{name: value} for value in column]
    if column.schema is None:
        return ValueColumn(rows)
    return ValueColumn(rows, Schema.struct({name: column.schema}))


def _struct_array(values: Column, table: Schema, evolution: Evolution, report: Report) -> Any:
    """Return the values as rows of the table, an array of structs; a null value is a row of nulls."""
    if values.schema is None:
        return _schemaless_array(values, table, evolution, report)
    array: Any = values.to_arrow()
    if values.schema.type is not Type.STRUCT:
        array = pa.StructArray.from_arrays([array], [VALUE_COLUMN])
    if array.null_count:
        array = pa.StructArray.from_arrays(array.flatten(), fields=list(array.type))
    seen = _table_schema(values.schema)
    if not is_in_place(seen, table, evolution):
        array = place_array(array, seen, table, evolution, report.unknown)
    return conform(array, table)


def _schemaless_array(values: Column, table: Schema, evolution: Evolution, report: Report) -> Any:
    rows = [{} if value is None else as_row(value) for value in values]
    try:
        return to_array(rows, table)
    except DataError:
        pass
    pruned = [prune(row, table, report.untyped) for row in rows]
    if evolution.branches or not evolution.adds:
        pruned = [place_value(row, table, evolution, report.unknown) for row in pruned]
    return to_array(pruned, table)


@lru_cache(maxsize=256)
def is_in_place(seen: Schema, table: Schema, evolution: Evolution) -> bool:
    """Return whether every field of ``seen`` has the column of its name."""
    if _is_struct(seen) and _is_struct(table):
        for field in seen.fields:
            name = evolution.column_of(field.name, field.schema, table)
            column = table.field(field.name)
            if name != field.name or (column and not is_in_place(field.schema, column.schema, evolution)):
                return False
    elif seen.type is table.type is Type.ARRAY and seen.value_schema is not None and table.value_schema is not None:
        return is_in_place(seen.value_schema, table.value_schema, evolution)
    return True


def place_array(
    array: Any, seen: Schema, table: Schema, evolution: Evolution, left_out: set[str], path: str = ""
) -> Any:
    """Return an array of type ``seen`` with its fields renamed to their columns.

    The paths of fields without a column are added to ``left_out``.
    """
    if is_in_place(seen, table, evolution):
        return array
    mask = array.is_null() if array.null_count else None
    if not _is_struct(seen):
        assert seen.value_schema is not None
        assert table.value_schema is not None
        items = place_array(array.flatten(), seen.value_schema, table.value_schema, evolution, left_out, f"{path}[]")
        return pa.ListArray.from_arrays(list_offsets(array), items, mask=mask)
    placed: dict[str, Any] = {}
    for field in seen.fields:
        where = f"{path}.{field.name}" if path else field.name
        name = evolution.column_of(field.name, field.schema, table)
        if name is None:
            left_out.add(where)
            continue
        _check_free(placed, name, where)
        child, column = array.field(field.name), table.field(name)
        if column is not None:
            child = place_array(child, field.schema, column.schema, evolution, left_out, where)
        placed[name] = child
    if not placed:
        return pa.array([None if item is None else {} for item in array.to_pylist()], pa.struct([]))
    return pa.StructArray.from_arrays(list(placed.values()), list(placed), mask=mask)


def place_value(value: Any, table: Schema, evolution: Evolution, left_out: set[str], path: str = "") -> Any:
    """Like :func:`place_array`, for a value without a schema."""
    if _is_struct(table) and isinstance(value, Mapping):
        placed: dict[str, Any] = {}
        for field, item in value.items():
            where = f"{path}.{field}" if path else field
            name = _column_of(field, item, table, evolution)
            if name is None:
                left_out.add(where)
                continue
            _check_free(placed, name, where)
            column = table.field(name)
            placed[name] = place_value(item, column.schema, evolution, left_out, where) if column else item
        return placed
    if table.type is Type.ARRAY and table.value_schema is not None and isinstance(value, list):
        return [place_value(item, table.value_schema, evolution, left_out, f"{path}[]") for item in value]
    return value


def _column_of(name: str, item: Any, table: Schema, evolution: Evolution) -> str | None:
    column = table.field(name)
    if column is None:
        return name if evolution.adds else None
    if not evolution.branches or _fits(item, column.schema):
        return name
    try:
        seen = inferred(item)
    except DataError:
        return name
    return name if seen is None else evolution.column_of(name, seen, table)


def _fits(item: Any, column: Schema) -> bool:
    try:
        to_array([item], column)
    except DataError:
        return False
    return True


def _check_free(placed: Mapping[str, Any], name: str, path: str) -> None:
    if name in placed:
        raise DataError(f'Field "{path}" belongs in column "{name}", but the record also has a field with that name.')


def _is_struct(schema: Schema) -> bool:
    return schema.type is Type.STRUCT and schema.name not in LOGICAL_NAMES
