"""Applies changes to a table: the last one for each key, merged by a single Spark statement.

Within a load, the last change of a key counts, ordered by topic partition and then by offset. So changes of one key
belong in one partition, which is where a producer that partitions by key puts them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from connect.data import Field, Schema
from connectors.spark.decoding.changes import CHANGE_COLUMN

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["key_columns", "last_changes", "merge_statement", "quoted", "with_change", "without_change"]

_PLACE: Final = "_sluice_place"
_UNKNOWN: Final = Schema.struct({"deleted": Schema.boolean(optional=True)}, optional=True)


def with_change(table: Schema, seen: Schema | None) -> Schema:
    """Return the schema of changes for a table; ``seen`` is that of the last changes, if there were any.

    Without ``seen`` the key is unknown and no change fits: the records are then surveyed for the schema of changes.
    """
    known = None if seen is None else seen.field(CHANGE_COLUMN)
    change = Field(CHANGE_COLUMN, _UNKNOWN if known is None else known.schema, len(table.fields))
    return table.replace(fields=[*table.fields, change])


def without_change(schema: Schema) -> Schema:
    """Return the schema of the table to which changes of this schema apply."""
    return schema.replace(fields=[field for field in schema.fields if field.name != CHANGE_COLUMN])


def key_columns(schema: Schema) -> tuple[str, ...]:
    """Return the key columns in the schema of changes; none if the key is not known yet."""
    change = schema.field(CHANGE_COLUMN)
    key = None if change is None else change.schema.field("key")
    return () if key is None else key.schema.field_names


def last_changes(frame: DataFrame) -> DataFrame:
    """Return the last change of each key."""
    newest = f"{CHANGE_COLUMN}.partition DESC, {CHANGE_COLUMN}.offset DESC"
    place = f"row_number() OVER (PARTITION BY {CHANGE_COLUMN}.key ORDER BY {newest}) AS {_PLACE}"
    return frame.selectExpr("*", place).where(f"{_PLACE} = 1").drop(_PLACE)


def merge_statement(target: str, source: str, schema: Schema, *, evolve: bool) -> str:
    """Return the statement that merges changes of a schema, one for each key, into a table.

    ``target`` and ``source`` are names in SQL. With ``evolve``, the statement adds the columns that the table lacks.
    """
    names = [quoted(name) for name in without_change(schema).field_names]
    keys = [quoted(name) for name in key_columns(schema)]
    found = " AND ".join(f"t.{key} = s.{CHANGE_COLUMN}.key.{key}" for key in keys)
    assignments = ", ".join(f"{name} = s.{name}" for name in names)
    values = ", ".join(f"s.{name}" for name in names)
    steps = (
        f"MERGE {'WITH SCHEMA EVOLUTION ' if evolve else ''}INTO {target} AS t USING {source} AS s ON {found}",
        f"WHEN MATCHED AND s.{CHANGE_COLUMN}.deleted THEN DELETE",
        f"WHEN MATCHED THEN UPDATE SET {assignments}",
        f"WHEN NOT MATCHED AND NOT s.{CHANGE_COLUMN}.deleted THEN INSERT ({', '.join(names)}) VALUES ({values})",  # noqa: S608
    )
    return " ".join(steps)


def quoted(name: str) -> str:
    """Return a name quoted for SQL."""
    return "`" + name.replace("`", "``") + "`"
