"""The JDBC source: rows of tables, or of a query, become records."""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Final

from connect.data import Offset, SourceBatch, SourceRecord
from connect.errors import ConnectError, RetriableError
from connect.kits.sql.column import TableId
from connect.kits.sql.connection import Database
from connect.source import ExactlyOnceSupport, SourceConnector, SourceTask
from connectors.jdbc.checks import CheckedSourceConfig
from connectors.jdbc.source.config import Isolation, JdbcTaskConfig, Mode
from connectors.jdbc.source.monitor import TableMonitor
from connectors.jdbc.source.offsets import Position, partitions_of_table, query_partition
from connectors.jdbc.source.reader import Polled, TableReader
from connectors.jdbc.source.splits import TableSplits
from connectors.jdbc.source.tables import shares

__all__ = ["JdbcSourceConnector", "JdbcSourceTask"]

_LONGEST_WAIT_SECONDS: Final = 1.0
_RETRY_SECONDS: Final = 1.0


class JdbcSourceTask(SourceTask[JdbcTaskConfig]):
    """Polls its tables in turn.

    Crash points: the rows after the last committed offset are read again. With an incrementing column that is exact;
    with a timestamp alone, rows with the same time as the last one come again, and with ``mode=bulk`` all rows do.
    """

    def start(self) -> None:
        self._database: Database | None = None
        self._failure: Exception | None = None
        self._drained = False
        self._rounds = 0
        self._readers: deque[TableReader] = deque()
        config = self.config
        isolation = config.transaction_isolation_mode
        self._database = config.database(
            self.context.wait,
            config.type_options,
            reads=True,
            isolation=None if isolation is Isolation.DEFAULT else isolation.value.replace("_", " "),
        )
        tables: Sequence[TableId | None] = [None] if config.statement else config.table_ids(self._database.dialect)
        self._readers.extend(self._reader(self._database, table) for table in tables)

    def poll(self) -> SourceBatch | None:
        self._drained = False
        if self._failure is not None:
            raise self._failure
        if self._has_ended_round():
            self._drained = True
            return None
        reader = min(self._readers, key=_order, default=None)
        wait = 1.0 if reader is None else reader.due - time.monotonic()
        if reader is None or (not reader.is_reading and wait > 0):
            self._drained = self._rounds > 0 or not self._readers
            self.context.wait(min(wait, _LONGEST_WAIT_SECONDS))
            return None
        polled = self._polled(reader)
        if not reader.is_reading:
            # The other tables come first: those that are due have waited longer.
            self._readers.remove(reader)
            self._readers.append(reader)
        return None if polled is None else self._reported(polled)

    def drained(self) -> bool:
        """Return whether every table was read to the end that it had when it was checked."""
        return self._drained

    def stop(self) -> None:
        database, self._database = getattr(self, "_database", None), None
        if database is not None:
            self._begin_again()
            database.dispose()

    def _has_ended_round(self) -> bool:
        """Return whether every table has been read to its end since the last time; a poll in between returns
        nothing.
        """
        rounds = min((each.passes for each in self._readers), default=0)
        ended, self._rounds = rounds > self._rounds, max(rounds, self._rounds)
        return ended

    def _reader(self, database: Database, table: TableId | None) -> TableReader:
        partitions = [query_partition()] if table is None else partitions_of_table(table, database.address.database)
        kept = self.context.offset_storage_reader.offsets(partitions)
        partition, offset = next(
            ((partition, offset) for partition, offset in zip(partitions, kept, strict=True) if offset),
            (partitions[0], None),
        )
        if "protocol" not in partition and table is not None:
            # Read offsets in any form, write them in the current one, as the Java connector does.
            partition = partitions[0]
        position = Position.from_offset(offset)
        return TableReader(self.config, database, table, partition, position, self.context.pass_offset)

    def _polled(self, reader: TableReader) -> Polled | None:
        assert self._database is not None
        try:
            with self._database.errors(f"read {reader.name}"):
                return reader.poll()
        except RetriableError as error:
            self._begin_again()
            reader.failures += 1
            if 0 <= self.config.query_retry_attempts < reader.failures:
                raise ConnectError(f"{error} (retried query.retry.attempts={reader.failures - 1} times)") from error
            raise RetriableError(str(error), retry_after=_RETRY_SECONDS) from error
        except ConnectError:
            self._begin_again()
            raise

    def _begin_again(self) -> None:
        """Reset the readers: the connection is gone or about to be, and with it the results being read."""
        for each in self._readers:
            each.reset()

    def _reported(self, polled: Polled) -> SourceBatch:
        """Report the rows that cannot be read. If that fails the task, publish the rows before them first."""
        for row, offset in polled.unfit:
            record = SourceRecord(polled.batch.topic, row.text, source_partition=polled.partition, source_offset=offset)
            try:
                self.context.errant_record_reporter.report(record, row.error)
            except Exception as error:
                self._failure = error
                return polled.before(row)
        return polled.batch


class JdbcSourceConnector(SourceConnector[CheckedSourceConfig]):
    """Reads tables of SQL databases, or a query: all rows, or new and changed ones."""

    task_class = JdbcSourceTask

    def start(self) -> None:
        self._splits: TableSplits | None = None
        self._monitor: TableMonitor | None = None
        # The list of tables may change; a query does not.
        self.watches = not self.config.statement
        if self.watches:
            self._monitor = TableMonitor(self.config, self.context)
            self._monitor.start()

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        """Return configs of tasks that share the tables by size; none as long as there are no tables."""
        props = {key: value for key, value in self.config.originals.items() if value is not None}
        if self._monitor is None:
            return [props]
        sizes = self._monitor.sizes(self.config.table_monitoring_startup_polling_limit_ms / 1000)
        return [
            {**props, "tables": json.dumps([[table.name, table.schema, table.catalog] for table in share])}
            for share in shares(sizes, max_tasks)
        ]

    def splits(self, max_splits: int) -> Sequence[Mapping[str, str]]:
        """Return the tables with new rows, in ranges if there are many; a query is one split."""
        props = {key: value for key, value in self.config.originals.items() if value is not None}
        if self._monitor is None:
            # So that the task of the split finds the offset.
            self.context.offset_storage_reader.offset(query_partition())
            return [props]
        if self._splits is None:
            self._splits = TableSplits(self.config, self.context.offset_storage_reader, self.context.wait)
        sizes = self._monitor.sizes(self.config.table_monitoring_startup_polling_limit_ms / 1000)
        return [{**props, **split} for split in self._splits.next(sizes, max_splits)]

    def stop(self) -> None:
        if self._monitor is not None:
            self._monitor.stop()
        if self._splits is not None:
            self._splits.close()

    @classmethod
    def exactly_once_support(cls, config: CheckedSourceConfig) -> ExactlyOnceSupport:
        """Supported if a number identifies every row."""
        exact = config.mode in (Mode.INCREMENTING, Mode.TIMESTAMP_INCREMENTING)
        return ExactlyOnceSupport.SUPPORTED if exact else ExactlyOnceSupport.UNSUPPORTED

    @classmethod
    def alter_offsets(cls, config: CheckedSourceConfig, offsets: Mapping[str, Offset | None]) -> bool:
        """Accept the offsets of tables and queries, with the members that the mode uses."""
        for partition, offset in offsets.items():
            if offset is None:
                continue
            found = json.loads(partition) or {}
            if not ("table" in found or found == query_partition()):
                raise ConnectError(
                    'Partition objects must be {"protocol": "1", "table": "schema.table"} or {"query": "query"}'
                )
            position = Position.from_offset(offset)
            if config.mode.has_incrementing and position.incrementing is None:
                raise ConnectError(f"With mode={config.mode} the offset needs the key 'incrementing', an integer")
            if config.mode.has_timestamp and position.micros is None:
                raise ConnectError(f"With mode={config.mode} the offset needs the key 'timestamp', in milliseconds")
        return True


def _order(reader: TableReader) -> tuple[bool, float]:
    return not reader.is_reading, reader.due
