"""The JDBC source and its task."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from connect.bulk_source import BulkSourceTask, BulkSourceTaskContext
from connect.data import Offset
from connect.errors import ConnectError, RetriableError
from connect.internals.chain.stack_trace import error_text
from connect.source import ExactlyOnceSupport, SourceConnector
from connectors.spark.errors import root_cause
from connectors.spark.sources.jdbc.config import SparkJdbcSourceConfig
from connectors.spark.sources.jdbc.drivers import driver_url
from connectors.spark.sources.jdbc.snapshot import Bounds, Snapshot, bounds_of, predicates
from connectors.spark.sources.marks import divide_evenly, numbered_pieces, unmarked
from connectors.spark.sources.session import SourceSession
from connectors.spark.stores.access import Access

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from connectors.spark.sources.row_publisher import Load

__all__ = ["SparkJdbcSourceConnector", "SparkJdbcSourceTask"]

logger = logging.getLogger(__name__)
_OF_DRIVER: Final = re.compile(r"\bjava\.sql\.|\bSQL\w*Exception|\w+SQLException")
"""Patterns that appear in the messages of drivers' errors."""
_UNREACHED: Final = ("java.net.ConnectException", "java.net.SocketTimeoutException", "java.net.NoRouteToHostException")
_DEEPEST: Final = 20
"""How far to look for the cause of an error, which may be its own."""


class SparkJdbcSourceTask(BulkSourceTask[SparkJdbcSourceConfig]):
    """Publishes all rows of tables, several partitions at a time, and starts again when the interval has passed."""

    def __init__(self, config: SparkJdbcSourceConfig, context: BulkSourceTaskContext) -> None:
        super().__init__(config, context)
        self._session = SourceSession(context, Access(lock=config.driver.jars), {})

    def start(self) -> None:
        """Start Spark."""
        self._session.start()

    def load(self) -> bool:
        """Publish the next partitions of each incomplete table."""
        return self._session.work(lambda: sum(map(self._load, self.config.sources)) > 0)

    def drained(self) -> bool:
        """Return whether no snapshot is left to take, or the next one is not yet due."""
        return True

    def stop(self) -> None:
        """Stop Spark."""
        self._session.stop()

    def _load(self, table: str) -> bool:
        from connectors.spark.sources.row_publisher import Load  # noqa: PLC0415 - brings pyspark

        config, partition, publisher = self.config, _partition(table), self._session.publisher
        config.check_hosts()
        snapshot = Snapshot.of(self.context.offset_storage_reader.offset(partition))
        now = time.time_ns() // 1_000_000
        if snapshot is None or snapshot.is_due_again(now, config.interval):
            snapshot = Snapshot(now, self._bounds(table), config.partition_count)
            logger.info("Starting a snapshot of %s.", table or "the query")
            publisher.begin(partition, snapshot.offset())
        if snapshot.is_complete:
            return False
        column = config.driver.quoted(config.partition_column or "")
        conditions = predicates(column, snapshot.bounds, snapshot.count)
        load = Load(partition, str(snapshot.begun))
        end = min(len(conditions), snapshot.sent + config.load_max_partitions)
        pieces = numbered_pieces(snapshot.sent, end, publisher.sent(load))
        if pieces.due:
            self._publish(table, load, {number: conditions[number] for number in pieces.due})
        after = snapshot.after(pieces.end - snapshot.sent, len(conditions))
        publisher.end(partition, after.offset())
        return True

    def _publish(self, table: str, load: Load, conditions: Mapping[int, str]) -> None:
        from connectors.spark.sources.record_frame import RowReading  # noqa: PLC0415 - brings pyspark
        from connectors.spark.sources.row_publisher import Share  # noqa: PLC0415 - as above

        publisher = self._session.publisher
        topic = self.config.topic_of(table=table)
        try:
            shares = []
            for numbers in divide_evenly(list(conditions), publisher.width):
                chosen = [conditions[number] for number in numbers]
                frame = publisher.run(partial(self._frame, self.config.sources[table], chosen))
                records = RowReading(self.config, frame.schema).frame(frame, topic)
                shares.append(Share(records, tuple(map(str, numbers))))
            publisher.publish(shares, load, f"publishing {topic}")
        except ConnectError:
            raise
        except Exception as error:
            if not _OF_DRIVER.search(error_text(error)):
                raise
            raise self._explained(error) from None

    def _bounds(self, table: str) -> Bounds | None:
        name = self.config.partition_column
        if name is None:
            return None
        column = self.config.driver.quoted(name)
        query = (
            f"(SELECT MIN({column}) AS least, MAX({column}) AS most FROM {self.config.sources[table]}) sluice_bounds"  # noqa: S608
        )
        try:
            rows = self._session.publisher.run(lambda: self._frame(query, None).collect())
        except ConnectError:
            raise
        except Exception as error:
            if not _OF_DRIVER.search(error_text(error)):
                raise
            raise self._explained(error) from None
        return bounds_of(name, *rows[0])

    def _frame(self, source: str, conditions: Sequence[str] | None) -> DataFrame:
        config = self.config
        url = driver_url(config.connection_url.value)
        properties = {"driver": config.driver.class_name, "fetchsize": str(config.fetch_size)}
        if config.connection_user is not None:
            properties["user"] = config.connection_user
        if config.connection_password is not None:
            properties["password"] = config.connection_password.value
        reader: Any = self._session.spark.read
        if conditions is None:
            frame: DataFrame = reader.jdbc(url, source, properties=properties)
            return frame
        if config.schema is not None:
            properties["customSchema"] = config.schema
        partitions: DataFrame = reader.jdbc(url, source, predicates=list(conditions), properties=properties)
        return partitions

    def _explained(self, error: Exception) -> ConnectError:
        """Return the message of the database or its driver; the error itself may contain secrets (invariant I8)."""
        cause = self.config.hide(root_cause(error))
        reports = [self.config.driver.is_transient(*report) for report in self._reports(error)]
        if any(reports) or (not reports and any(name in error_text(error) for name in _UNREACHED)):
            return RetriableError(f"The database cannot be reached: {cause}.")
        return ConnectError(
            f"The database could not be read: {cause}. Check the connection.* keys and the names of tables and columns."
        )

    def _reports(self, error: Exception) -> Iterator[tuple[str, int, str]]:
        """Yield the SQLSTATE, the number and the text of each error of the database among the causes of Spark's."""
        # Imported here, since only a task that has started Spark gets its errors.
        from py4j.java_gateway import is_instance_of  # noqa: PLC0415

        gateway = self._session.spark.sparkContext._gateway
        thrown: Any = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
        for _ in range(_DEEPEST):
            if thrown is None:
                return
            if is_instance_of(gateway, thrown, "java.sql.SQLException"):
                yield thrown.getSQLState() or "", int(thrown.getErrorCode()), thrown.getMessage() or ""
            thrown = thrown.getCause()


class SparkJdbcSourceConnector(SourceConnector[SparkJdbcSourceConfig]):
    """Publishes all rows of database tables with Spark, partitioned by a column. Runs as a single task."""

    task_class = SparkJdbcSourceTask
    watches = False

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str | None]]:  # noqa: ARG002
        """Return one task config: the connector's own configuration."""
        return [self.config.originals]

    @classmethod
    def exactly_once_support(cls, config: SparkJdbcSourceConfig) -> ExactlyOnceSupport:  # noqa: ARG003
        """Supported: the rows of a partition are committed together with the mark that says it was sent."""
        return ExactlyOnceSupport.SUPPORTED

    @classmethod
    def alter_offsets(cls, config: SparkJdbcSourceConfig, offsets: Mapping[str, Offset | None]) -> bool:  # noqa: ARG003
        """Reject anything that is not the offset of a snapshot."""
        for offset in unmarked(offsets.values()):
            Snapshot.of(offset)
        return True


def _partition(table: str) -> Offset:
    return {"table": table} if table else {"query": "query"}
