"""Folders such as ``year=2013/`` as fields of the rows in them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import unquote

from connect.data import ArrowColumn, Column, Schema, Type, ValueColumn
from connect.errors import DataError
from connect.kits.files.readers.column_type import column_type, inferred_type
from connect.kits.files.readers.options import PartitionFields, ReadingOptions

__all__ = ["Partitions"]

_NULL: Final = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True, slots=True)
class _Value:
    """The value of a folder, and its schema."""

    schema: Schema
    value: Any


class Partitions:
    """The partition fields of one file."""

    def __init__(self, config: ReadingOptions, name: str) -> None:
        self._name = name
        self._values = _values(config, name) if config.partition_fields is not PartitionFields.NONE else {}
        self._schemas: dict[Schema, Schema] = {}

    def added(self, column: Column) -> Column:
        """Return the rows with these fields after their own."""
        if not self._values:
            return column
        if column.schema is None:
            return ValueColumn([self._with_fields(value) for value in column])
        schema = self._schemas.get(column.schema)
        if schema is None:
            schema = self._schemas[column.schema] = self._extended(column.schema)
        if isinstance(column, ArrowColumn):
            return self._added_in_arrow(column, schema)
        fields = {name: each.value for name, each in self._values.items()}
        return ValueColumn([{**value, **fields} for value in column], schema)

    def _with_fields(self, value: Any) -> Any:
        """Return a schemaless value with the fields."""
        if not isinstance(value, dict):
            raise self._refused("fields can be added only to objects, and not all of its rows are objects")
        self._check(value.keys())
        return {**value, **{name: each.value for name, each in self._values.items()}}

    def _extended(self, schema: Schema) -> Schema:
        if schema.type is not Type.STRUCT:
            raise self._refused("fields can be added only to structs, and its rows are not structs")
        self._check(schema.field_names)
        own = {field.name: field.schema for field in schema.fields}
        return schema.replace(fields=own | {name: each.schema for name, each in self._values.items()})

    def _check(self, names: Any) -> None:
        for name in self._values:
            if name in names:
                raise self._refused(f"its rows already have a field {name}")

    def _added_in_arrow(self, column: ArrowColumn, schema: Schema) -> Column:
        import pyarrow as pa  # noqa: PLC0415 - it may be missing

        from connect.data.arrow import arrow_type, to_array  # noqa: PLC0415 - as above

        rows: Any = column.to_arrow()
        length = len(rows)
        added: list[Any] = []
        for each in self._values.values():
            one: Any = to_array([each.value], each.schema)
            added.append(pa.repeat(one[0], length) if each.value is not None else pa.nulls(length, one.type))
        target: Any = arrow_type(schema)
        return ArrowColumn(pa.StructArray.from_arrays([*rows.flatten(), *added], fields=list(target)), schema)

    def _refused(self, reason: str) -> DataError:
        return DataError(
            f"{self._name} lies in folders that stand for {', '.join(self._values)}, but {reason}. Set "
            "partition.fields=none, or exclude the file with 'pattern'."
        )


def _values(config: ReadingOptions, name: str) -> Mapping[str, _Value]:
    found: dict[str, _Value] = {}
    for folder in name.split("/")[:-1]:
        field, equals, text = folder.partition("=")
        if not (field and equals):
            continue
        field = unquote(field)
        if field in found:
            raise DataError(
                f"{name} is in two folders for the field {field}. Rename one, or exclude the file with 'pattern'."
            )
        found[field] = _value(config, name, field, unquote(text))
    return found


def _value(config: ReadingOptions, name: str, field: str, text: str) -> _Value:
    is_null = text in (_NULL, "")
    given = config.column_types.get(field)
    if given is None and config.partition_fields is PartitionFields.INFERRED and not is_null:
        given = inferred_type([text])
    kind = given or column_type("string")
    try:
        return _Value(kind.schema, None if is_null else kind.parse(text))
    except ValueError as error:
        raise DataError(
            f"{name} is in a folder where {field} is {text!r}, which is not of type {kind.name}: {error}. Correct "
            "'types'."
        ) from error
