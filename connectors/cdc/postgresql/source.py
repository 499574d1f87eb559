"""The PostgreSQL connector: the rows of tables, and then their changes, as the write-ahead log tells them."""

from __future__ import annotations

import importlib.metadata
import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from connect.data import NO_HEADERS, Offset, SourceRecord
from connect.errors import ConnectError, RetriableError
from connect.kits.cdc.envelope import ChangeEvents, context_headers
from connect.kits.cdc.heartbeats import Heartbeat
from connect.kits.cdc.table_schemas import TableSchemas
from connect.kits.cdc.transactions import TransactionMetadata
from connect.measurement import Measurement
from connect.source import ExactlyOnceSupport, SourceConnector, SourceTask
from connectors.cdc.postgresql.capture import Capture, CaptureParts
from connectors.cdc.postgresql.config import PostgresConfig
from connectors.cdc.postgresql.connection import retriable_if_lost
from connectors.cdc.postgresql.dialect import PostgresDialect
from connectors.cdc.postgresql.offsets import Position
from connectors.cdc.postgresql.replication import ReplicationError
from connectors.cdc.postgresql.slots import SlotState
from connectors.cdc.postgresql.stream import SOURCE_SCHEMA, StreamNames

__all__ = ["PostgresConnector", "PostgresTask"]

logger = logging.getLogger(__name__)

_AT_REST_S: Final = 30.0
_LONGEST_POLL_S: Final = 0.5
"""Seconds after which a poll gives way to deliveries and commits."""
_RETAINED_WARNING: Final = 10 << 30
"""Bytes of log kept by the slot from which on the log warns."""


class PostgresTask(SourceTask[PostgresConfig]):
    """Reads one database.

    Crash points: the stored offset is the only state, and the slot is never told of more than that: see
    :mod:`connectors.cdc.postgresql.stream` and :mod:`connectors.cdc.postgresql.snapshot`.
    """

    needs_process = True

    def start(self) -> None:
        """Read the stored offset; connections are opened by the first poll, and again after each that is lost."""
        config = self.config
        self._partition: Offset = {"server": config.topic_prefix}
        self._parts = _parts(config, self._partition)
        self._heartbeat = Heartbeat(
            config.naming().heartbeat_topic(), config.topic_prefix, self._partition, config.heartbeat_interval_ms
        )
        self._capture: Capture | None = None
        offset = self.context.offset_storage_reader.offset(self._partition)
        self._position = self._stored_position = Position.from_offset(offset) if offset else None
        self._failure: Exception | None = None
        self._slot_attempts = 0
        self._status_at = self._xmin_at = 0.0
        self._slot: SlotState | None = None

    def poll(self) -> Iterable[SourceRecord]:
        """Return the next records: of the snapshot first, then of the stream."""
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure
        records: list[SourceRecord] = []
        try:
            self._move(records)
        except Exception as error:
            failure = self._given_up(error)
            if not records:
                raise failure from error
            # The position has moved on past these records: they come first.
            self._failure = failure
        return records

    def stored(self, offsets: Sequence[tuple[Offset, Offset]]) -> None:
        """Note the offset that is stored: the slot is told of it with the next status."""
        for partition, offset in offsets:
            if partition == self._partition:
                self._stored_position = Position.from_offset(offset)

    def drained(self) -> bool:
        """Whether the snapshot is done and no stream follows."""
        return self._capture is not None and self._capture.is_finished

    def remaining(self) -> Mapping[str, int]:
        """Return how much of the log is not yet passed on."""
        stream = self._capture.stream if self._capture is not None else None
        if stream is None or self._slot is None or self._slot.server_lsn is None:
            return {}
        return {"bytes": max(0, self._slot.server_lsn - (stream.position().commit_lsn or 0))}

    def measurements(self) -> Iterable[Measurement]:
        """Return how far the stream is behind, what the slot retains, and how many transactions were seen."""
        capture = self._capture
        if capture is None:
            return
        yield Measurement("cdc_snapshot_running", int(capture.snapshot is not None), "Whether the snapshot runs.")
        if (snapshot := capture.snapshot) is not None:
            yield Measurement("cdc_snapshot_tables_left", snapshot.tables_left, "Tables that the snapshot has to read.")
        if self._slot is not None and self._slot.retained_bytes is not None:
            yield Measurement("cdc_retained_log_bytes", self._slot.retained_bytes, "Log that the slot retains.")
        if (stream := capture.stream) is not None:
            yield Measurement("cdc_transactions_total", stream.transactions, "Transactions that were streamed.")
            if stream.last_event_us is not None:
                at = stream.last_event_us / 1_000_000
                yield Measurement("cdc_last_event_seconds", at, "Commit time of the last transaction, since 1970.")

    def stop(self) -> None:
        """Close the connections, and drop the slot if the configuration says so."""
        capture = getattr(self, "_capture", None)
        if capture is None:
            return
        try:
            if self.config.slot_drop_on_stop:
                capture.drop_slot()
        finally:
            capture.close()

    # -- polling -----------------------------------------------------------------------------------------------

    def _move(self, records: list[SourceRecord]) -> None:
        if self._capture is None:
            self._capture = Capture(self._parts, self._position)
            self._slot_attempts = 0
        capture = self._capture
        was_snapshot = capture.snapshot
        capture.fill(records, self.config.max_batch_size, time.monotonic() + _LONGEST_POLL_S)
        if was_snapshot is not None and capture.snapshot is None:
            self.context.pass_offset(self._partition, was_snapshot.end)
        self._tend(capture, records)
        if not records:
            self._rest(capture)

    def _tend(self, capture: Capture, records: list[SourceRecord]) -> None:
        """Do what is due beside reading: heartbeats, the status for the server, and offsets without records."""
        now = time.monotonic()
        stream = capture.stream
        if stream is None:
            return
        if records and stream.is_between_transactions:
            # The last record stands before the end of its transaction: the position is behind it.
            self.context.pass_offset(self._partition, stream.offset())
        if self._heartbeat.is_due(now):
            if self.config.heartbeat_action_query:
                capture.execute(self.config.heartbeat_action_query)
            records.append(self._heartbeat.record(time.time_ns() // 1_000_000, stream.offset()))
        if now >= self._status_at:
            self._status_at = now + self.config.status_update_interval_ms / 1000
            self._tell_status(capture, is_idle=not records)
        elif capture.wants_reply:
            capture.confirm(None)
        if self.config.xmin_fetch_interval_ms and now >= self._xmin_at:
            self._xmin_at = now + self.config.xmin_fetch_interval_ms / 1000
            slot = capture.slot_state()
            stream.xmin = slot.xmin if slot is not None else None

    def _tell_status(self, capture: Capture, *, is_idle: bool) -> None:
        if is_idle and (offset := capture.idle_offset()) is not None:
            self.context.pass_offset(self._partition, offset)
        capture.confirm(self._stored_position if self.config.confirms else None)
        self._slot = capture.slot_state()
        if self._slot is not None and (self._slot.retained_bytes or 0) >= _RETAINED_WARNING:
            logger.warning(
                "The slot %s retains %d MB of the server's log. If that grows, see whether Kafka takes records, or "
                "whether a transaction is open for long.",
                self._slot.name,
                (self._slot.retained_bytes or 0) >> 20,
            )

    def _rest(self, capture: Capture) -> None:
        """Wait for the next message."""
        socket = capture.socket
        if socket is None:
            if capture.is_finished:
                self.context.poll_when_readable([], _AT_REST_S)
            return
        now = time.monotonic()
        seconds = self._heartbeat.seconds_left(now, max(0.0, self._status_at - now))
        self.context.poll_when_readable([socket], seconds)

    def _given_up(self, error: Exception) -> Exception:
        """Close the run after an error; return the error for the runtime."""
        if self._capture is not None:
            self._position = self._capture.position()
            self._capture.close()
            self._capture = None
        if isinstance(error, ReplicationError):
            return error
        if isinstance(error, ConnectError):
            return self._of_slot(error)
        import psycopg  # noqa: PLC0415 - psycopg is loaded only where it is used

        if isinstance(error, psycopg.Error):
            return retriable_if_lost(error, "PostgreSQL has refused a statement")
        return error

    def _of_slot(self, error: ConnectError) -> ConnectError:
        """Give up on a slot that another connection keeps, after ``slot.max.retries``."""
        if not isinstance(error, RetriableError) or " is active for PID " not in str(error):
            return error
        self._slot_attempts += 1
        if self._slot_attempts > self.config.slot_max_retries:
            return ConnectError(
                f"{error} Another connection reads the slot {self.config.slot_name}: give each connector a slot.name "
                "of its own, or end the other one. If it is a dead one, the server notices after wal_sender_timeout: "
                "raise slot.max.retries."
            )
        return RetriableError(str(error), retry_after=self.config.slot_retry_delay_ms / 1000)


def _parts(config: PostgresConfig, partition: Offset) -> CaptureParts:
    naming = config.naming()
    version = importlib.metadata.version("sluice-connect")
    dialect = PostgresDialect(
        decimals=config.decimal_handling_mode,
        times=config.time_precision_mode,
        binary=config.binary_handling_mode,
        hstore=config.hstore_handling_mode,
        intervals=config.interval_handling_mode,
        money_digits=config.money_fraction_digits,
        has_unknown=config.include_unknown_datatypes,
    )
    schemas = TableSchemas(
        dialect,
        naming,
        SOURCE_SCHEMA,
        columns=config.column_rules(),
        keys=config.key_rules(),
        placeholder=config.unavailable_value_placeholder,
        on_failure=config.event_converting_failure_handling_mode,
    )
    headers = context_headers(config.topic_prefix, "postgresql") if config.extended_headers_enabled else NO_HEADERS
    events = ChangeEvents(
        partition,
        headers,
        skipped=config.skipped(),
        makes_tombstones=config.tombstones_on_delete,
        skips_unchanged=config.skip_messages_without_change,
    )
    metadata = TransactionMetadata(naming.transaction_topic(), partition)
    return CaptureParts(
        config,
        StreamNames(version, config.topic_prefix, config.database_dbname, naming.named("message")),
        dialect,
        schemas,
        events,
        partition,
        metadata if config.provide_transaction_metadata else None,
    )


class PostgresConnector(SourceConnector[PostgresConfig]):
    """Captures the changes of a PostgreSQL database, as Debezium's connector does."""

    task_class = PostgresTask
    watches = False

    @classmethod
    def exactly_once_support(cls, config: PostgresConfig) -> ExactlyOnceSupport:  # noqa: ARG003
        """Return that reading resumes exactly at its offsets."""
        return ExactlyOnceSupport.SUPPORTED

    @classmethod
    def alter_offsets(cls, config: PostgresConfig, offsets: Mapping[str, Offset | None]) -> bool:  # noqa: ARG003
        """Check offsets that a user sets."""
        for offset in offsets.values():
            if offset is not None:
                Position.from_offset(offset)
        return True
