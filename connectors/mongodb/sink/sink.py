"""The MongoDB sink: each record becomes a document, or an operation on one."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from connect.data import SinkBatch, SinkRecord, TopicPartition
from connect.errors import ConnectError, DataError, RetriableError
from connect.internals.crash import crash_point
from connect.kits.mongodb.failures import told
from connect.sink import SinkConnector, SinkTask
from connectors.mongodb.sink.config import Delivery, MongoSinkConfig
from connectors.mongodb.sink.debezium_config import MongoDbSinkConfig

if TYPE_CHECKING:
    from pymongo import MongoClient

    from connectors.mongodb.sink.bulks import BulkWriter
    from connectors.mongodb.sink.offsets import OffsetsCollection
    from connectors.mongodb.sink.plan import Planned, Reading

__all__ = ["MongoDbSinkConnector", "MongoDbSinkTask", "MongoSinkConnector", "MongoSinkTask"]

_log = logging.getLogger(__name__)
C = TypeVar("C", MongoSinkConfig, MongoDbSinkConfig)
_FIRST_WAIT_SECONDS: Final = 0.5
_LONGEST_WAIT_SECONDS: Final = 30.0


class WritingTask(SinkTask[C], Generic[C]):
    """Writes each batch before ``put`` returns: bulk by bulk, or with ``exactly-once`` in transactions.

    ==========================================  ====================================================================
    kill -9 here                                then
    ==========================================  ====================================================================
    before or in a bulk                         the records are consumed again, and written again: replacing, updating
                                                and deleting twice has no effect; an insert finds its document, if its
                                                _id comes from the record, and adds another one otherwise
    in a transaction                            the server aborts it; they are consumed again
    after it, before the offsets are committed  they are not written again: the offsets are in the transaction
    after bad records were reported             they are reported again if what follows them was not written
    ==========================================  ====================================================================

    If the server does not answer, ``put`` is repeated: what is already written of the batch is not written again, and
    an insert whose outcome is unknown counts as written if its document is found (the ids are kept meanwhile).
    """

    def start(self) -> None:
        from connectors.mongodb.sink.plan import Plan  # noqa: PLC0415 - the driver is loaded only where it is used
        from connectors.mongodb.sink.timeseries import TimeSeries  # noqa: PLC0415
        from connectors.mongodb.sink.transactions import Transactions  # noqa: PLC0415

        config = self._options = self.config.sink_options
        self._client = config.client()
        self._plan = Plan(config, self.reading())
        self._series = TimeSeries(self._client)
        self._transactions: Transactions | None = None
        if config.delivery is Delivery.EXACTLY_ONCE:
            self._transactions = Transactions(
                self._client, offsets_collection(self._client, config), config.max_batch_size
            )
        self._is_checked = self._transactions is None
        self._pending: BulkWriter | None = None
        self._pending_records: tuple[object, ...] = ()
        self._failures = 0
        self._bulks = 0

    def reading(self) -> Reading | None:
        """Return how all records are read; ``None`` if the options say that."""
        return None

    def open(self, partitions: Collection[TopicPartition]) -> None:
        if self._transactions is not None:
            ids = self.context.topic_ids({partition.topic for partition in partitions})
            self.context.offset(self._transactions.open(partitions, ids))

    def put(self, records: SinkBatch) -> None:
        if not len(records):
            return
        try:
            if self._transactions is not None:
                self._write_exactly_once(records)
            else:
                self._write_at_least_once(records)
        except RetriableError as error:
            self._failures += 1
            wait = min(_FIRST_WAIT_SECONDS * 2 ** (self._failures - 1), _LONGEST_WAIT_SECONDS)
            raise RetriableError(str(error), retry_after=error.retry_after or wait) from error
        self._failures = 0

    def close(self, partitions: Collection[TopicPartition]) -> None:
        self._pending = None
        if self._transactions is not None:
            self._transactions.close(partitions)

    def stop(self) -> None:
        if (client := getattr(self, "_client", None)) is not None:
            client.close()

    # -- at least once --------------------------------------------------------------------------------------------

    def _write_at_least_once(self, records: SinkBatch) -> None:
        from connectors.mongodb.sink.bulks import BulkWriter  # noqa: PLC0415

        identity = _identity(records)
        if self._pending is None or self._pending_records != identity:
            planned = self._planned(records)
            options = self._plan.of_topic(records.topic).config
            self._pending = BulkWriter(
                self._client, planned, size=options.max_batch_size, is_ordered=options.bulk_write_ordered
            )
            self._pending_records = identity
        self._pending.write(self._give_up_write, self._after_bulk)
        crash_point("mongodb-sink-after-bulks")
        self._pending = None

    def _after_bulk(self) -> None:
        """Wait after every so many bulks, if that is configured."""
        every = self._options.rate_limiting_every_n
        self._bulks += 1
        if every and self._bulks % every == 0:
            self.context.wait(self._options.rate_limiting_timeout / 1000)

    # -- exactly once ---------------------------------------------------------------------------------------------

    def _write_exactly_once(self, records: SinkBatch) -> None:
        from connectors.mongodb.sink.offsets import OvertakenError  # noqa: PLC0415
        from connectors.mongodb.sink.transactions import require_transactions  # noqa: PLC0415

        transactions = self._transactions
        assert transactions is not None
        if not self._is_checked:
            require_transactions(self._client)
            self._is_checked = True
        if stored := transactions.read():
            # Read late, as the server did not answer before: the consumer may stand elsewhere.
            self.context.offset(stored)
            records = _reached(records, stored)
        records = transactions.new(records)
        if not len(records):
            return
        try:
            transactions.write(records, self._planned(records), self._give_up_write, self._flush_reports)
        except OvertakenError as error:
            _log.warning("%s; continuing after those records", error)
            firsts: dict[TopicPartition, int] = {}
            for origin, offset in zip(records.origins, records.original_offsets, strict=True):
                firsts.setdefault(origin, offset)
            self.context.offset(firsts | transactions.read())

    def _flush_reports(self) -> None:
        """Make the reports durable, before the offsets after them are (I4)."""
        if (reporter := self.context.errant_record_reporter) is not None:
            reporter.flush()

    # -- records --------------------------------------------------------------------------------------------------

    def _planned(self, records: SinkBatch) -> list[Planned]:
        planned, refused = self._plan.of(records)
        for each in refused:
            self._give_up(each.record, each.error)
        options = self._plan.of_topic(records.topic).config
        if options.timeseries_timefield:
            for namespace in {item.namespace for item in planned}:
                with told("create a time series"):
                    self._series.ensure(namespace, options)
        return planned

    def _give_up_write(self, item: Planned, error: DataError) -> None:
        self._give_up(item.record, error)

    def _give_up(self, record: SinkRecord, error: DataError) -> None:
        """Report a record that cannot be written, or raise if that is not tolerated."""
        reporter = self.context.errant_record_reporter
        own = self._plan.of_topic(record.topic).config.mongo_errors_tolerance
        is_tolerated = (self.config.originals.get("errors.tolerance") or "").strip().lower() == "all"
        if own in ("all", "data") and (reporter is None or not is_tolerated):
            _log.error("Skipping a record. %s cannot be written: %s", _place(record), error)
        elif reporter is not None and own != "none":
            reporter.report(record, error)
        else:
            raise ConnectError(f"{_place(record)} cannot be written: {error}") from error


def offsets_collection(client: MongoClient[dict[str, Any]], config: MongoSinkConfig) -> OffsetsCollection:
    """Return the collection for the offsets of ``delivery=exactly-once``."""
    from connectors.mongodb.sink.offsets import OffsetsCollection  # noqa: PLC0415

    return OffsetsCollection(client, config.database, config.offsets_collection, config.originals.get("name") or "")


def _identity(records: SinkBatch) -> tuple[object, ...]:
    """Return what tells a batch from others: its records."""
    return records.original_topic, tuple(records.original_partitions), tuple(records.original_offsets)


def _reached(records: SinkBatch, stored: Mapping[TopicPartition, int]) -> SinkBatch:
    """Return the records of a batch without those beyond a gap after the stored offset: they come again."""
    nexts = dict(stored)
    kept = []
    for place, (origin, offset) in enumerate(zip(records.origins, records.original_offsets, strict=True)):
        if offset <= nexts.get(origin, offset):
            kept.append(place)
            if origin in nexts:
                nexts[origin] = max(nexts[origin], offset + 1)
    return records.take(kept)


def _place(record: SinkRecord) -> str:
    return f"The record at offset {record.original_offset} of {record.original_topic}-{record.original_partition}"


class MongoSinkTask(WritingTask[MongoSinkConfig]):
    """Writes as its options say."""


class MongoSinkConnector(SinkConnector[MongoSinkConfig]):
    """Writes topics to collections of MongoDB."""

    task_class = MongoSinkTask
    watches = False

    @classmethod
    def alter_offsets(cls, config: MongoSinkConfig, offsets: Mapping[TopicPartition, int | None]) -> bool:
        """Alter the offsets in the database as well: with ``exactly-once`` those are the ones that count."""
        return _alter(config, offsets)


class MongoDbSinkTask(WritingTask[MongoDbSinkConfig]):
    """Applies changes, each to the document whose _id is the event's key."""

    def reading(self) -> Reading:
        from connectors.mongodb.sink.cdc.debezium import collection_mapper, handle  # noqa: PLC0415
        from connectors.mongodb.sink.plan import Reading  # noqa: PLC0415

        config = self.config
        return Reading(collection_mapper(config.sink_database, config.collection_name_format), handle)


class MongoDbSinkConnector(SinkConnector[MongoDbSinkConfig]):
    """Applies events of Debezium to collections of MongoDB."""

    task_class = MongoDbSinkTask
    watches = False

    @classmethod
    def alter_offsets(cls, config: MongoDbSinkConfig, offsets: Mapping[TopicPartition, int | None]) -> bool:
        """Alter the offsets in the database as well: with ``exactly-once`` those are the ones that count."""
        return _alter(config.sink_options, offsets)


def _alter(config: MongoSinkConfig, offsets: Mapping[TopicPartition, int | None]) -> bool:
    """Alter the offsets in the database, if there are any."""
    if config.delivery is Delivery.EXACTLY_ONCE:
        client = config.client()
        try:
            with told("alter the offsets"):
                offsets_collection(client, config).alter(offsets)
        finally:
            client.close()
    return True
