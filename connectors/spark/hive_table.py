"""Describes a table of files for Hive: its columns, its partitions, and how an existing table must change."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote

from connect.data import Schema, Type
from connect.data.logical import DATE_NAME, DECIMAL_NAME, TIME_NAME, TIMESTAMP_NAME
from connect.errors import SchemaError

__all__ = [
    "HiveColumn",
    "HiveTable",
    "changed_columns",
    "hive_table",
    "partition_columns",
    "partition_values",
    "table_name",
]

_NAME: Final = re.compile(r"\w+")
_SIMPLE: Final[Mapping[Type, str]] = {
    Type.BOOLEAN: "boolean",
    Type.INT8: "tinyint",
    Type.INT16: "smallint",
    Type.INT32: "int",
    Type.INT64: "bigint",
    Type.FLOAT32: "float",
    Type.FLOAT64: "double",
    Type.STRING: "string",
    Type.BYTES: "binary",
}
_LOGICAL: Final[Mapping[str | None, str]] = {DATE_NAME: "date", TIMESTAMP_NAME: "timestamp", TIME_NAME: "int"}
_PRECISION: Final = "connect.decimal.precision"


@dataclass(frozen=True, slots=True)
class HiveColumn:
    """A column: its name in lower case, as Hive stores it, and its type."""

    name: str
    type: str


@dataclass(frozen=True, slots=True)
class HiveTable:
    """The columns of the files, and those whose values are the names of folders."""

    columns: Sequence[HiveColumn]
    partitions: Sequence[HiveColumn]


def hive_table(schema: Schema, partitioned_by: Mapping[str, Schema | None]) -> HiveTable:
    """Return the Hive table for this schema, with folders named after these columns; their types are those of fields,
    or string.

    Raises :class:`~connect.errors.SchemaError` if Hive cannot hold it.
    """
    _check_names(schema, "")
    partitions = [
        HiveColumn(name.lower(), "string" if field is None else hive_type(field))
        for name, field in partitioned_by.items()
    ]
    columns = [
        HiveColumn(field.name.lower(), hive_type(field.schema))
        for field in schema.fields
        if partitioned_by.get(field.name) is None
    ]
    for name in (column.name for column in partitions):
        if not _NAME.fullmatch(name):
            raise SchemaError(
                f"Hive cannot have a partition column {name}: only letters, digits and _ are allowed in its name."
            )
        if any(column.name == name for column in columns):
            raise SchemaError(
                f"The records have a field {name}, and there are folders with that name: Hive cannot have "
                "both. Rename the field (ReplaceField), or use another partitioner or path.format."
            )
    return HiveTable(columns, partitions)


def partition_columns(schema: Schema, divided_by: Sequence[str], parts: Sequence[str]) -> dict[str, Schema | None]:
    """Return the columns whose values are the names of folders: fields of records, or parts of other names."""
    if not divided_by:
        return dict.fromkeys(parts)
    fields = {name: schema.field(name) for name in divided_by}
    return {name: None if each is None else each.schema for name, each in fields.items()}


def hive_type(schema: Schema) -> str:
    """Return the type of a column for values of a schema."""
    if schema.name == DECIMAL_NAME:
        return f"decimal({schema.parameters.get(_PRECISION, '38')},{schema.parameters['scale']})"
    if schema.name in _LOGICAL:
        return _LOGICAL[schema.name]
    if schema.type is Type.STRUCT:
        return f"struct<{','.join(f'{field.name.lower()}:{hive_type(field.schema)}' for field in schema.fields)}>"
    if schema.value_schema is None:
        return _SIMPLE[schema.type]
    if schema.key_schema is None:
        return f"array<{hive_type(schema.value_schema)}>"
    return f"map<{hive_type(schema.key_schema)},{hive_type(schema.value_schema)}>"


def changed_columns(there: Sequence[HiveColumn], wanted: Sequence[HiveColumn]) -> list[HiveColumn] | None:
    """Return the columns that a table should have; ``None`` if it has them already.

    New columns come last, types follow those of the files, and columns that only Hive has stay.
    """
    types = {column.name: column.type for column in wanted}
    known = {column.name for column in there}
    changed = [HiveColumn(column.name, types.get(column.name, column.type)) for column in there]
    changed += [column for column in wanted if column.name not in known]
    return None if changed == list(there) else changed


def partition_values(folder: str) -> list[str]:
    """Return the values in the name of a folder: ``EWR`` and ``2013`` of ``origin=EWR/year=2013``."""
    return [unquote(part.partition("=")[2]) for part in folder.split("/")]


def table_name(template: str, table: str) -> str:
    """Return a table's name in Hive."""
    return re.sub(r"\W", "_", template.replace("${topic}", table)).lower()


def _check_names(schema: Schema, path: str) -> None:
    """Reject names that Hive does not allow, and names that are the same to Hive."""
    _check_case(schema.field_names, path)
    for field in schema.fields:
        where = f"{path}.{field.name}" if path else field.name
        if not _NAME.fullmatch(field.name):
            raise SchemaError(
                f"Hive cannot have the field {where}: only letters, digits and _ are allowed in its name. "
                "Rename it (ReplaceField)."
            )
        _check_nested(field.schema, where)


def _check_nested(schema: Schema, path: str) -> None:
    for inner in (schema, schema.key_schema, schema.value_schema):
        if inner is None:
            continue
        if inner.type is Type.STRUCT:
            _check_names(inner, path)
        elif inner is not schema:
            _check_nested(inner, path)


def _check_case(names: Iterable[str], path: str) -> None:
    names = list(names)
    for name, count in Counter(name.lower() for name in names).items():
        if count > 1:
            alike = ", ".join(each for each in names if each.lower() == name)
            where = f" of {path}" if path else ""
            raise SchemaError(
                f"Hive ignores case and cannot distinguish the fields {alike}{where}: rename one (ReplaceField)."
            )
