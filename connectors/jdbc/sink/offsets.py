"""The offsets of ``delivery=exactly-once``: a table of the database, written in the transaction of the rows.

Each row holds the next offset of a partition, and the id of its topic: an offset says nothing about a later topic of
the same name. A transaction changes it only if it still has the value that the task
knows: if another task has written the partition meanwhile, nothing changes and the rows are rolled back.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from connect.data import TopicPartition
from connect.kits.sql.column import TableId
from connect.kits.sql.writer import Writer, run

if TYPE_CHECKING:
    from sqlalchemy import Connection

__all__ = ["OffsetsTable", "OvertakenError", "StoredOffset"]

_log = logging.getLogger(__name__)
_MOST_CHARACTERS: Final = 255
_TOPIC_ID: Final = "topic_id"


class OvertakenError(Exception):
    """Another task has written records of a partition: its offset is not the one that this task knows."""

    def __init__(self, partition: TopicPartition) -> None:
        super().__init__(f"Another task has written records of {partition.topic}-{partition.partition}")
        self.partition = partition


@dataclass(frozen=True, slots=True)
class StoredOffset:
    """The next offset of a partition, and the id of its topic if that was known when it was written."""

    offset: int
    topic_id: str | None = None


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
        self._topic_id = quote(_TOPIC_ID)
        self._has_ids = True
        self._where = " AND ".join(f"{name} = {mark}" for name in self._keys)
        self._mark = mark

    def create(self, connection: Connection) -> None:
        """Create the table if it is missing. One that was made without topic ids goes on without them."""
        found = self._writer.dialect.resolve(connection, self._id)
        if found is None:
            connection.rollback()
            connection.begin()
            connector, topic, partition = self._keys
            run(
                connection,
                f"CREATE TABLE IF NOT EXISTS {self._table} ({connector} VARCHAR({_MOST_CHARACTERS}) NOT NULL, "
                f"{topic} VARCHAR({_MOST_CHARACTERS}) NOT NULL, {partition} INTEGER NOT NULL, "
                f"{self._offset} BIGINT NOT NULL, {self._topic_id} VARCHAR({_MOST_CHARACTERS}), "
                f"PRIMARY KEY ({', '.join(self._keys)})){self._writer.table_options}",
            )
        else:
            names = {column.name for column in self._writer.dialect.columns(connection, found)}
            self._has_ids = _TOPIC_ID in names
            if not self._has_ids:
                _log.info(
                    "Table %s has no column %s: if a topic is deleted and created again while the connector is "
                    "stopped, its first records are taken for those of the former topic. To store the ids of topics, "
                    "add it: ALTER TABLE %s ADD %s VARCHAR(%d).",
                    *(self._id, _TOPIC_ID, self._table, self._topic_id, _MOST_CHARACTERS),
                )
        connection.commit()

    def read(self, connection: Connection, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, StoredOffset]:
        """Return the next offset of each partition that has one."""
        found = {}
        columns = f"{self._offset}, {self._topic_id}" if self._has_ids else f"{self._offset}, NULL"
        for partition in partitions:
            sql = f"SELECT {columns} FROM {self._table} WHERE {self._where}"
            row = self._run(connection, sql, *self._of(partition)).first()
            if row is not None:
                found[partition] = StoredOffset(int(row[0]), row[1])
        connection.commit()
        return found

    def advance(
        self,
        connection: Connection,
        known: Mapping[TopicPartition, int],
        ends: Mapping[TopicPartition, int],
        ids: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Advance to ``ends`` from ``known`` offsets, of topics with these ``ids``.

        Raises :class:`OvertakenError` if the stored offsets differ.
        """
        for partition, end in sorted(ends.items()):
            marks = [ids[partition.topic]] if self._has_ids and partition.topic in ids else []
            if partition not in known:
                places = ", ".join([self._mark] * (4 + len(marks)))
                columns = ", ".join([*self._keys, self._offset, *[self._topic_id] * len(marks)])
                sql = f"INSERT INTO {self._table} ({columns}) VALUES ({places})"
                try:
                    self._run(connection, sql, *self._of(partition), end, *marks)
                except Exception as error:
                    if self._writer.blames_row(getattr(error, "orig", None) or error):
                        raise OvertakenError(partition) from error
                    raise
            elif known[partition] != end:
                is_mark = f"{self._offset} = {self._mark}"
                changes = ", ".join([is_mark, *[f"{self._topic_id} = {self._mark}"] * len(marks)])
                sql = f"UPDATE {self._table} SET {changes} WHERE {self._where} AND {is_mark}"
                if self._run(connection, sql, end, *marks, *self._of(partition), known[partition]).rowcount != 1:
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
    if len(name) <= _MOST_CHARACTERS:
        return name
    mark = hashlib.sha256(name.encode()).hexdigest()[:32]
    return f"{name[: _MOST_CHARACTERS - len(mark) - 1]}-{mark}"
