"""A look at a target that its driver does not notice, and what a load would write there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from connect.bulk import OffsetRange, TablePreview
from connect.data import Schema, TopicPartition
from connectors.spark.decoding.placement import FOLDER_COLUMN
from connectors.spark.partitioner import Partitioner

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from connectors.spark.loader import Loader

__all__ = ["Peeked", "PeekingTarget", "preview_tables"]


@dataclass(frozen=True, slots=True)
class Peeked:
    """What a target has: the schemas of its tables and of the rows before a query, its offsets, and where it is."""

    tables: Mapping[str, Schema] = field(default_factory=dict)
    records: Mapping[str, Schema] = field(default_factory=dict)
    offsets: Mapping[TopicPartition, int] = field(default_factory=dict)
    partitioner: Partitioner | None = None
    place: str = ""


@runtime_checkable
class PeekingTarget(Protocol):
    """A target that can be looked at while another driver loads into it."""

    def peek(self) -> Peeked:
        """What there is. Nothing is written, and nobody is fenced."""


class _FirstRows:
    """An :class:`~connectors.spark.loader.Output` that keeps the first rows of each table and writes nothing."""

    commits = False

    def __init__(self, most: int) -> None:
        self._most = most
        self.rows: dict[str, list[dict[str, Any]]] = {}

    def write(self, frame: DataFrame, table: str, schema: Schema, attempt: int) -> None:  # noqa: ARG002
        """Bring the first rows of a table here."""
        self.rows[table] = frame.limit(self._most).toArrow().to_pylist()


def preview_tables(
    loader: Loader, ranges: Sequence[OffsetRange], peeked: Peeked, most: int, place: str
) -> Iterator[TablePreview]:
    """What a load of these ranges would write, of each table so many rows."""
    partitioner = peeked.partitioner
    placement = None if partitioner is None else partitioner.placement()
    for _, group in groupby(sorted(ranges), key=lambda item: item.topic):
        wanted, output = list(group), _FirstRows(most)
        loaded = loader.load(wanted, peeked.tables, output, placement, peeked.records)
        for table, schema in loaded.tables.items():
            rows = output.rows[table]
            folders = sorted({folder for row in rows for folder in _folders(partitioner, row, wanted)})
            kept = [{name: value for name, value in row.items() if name != FOLDER_COLUMN} for row in rows]
            yield TablePreview(table, f"{place}/{table}", [folder for folder in folders if folder], schema, kept)


def _folders(partitioner: Partitioner | None, row: Mapping[str, Any], ranges: Sequence[OffsetRange]) -> Iterator[str]:
    """The folders that a row may be in."""
    if partitioner is None:
        return
    if FOLDER_COLUMN in row:
        yield row[FOLDER_COLUMN]
    elif partitioner.columns:
        yield "/".join(f"{name}={_value(row, name)}" for name in partitioner.columns)
    else:
        yield from (partitioner.folder(item.partition, "") for item in ranges)


def _value(row: Mapping[str, Any], name: str) -> Any:
    """The value of a column, or of a field of one."""
    found: Any = row.get(name)
    if name not in row:
        found = row
        for part in name.split("."):
            found = None if found is None else found.get(part)
    return "__HIVE_DEFAULT_PARTITION__" if found is None else found
