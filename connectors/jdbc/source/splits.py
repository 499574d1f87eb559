"""Splits of tables: those with new rows, divided into ranges of numbers if there are many rows."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

from connect.kits.sql.column import TableId
from connect.source import SPLIT_OF, OffsetStorageReader
from connectors.jdbc.source.config import JdbcSourceConfig, Mode
from connectors.jdbc.source.offsets import Position, partitions_of_table
from connectors.jdbc.source.reader import incrementing_column
from connectors.jdbc.source.tables import shares

__all__ = ["TableSplits", "ranges"]

_A_RANGE: Final = 50_000
"""The fewest numbers that are worth a split of their own."""


@dataclass(frozen=True, slots=True)
class _News:
    """The new numbers in a table: after ``after``, up to ``last``."""

    table: TableId
    after: int
    last: int


class TableSplits:
    """Divides the tables of a connector into splits. Used by the connector's thread alone.

    With ``mode=incrementing`` tables without new rows are left out, and one with many new rows, such as in a first
    snapshot, is divided by ranges of the incrementing column; in other modes only reading tells what is new.
    """

    def __init__(
        self,
        config: JdbcSourceConfig,
        offsets: OffsetStorageReader,
        wait: Callable[[float], bool],
        *,
        a_range: int = _A_RANGE,
    ) -> None:
        self._config = config
        self._offsets = offsets
        self._a_range = a_range
        self._database = config.database(wait, config.type_options, reads=True)

    def next(self, sizes: Mapping[TableId, int], max_splits: int) -> list[dict[str, str]]:
        """Return the keys that each split adds to the connector's configuration."""
        positions = self._positions(sizes)
        if self._config.mode is not Mode.INCREMENTING:
            return [_of_tables(share) for share in shares(sizes, max_splits)]
        with self._database.errors("look for new rows"):
            news = [each for table in sizes if (each := self._news(table, positions[table])) is not None]
            self._database.close()
        large = [each for each in news if each.last - each.after >= 2 * self._a_range]
        small = {each.table: sizes[each.table] for each in news if each not in large}
        room = (max_splits - bool(small)) // max(1, len(large))
        if room < 2:
            return [_of_tables(share) for share in shares({each.table: sizes[each.table] for each in news}, max_splits)]
        divided = [split for each in large for split in self._divided(each, room)]
        return [*divided, *(_of_tables(share) for share in shares(small, max_splits - len(divided)))]

    def close(self) -> None:
        """Close the connection."""
        self._database.dispose()

    def _positions(self, tables: Mapping[TableId, int]) -> dict[TableId, Position]:
        """Return where each table was read to, with a single request for all of them."""
        database = self._database.address.database
        named = {table: partitions_of_table(table, database) for table in tables}
        every = [partition for partitions in named.values() for partition in partitions]
        kept = iter(self._offsets.offsets(every) if every else ())
        found = {table: [next(kept) for _ in partitions] for table, partitions in named.items()}
        return {table: Position.from_offset(next(filter(None, each), None)) for table, each in found.items()}

    def _news(self, table: TableId, position: Position) -> _News | None:
        connection, dialect = self._database.connection(), self._database.dialect
        columns = dialect.columns(connection, table)
        if not columns:
            return None
        name = dialect.escaped(dialect.quote(incrementing_column(self._config, table, columns)))
        after = -1 if position.incrementing is None else position.incrementing
        source = dialect.escaped(dialect.quoted(table))
        statement = f"SELECT min({name}), max({name}) FROM {source} WHERE {name} > {dialect.placeholder}"  # noqa: S608 - quoted
        first, last = connection.exec_driver_sql(statement, (after,)).one()
        return None if last is None else _News(table, max(after, int(first) - 1), int(last))

    def _divided(self, news: _News, room: int) -> Iterator[dict[str, str]]:
        count = min(room, (news.last - news.after) // self._a_range)
        for after, last in ranges(news.after, news.last, count):
            yield {
                **_of_tables([news.table]),
                "split.after": str(after),
                "split.last": str(last),
                SPLIT_OF: str(news.table),
            }


def ranges(after: int, last: int, count: int) -> list[tuple[int, int]]:
    """Divide the numbers after ``after`` up to ``last`` into ranges of about the same length, in order."""
    span = last - after
    ends = [after + span * number // count for number in range(count + 1)]
    return list(pairwise(ends))


def _of_tables(tables: Sequence[TableId]) -> dict[str, Any]:
    return {"tables": json.dumps([[table.name, table.schema, table.catalog] for table in tables])}
