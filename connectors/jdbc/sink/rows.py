"""Rows made from records, in groups that are written together."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from typing import Final

from connect.data import Schema, SinkBatch, SinkRecord
from connect.errors import ConnectError, DataError
from connectors.jdbc.dialects.column import TableId
from connectors.jdbc.sink.config import JdbcSinkConfig
from connectors.jdbc.sink.layout import Layout, key_layout, row_layout
from connectors.jdbc.sink.routing import Routing
from connectors.jdbc.sink.tables import PreparedTable
from connectors.jdbc.sink.write_plan import Row, isolate

__all__ = ["ErrantRecord", "Group", "RowMaker"]

_LAYOUTS: Final = 1000

Prepare = Callable[[TableId, Layout], PreparedTable]


@dataclass(frozen=True, slots=True)
class ErrantRecord:
    """A record that cannot be written, and the reason."""

    record: SinkRecord
    error: Exception


@dataclass(slots=True)
class Group:
    """Consecutive rows of one table: those to write, with one layout, and those to delete, by the same key.

    ``batches`` are the batches of the rows, one row for each record.
    """

    table: TableId
    written: PreparedTable | None = None
    deleted: PreparedTable | None = None
    rows: list[Row] = field(default_factory=list)
    deletes: list[bool] = field(default_factory=list)
    batches: list[SinkBatch] = field(default_factory=list)
    _starts: list[int] = field(default_factory=list)

    def add(self, batch: SinkBatch, rows: Sequence[Row], *, delete: bool) -> None:
        """Add the rows of a batch."""
        self._starts.append(len(self.rows))
        self.batches.append(batch)
        self.rows += rows
        self.deletes += [delete] * len(rows)

    def record(self, place: int) -> SinkRecord:
        """Return the record of a row."""
        index = bisect_right(self._starts, place) - 1
        batch = self.batches[index]
        at = place - self._starts[index]
        return next(iter(batch.slice(at, at + 1)))


class RowMaker:
    """Converts batches to groups of rows, and collects records that cannot be converted in ``errant``."""

    def __init__(self, config: JdbcSinkConfig, routing: Routing, prepare: Prepare, *, arrays: bool) -> None:
        self._config = config
        self._routing = routing
        self._prepare = prepare
        self._row_layout = lru_cache(_LAYOUTS)(lambda key, value: row_layout(config, key, value, arrays=arrays))
        self._key_layout = lru_cache(_LAYOUTS)(lambda key: key_layout(config, key))
        self.errant: list[ErrantRecord] = []

    def groups(self, batches: Sequence[SinkBatch]) -> list[Group]:
        """Yield the groups to write in order. Rows of one table keep their order."""
        self.errant = []
        groups: list[Group] = []
        current: dict[TableId, Group] = {}
        for batch in batches:
            for table, part in self._routed(batch):
                for run, delete in self._runs(part):
                    self._add(groups, current, table, run, delete=delete)
        return [group for group in groups if group.rows]

    def _routed(self, batch: SinkBatch) -> Sequence[tuple[TableId, SinkBatch]]:
        """Yield the tables of a batch with their records."""
        try:
            routes = list(self._routing.tables(batch))
        except DataError:
            good = self._each(batch, lambda part: list(self._routing.tables(part)))
            if good is None:
                return []
            batch, routes = good, list(self._routing.tables(good))
        return [(table, batch if indices is None else batch.take(indices)) for table, indices in routes]

    def _runs(self, batch: SinkBatch) -> list[tuple[SinkBatch, bool]]:
        """Split a batch into runs of records that are all written, or all deleted."""
        values = batch.value
        if batch.value_schema is not None and not batch.value_schema.optional:
            return [(batch, False)]
        empty = [value is None for value in values]
        if not any(empty):
            return [(batch, False)]
        if all(empty):
            return [(batch, True)]
        edges = [0, *(place for place in range(1, len(empty)) if empty[place] != empty[place - 1]), len(empty)]
        return [(batch.slice(start, stop), empty[start]) for start, stop in pairwise(edges)]

    def _add(
        self, groups: list[Group], current: dict[TableId, Group], table: TableId, batch: SinkBatch, *, delete: bool
    ) -> None:
        try:
            prepared = self._prepared(table, batch.key_schema, batch.value_schema, delete=delete)
        except DataError as error:
            self.errant += [ErrantRecord(record, error) for record in batch]
            return
        group = current.get(table)
        if group is None or not _joins(group, prepared, delete=delete):
            group = current[table] = Group(table)
            groups.append(group)
        if delete:
            group.deleted = prepared
        else:
            group.written = prepared
        try:
            group.add(batch, _rows(prepared, batch), delete=delete)
        except ConnectError:
            raise
        except Exception:
            good = self._each(batch, lambda part: _rows(prepared, part))
            if good is not None:
                group.add(good, _rows(prepared, good), delete=delete)

    def _prepared(
        self, table: TableId, key_schema: Schema | None, value_schema: Schema | None, *, delete: bool
    ) -> PreparedTable:
        if not delete:
            return self._prepare(table, self._row_layout(key_schema, value_schema))
        if not self._config.delete_enabled:
            raise DataError(
                "The record has no value to write. Set delete.enabled=true to delete its row, or drop such records "
                "with a transformation."
            )
        return self._prepare(table, self._key_layout(key_schema))

    def _each(self, batch: SinkBatch, attempt: Callable[[SinkBatch], object]) -> SinkBatch | None:
        """Return the records that can be processed, if any; the others are errant."""
        bad: dict[int, Exception] = {}
        bad.update(isolate(len(batch), lambda start, stop: _ignored(attempt(batch.slice(start, stop))), _always))
        self.errant += [
            ErrantRecord(next(iter(batch.slice(place, place + 1))), _data_error(error)) for place, error in bad.items()
        ]
        kept = [place for place in range(len(batch)) if place not in bad]
        return batch.take(kept) if kept else None


def _joins(group: Group, prepared: PreparedTable, *, delete: bool) -> bool:
    mine = group.deleted if delete else group.written
    return mine is None or mine is prepared


def _rows(prepared: PreparedTable, batch: SinkBatch) -> list[Row]:
    cells = []
    for column, encode in zip(prepared.layout.columns, prepared.encoders, strict=True):
        try:
            cells.append(encode(column.read(batch)))
        except Exception as error:
            raise _UnfitError(f"Column {column.name}: {error}") from error
    return list(zip(*cells, strict=True))


class _UnfitError(Exception):
    """A value that does not fit its column."""


def _data_error(error: Exception) -> DataError:
    return error if isinstance(error, DataError) else DataError(str(error) or type(error).__name__)


def _always(error: Exception) -> bool:
    return not isinstance(error, ConnectError) or isinstance(error, DataError)


def _ignored(_result: object) -> None:
    pass
