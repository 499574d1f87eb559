"""The offsets of ``delivery=exactly-once``: a table of the database, written in the transaction of the rows.

Each row holds the next offset of a partition. A transaction changes it only if it still has the value that the task
knows: if another task has written the partition meanwhile, nothing changes and the rows are rolled back.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from connect.data import TopicPartition
from connectors.jdbc.dialects.column import TableId
from connectors.jdbc.sink.writers.writer import Writer, run

if TYPE_CHECKING:
    from sqlalchemy import Connection

__all__ = ["OffsetsTable", "OvertakenError"]

_LONGEST: Final = 255


class OvertakenError(Exception):
    """Another task has written records of a partition: its offset is not the one that this task knows."""

    def __init__(self, partition: TopicPartition) -> None:
        super().__init__(f"Another task has written records of {partition.topic}-{partition.partition}")
        self.partition = partition


class OffsetsTable:
    """The offsets of one connector."""

    def __init__(self, table: TableId, connector: str, writer: Writer) -> None:
        self._writer = writer
        self._table = writer.dialect.quoted(table)
        self._id = table
        self._connector = _short(connector)
        quote, mark = writer.dialect.quote, writer.dialect.placeholder
        self._keys = [quote(name) for name in ("connector", "topic", "kafka_partition")]
        self._offset = quote("next_offset")
        self._where = " AND ".join(f"{name} = {mark}" for name in self._keys)
        self._mark = mark

    def create(self, connection: Connection) -> None:
        """Create the table if it is missing."""
        if self._writer.dialect.resolve(connection, self._id) is None:
            connection.rollback()
            connection.begin()
            connector, topic, partition = self._keys
            run(
                connection,
                f"CREATE TABLE IF NOT EXISTS {self._table} ({connector} VARCHAR({_LONGEST}) NOT NULL, "
                f"{topic} VARCHAR({_LONGEST}) NOT NULL, {partition} INTEGER NOT NULL, {self._offset} BIGINT NOT NULL, "
                f"PRIMARY KEY ({', '.join(self._keys)})){self._writer.table_options}",
            )
        connection.commit()

    def read(self, connection: Connection, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the next offset of each partition that has one."""
        found = {}
        for partition in partitions:
            sql = f"SELECT {self._offset} FROM {self._table} WHERE {self._where}"
            offset = self._run(connection, sql, *self._of(partition)).scalar()
            if offset is not None:
                found[partition] = int(offset)
        connection.commit()
        return found

    def advance(
        self, connection: Connection, known: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]
    ) -> None:
        """Advance to ``ends`` from ``known`` offsets. Raises :class:`OvertakenError` if the stored ones differ."""
        for partition, end in sorted(ends.items()):
            if partition not in known:
                places = ", ".join([self._mark] * 4)
                columns = ", ".join([*self._keys, self._offset])
                sql = f"INSERT INTO {self._table} ({columns}) VALUES ({places})"
                try:
                    self._run(connection, sql, *self._of(partition), end)
                except Exception as error:
                    if self._writer.blames_row(getattr(error, "orig", None) or error):
                        raise OvertakenError(partition) from error
                    raise
            elif known[partition] != end:
                is_mark = f"{self._offset} = {self._mark}"
                sql = f"UPDATE {self._table} SET {is_mark} WHERE {self._where} AND {is_mark}"
                if self._run(connection, sql, end, *self._of(partition), known[partition]).rowcount != 1:
                    raise OvertakenError(partition)

    def alter(self, connection: Connection, offsets: Mapping[TopicPartition, int | None]) -> None:
        """Set offsets; ``None`` deletes one."""
        for partition, offset in offsets.items():
            self._run(connection, f"DELETE FROM {self._table} WHERE {self._where}", *self._of(partition))
            if offset is not None:
                self.advance(connection, {}, {partition: offset})
        connection.commit()

    def _of(self, partition: TopicPartition) -> tuple[str, str, int]:
        return self._connector, partition.topic, partition.partition

    def _run(self, connection: Connection, sql: str, *parameters: Any) -> Any:
        return connection.exec_driver_sql(sql, parameters)


def _short(name: str) -> str:
    """Return the name of a connector, cut to fit, with a hash of the rest if necessary."""
    if len(name) <= _LONGEST:
        return name
    mark = hashlib.sha256(name.encode()).hexdigest()[:32]
    return f"{name[: _LONGEST - len(mark) - 1]}-{mark}"
