"""Rows made from records, in groups that are written together."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import groupby, pairwise
from operator import itemgetter
from typing import Final

from connect.data import Column, Schema, SinkBatch, SinkRecord
from connect.errors import ConnectError, DataError
from connect.kits.sql.column import TableId
from connect.kits.sql.writer import Reached, Row
from connectors.jdbc.sink.config import JdbcSinkConfig
from connectors.jdbc.sink.layout import Layout, key_layout, row_layout
from connectors.jdbc.sink.routing import Routing
from connectors.jdbc.sink.tables import PreparedTable
from connectors.jdbc.sink.write_plan import isolate

__all__ = ["ErrantRecord", "Group", "RowMaker"]

_LAYOUTS: Final = 1000
_NOTHING: Final = frozenset[Hashable]()

Prepare = Callable[[TableId, Layout], PreparedTable]
Reach = Callable[[TableId], Reached]
"""Tells what the rows of a table may concern."""


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

    @property
    def prepared(self) -> tuple[PreparedTable, ...]:
        """The table as it is written to and deleted from."""
        return tuple(each for each in (self.written, self.deleted) if each is not None)

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
    """Converts batches to groups of rows, and collects records that cannot be converted in ``errant``.

    ``has_unfit`` tells whether there are some among them whose values do not fit the columns as they are known.
    """

    def __init__(
        self, config: JdbcSinkConfig, routing: Routing, prepare: Prepare, reached: Reach, *, arrays: bool
    ) -> None:
        self._config = config
        self._reached = reached
        self._routing = routing
        self._prepare = prepare
        self._row_layout = lru_cache(_LAYOUTS)(lambda key, value: row_layout(config, key, value, arrays=arrays))
        self._key_layout = lru_cache(_LAYOUTS)(lambda key: key_layout(config, key))
        self.errant: list[ErrantRecord] = []
        self.has_unfit = False

    def groups(self, batches: Sequence[SinkBatch], *, exact: bool = False) -> list[Group]:
        """Return the groups to write in order.

        Rows of one table keep their order, and so do rows of tables that depend on others; ``exact`` means that all do.
        """
        self.errant, self.has_unfit = [], False
        groups: list[Group] = []
        current: dict[TableId, Group] = {}
        for batch in batches:
            for table, part in self._routed(batch, exact=exact):
                for run, delete in self._runs(part):
                    self._add(groups, current, table, run, delete=delete, exact=exact)
        return [group for group in groups if group.rows]

    def _routed(self, batch: SinkBatch, *, exact: bool) -> Sequence[tuple[TableId, SinkBatch]]:
        """Return the tables of a batch with their records; those that depend on each other alternate as they do."""
        try:
            routes = list(self._routing.tables(batch))
        except DataError:
            good = self._each(batch, lambda part: list(self._routing.tables(part)))
            if good is None:
                return []
            batch, routes = good, list(self._routing.tables(good))
        tied = self._dependent([table for table, _ in routes], exact=exact) if routes[1:] else set()
        if tied:
            alone = [(table, places) for table, places in routes if table not in tied]
            routes = alone + list(_alternating((table, places) for table, places in routes if table in tied))
        return [(table, batch if places is None else batch.take(places)) for table, places in routes]

    def _dependent(self, tables: Sequence[TableId], *, exact: bool) -> set[TableId]:
        """Return the tables that depend on others among them, in either direction."""
        if exact:
            return set(tables)
        reached = [(table, found) for table in tables if (found := self._reached(table)) is None or found]
        if any(found is None for _, found in reached):
            return {table for table, _ in reached} if reached[1:] else set()
        times = Counter(each for _, found in reached for each in found or ())
        return {table for table, found in reached if any(times[each] > 1 for each in found or ())}

    def _depend(self, one: TableId, other: TableId) -> bool:
        """Return whether the order of rows of two tables may matter: they concern the same table."""
        first, second = self._reached(one), self._reached(other)
        if first is None or second is None:
            return _NOTHING not in (first, second)
        return not first.isdisjoint(second)

    def _runs(self, batch: SinkBatch) -> list[tuple[SinkBatch, bool]]:
        """Split a batch into runs of records that are all written, or all deleted."""
        if batch.value_schema is not None and not batch.value_schema.optional:
            return [(batch, False)]
        if not batch.value.has_nulls():
            return [(batch, False)]
        empty = [value is None for value in batch.value]
        if all(empty):
            return [(batch, True)]
        edges = [0, *(place for place in range(1, len(empty)) if empty[place] != empty[place - 1]), len(empty)]
        return [(batch.slice(start, stop), empty[start]) for start, stop in pairwise(edges)]

    def _add(
        self,
        groups: list[Group],
        current: dict[TableId, Group],
        table: TableId,
        batch: SinkBatch,
        *,
        delete: bool,
        exact: bool,
    ) -> None:
        try:
            prepared = self._prepared(table, batch.key_schema, batch.value_schema, delete=delete)
        except DataError as error:
            self.errant += [ErrantRecord(record, error) for record in batch]
            return
        if exact or self._reached(table) != _NOTHING:
            # Rows of other tables that come later are written after these.
            for other in [other for other in current if other != table and (exact or self._depend(table, other))]:
                del current[other]
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
            self.has_unfit = True
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


def _alternating(
    routes: Iterable[tuple[TableId, Sequence[int] | None]],
) -> Iterator[tuple[TableId, Sequence[int] | None]]:
    """Yield the tables of each run of adjacent records, in their order."""
    places = sorted((place, table) for table, places in routes for place in places or ())
    for table, run in groupby(places, key=itemgetter(1)):
        yield table, [place for place, _ in run]


def _joins(group: Group, prepared: PreparedTable, *, delete: bool) -> bool:
    mine = group.deleted if delete else group.written
    return mine is None or mine is prepared


def _rows(prepared: PreparedTable, batch: SinkBatch) -> list[Row]:
    cells = []
    for place, (column, encode) in enumerate(zip(prepared.layout.columns, prepared.encoders, strict=True)):
        try:
            values = column.read(batch)
            # The cells of keys are compared with each other: all are made of Python's values.
            if place < prepared.layout.key_size and isinstance(values, Column):
                values = values.values()
            cells.append(encode(values))
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
