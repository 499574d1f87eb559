"""Applies changes to a table: the last one for each key, merged by a single Spark statement.

Within a load, the last change of a key counts, ordered by topic partition and then by offset. So changes of one key
belong in one partition, which is where a producer that partitions by key puts them.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from connect.data import Field, Schema
from connectors.spark.decoding.changes import CHANGE_COLUMN, change_schema, key_columns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = [
    "keys_property",
    "keys_text",
    "last_changes",
    "merge_statement",
    "parse_keys",
    "quoted",
    "with_change",
    "with_key_of",
    "without_change",
]

_PLACE: Final = "_sluice_place"
_UNKNOWN: Final = Schema.struct({"deleted": Schema.boolean(optional=True)}, optional=True)


def keys_property(connector: str) -> str:
    """Return the key of the table property that names the columns by which a connector's changes find rows."""
    return f"sluice.keys.{connector}"


def keys_text(keys: Sequence[str]) -> str:
    """Return the value of :func:`keys_property`."""
    return json.dumps(list(keys))


def parse_keys(text: str | None) -> tuple[str, ...]:
    """Return the columns in the value of :func:`keys_property`; none if somebody has made another text of it."""
    try:
        found = json.loads(text or "[]")
    except ValueError:
        return ()
    return tuple(found) if isinstance(found, list) and all(isinstance(name, str) for name in found) else ()


def with_change(table: Schema, seen: Schema | None, keys: Sequence[str] = ()) -> Schema:
    """Return the schema of changes for a table; ``seen`` is that of the last changes, if there were any, and ``keys``
    are the columns by which rows were found before.

    Without both the key is unknown and no change fits: the records are then surveyed for the schema of changes.
    """
    known = None if seen is None else seen.field(CHANGE_COLUMN)
    columns = {field.name: field.schema for field in table.fields}
    if known is not None:
        change = known.schema
    elif keys and columns.keys() >= set(keys):
        change = change_schema({name: columns[name] for name in keys})
    else:
        change = _UNKNOWN
    return table.replace(fields=[*table.fields, Field(CHANGE_COLUMN, change, len(table.fields))])


def with_key_of(known: Schema, grown: Schema) -> Schema:
    """Return a grown schema of changes with the key columns that were known, if they were: rows are found by these."""
    change, names = grown.field(CHANGE_COLUMN), key_columns(known)
    if change is None or not names or key_columns(grown) == names:
        return grown
    columns = {field.name: field.schema for field in grown.fields}
    fields = [
        Field(each.name, change_schema({name: columns[name] for name in names}), each.index) if each is change else each
        for each in grown.fields
    ]
    return grown.replace(fields=fields)


def without_change(schema: Schema) -> Schema:
    """Return the schema of the table to which changes of this schema apply."""
    return schema.replace(fields=[field for field in schema.fields if field.name != CHANGE_COLUMN])


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
