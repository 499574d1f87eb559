"""Previews a load: shows what it would write to a target, without changing or fencing anything."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

from connect.bulk import OffsetRange, TablePreview
from connect.data import Field, Schema
from connectors.spark.decoding.changes import CHANGE_COLUMN, key_columns
from connectors.spark.decoding.placement import FOLDER_COLUMN
from connectors.spark.partitioner import Partitioner
from connectors.spark.sink.loading.request import LoadRequest
from connectors.spark.sink.tables.upsert import last_changes, without_change
from connectors.spark.sink.target import TargetContents

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from connectors.spark.sink.loading.loader import Loader

__all__ = ["preview_tables"]

_DELETED: Final = "(deleted)"
"""The column that says whether a change deletes its row. No column of a table has such a name."""


class _FirstRows:
    """An :class:`~connectors.spark.sink.loading.request.Output` that keeps first rows of tables, and writes nothing."""

    commits = False

    def __init__(self, most: int) -> None:
        self._most = most
        self.rows: dict[str, list[dict[str, Any]]] = {}

    def write(self, frame: DataFrame, table: str, schema: Schema, attempt: int) -> None:  # noqa: ARG002
        """Collect the first rows of a table; of changes, the last one for each key."""
        wanted = last_changes(frame) if key_columns(schema) else frame
        self.rows[table] = [_shown_row(row) for row in wanted.limit(self._most).toArrow().to_pylist()]


def preview_tables(
    loader: Loader, ranges: Sequence[OffsetRange], peeked: TargetContents, most: int
) -> Iterator[TablePreview]:
    """Yield what a load of these ranges would write, with up to ``most`` rows of each table."""
    partitioner = peeked.partitioner
    placement = None if partitioner is None else partitioner.placement()
    for _, group in groupby(sorted(ranges), key=lambda item: item.topic):
        wanted, output = list(group), _FirstRows(most)
        request = LoadRequest(wanted, peeked.tables, output, placement, peeked.records, limits=peeked.limits)
        (loaded,) = loader.load_topics([request])
        for table, schema in loaded.tables.items():
            rows = output.rows[table]
            folders = sorted({folder for row in rows for folder in _folders(partitioner, row, wanted)})
            kept = [{name: value for name, value in row.items() if name != FOLDER_COLUMN} for row in rows]
            place, columns = peeked.place(table), _shown_columns(schema)
            yield TablePreview(table, place, [folder for folder in folders if folder], columns, kept)


def _shown_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row in the form shown to users; for a change, including whether it deletes its row."""
    found = {name: value for name, value in row.items() if name != CHANGE_COLUMN}
    return found | ({_DELETED: row[CHANGE_COLUMN]["deleted"]} if CHANGE_COLUMN in row else {})


def _shown_columns(schema: Schema) -> Schema:
    """Return the columns of such rows."""
    columns = without_change(schema)
    if schema.field(CHANGE_COLUMN) is None:
        return columns
    deleted = Field(_DELETED, Schema.boolean(optional=True), len(columns.fields))
    return columns.replace(fields=[*columns.fields, deleted])


def _folders(partitioner: Partitioner | None, row: Mapping[str, Any], ranges: Sequence[OffsetRange]) -> Iterator[str]:
    """Yield the folders that a row may go to."""
    if partitioner is None:
        return
    if FOLDER_COLUMN in row:
        yield row[FOLDER_COLUMN]
    elif partitioner.columns:
        yield "/".join(f"{name}={_value(row, name)}" for name in partitioner.columns)
    else:
        yield from (partitioner.folder(item.partition, "") for item in ranges)


def _value(row: Mapping[str, Any], name: str) -> Any:
    """Return the value of a column or nested field."""
    found: Any = row.get(name)
    if name not in row:
        found = row
        for part in name.split("."):
            found = None if found is None else found.get(part)
    return "__HIVE_DEFAULT_PARTITION__" if found is None else found
