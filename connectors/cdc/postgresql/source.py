"""The PostgreSQL connector: the rows of tables, and then their changes, as the write-ahead log tells them."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from connect.data import Offset, SourceRecord
from connect.errors import ConnectError, RetriableError
from connect.kits.cdc.heartbeats import Heartbeat, Seldom
from connect.kits.cdc.incremental import IncrementalSnapshots
from connect.kits.cdc.incremental_state import IncrementalState
from connect.kits.cdc.measurements import CaptureLabels, SnapshotNumbers, StreamNumbers
from connect.kits.cdc.notifications import INITIAL, Notifications, SnapshotNotifications
from connect.kits.cdc.signals.actions import ExecuteSnapshot
from connect.kits.cdc.signals.signals import Signals
from connect.measurement import Measurement
from connect.source import ExactlyOnceSupport, Signal, SourceConnector, SourceTask
from connectors.cdc.postgresql.assembly import events_of, made_dialect, made_schemas, names_of
from connectors.cdc.postgresql.bounded import BoundedRun, OffsetRun, PieceRun
from connectors.cdc.postgresql.capture import Capture, CaptureParts
from connectors.cdc.postgresql.checks import CheckedPostgresConfig
from connectors.cdc.postgresql.chunks import ChunkReader
from connectors.cdc.postgresql.config import PostgresTaskConfig
from connectors.cdc.postgresql.connection import retriable_if_lost
from connectors.cdc.postgresql.offsets import Position
from connectors.cdc.postgresql.orders import OffsetSplit, PieceSplit, split_from, unread
from connectors.cdc.postgresql.replication import ReplicationError
from connectors.cdc.postgresql.slots import SlotState
from connectors.cdc.postgresql.splits import Splits
from connectors.cdc.postgresql.stream import ChangeStream

__all__ = ["PostgresConnector", "PostgresTask"]

logger = logging.getLogger(__name__)

_AT_REST_S: Final = 30.0
_STATUSES: Final = 6
"""The tables are looked through with every sixth status."""
_READERS_S: Final = 1.0
_POSITION_S: Final = 0.05
_LATER_S: Final = 0.1
_BLOCKED_STATUS_S: Final = 10.0
_LONGEST_POLL_S: Final = 0.5
"""Seconds after which a poll gives way to deliveries and commits."""
_GATHERING_S: Final = 0.005
"""How long changes are gathered that follow others at once: a poll of one costs as much as twenty changes."""
_UNDEFINED: Final = "42704"
"""The state of an error about what does not exist."""
_RETAINED_WARNING: Final = 10 << 30
"""Bytes of log kept by the slot from which on the log warns."""


class PostgresTask(SourceTask[PostgresTaskConfig]):
    """Reads one database.

    Crash points: the stored offset is the only state, and the slot is never told of more than that: see
    :mod:`connectors.cdc.postgresql.stream` and :mod:`connectors.cdc.postgresql.snapshot`.
    """

    def start(self) -> None:
        """Read the stored offset; connections are opened by the first poll, and again after each that is lost."""
        config, reader = self.config, self.context.offset_storage_reader
        self._partition: Offset = {"server": config.topic_prefix}
        self._bounded: BoundedRun | None = None
        self._capture: Capture | None = None
        split = split_from(config.capture_split)
        if isinstance(split, OffsetSplit):
            self._bounded = OffsetRun(config, self._partition, split, self.context.pass_offset)
            return
        if isinstance(split, PieceSplit):
            self._bounded = PieceRun(config, split, reader.offset, self.context.pass_offset)
            return
        offset = reader.offset(self._partition)
        self._notifications = Notifications(config, self._partition)
        dialect = made_dialect(config)
        schemas = made_schemas(config, dialect)
        self._chunks = ChunkReader(config, schemas.of, self.context.wake)
        self._labels = CaptureLabels("postgres", config.topic_prefix)
        self._snapshots = IncrementalSnapshots(
            unread(IncrementalState.of(offset or {}), self._partition, reader),
            self._chunks,
            config.incremental_snapshot_chunk_size,
            self._notifications.add,
            SnapshotNotifications(config.topic_prefix),
        )
        self._signals = Signals(config, config.topic_prefix, self._snapshots, self)
        calls = self._signals.take_row, self.context.wake, self._notifications.add
        self._parts = CaptureParts(
            config,
            names_of(config),
            dialect,
            schemas,
            events_of(config, self._partition),
            self._partition,
            config.transaction_metadata(self._partition),
            self._snapshots,
            *calls,
            until=None if split is None else split.until,
        )
        self._signals_at: Offset | None = None
        self._heartbeat = Heartbeat(
            config.naming().heartbeat_topic(), config.topic_prefix, self._partition, config.heartbeat_interval_ms
        )
        self._position = self._stored_position = Position.from_offset(offset) if offset else None
        self._has_begun = False
        reads_first = self._position is None or self._position.is_snapshot
        self._begins_at = time.monotonic() + config.snapshot_delay_ms / 1000 if reads_first else 0.0
        self._failure: Exception | None = None
        self._slot_attempts = 0
        self._status_at = self._xmin_at = 0.0
        self._statuses = 0
        self._follows = Seldom()
        self._slot: SlotState | None = None

    def poll(self) -> Iterable[SourceRecord]:
        """Return the next records: of the snapshot first, then of the stream."""
        if self._bounded is not None:
            return self._bounded.poll(self.config.max_batch_size)
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
                if self._signals_at is not None and _is_after(offset, self._signals_at):
                    self._signals_at = None
                    self._signals.stored()

    def take_signal(self, signal: Signal) -> None:
        """Take a signal that was sent by REST."""
        self._signals.take(signal)

    def captured_tables(self) -> Sequence[str]:
        """Return the names of the captured tables, for signals."""
        capture = self._capture
        if capture is None:
            raise RetriableError("The database is not connected now. Send the signal again once it is.")
        if not capture.streams:
            raise ConnectError(
                f"With snapshot.mode={self.config.snapshot_mode} no changes are streamed, and a snapshot cannot be "
                "read beside them."
            )
        return capture.captured_tables

    def shown_offset(self) -> str:
        """Return the offset, for the log."""
        stream = self._capture.stream if self._capture is not None else None
        return str({} if stream is None else dict(stream.offset()))

    def read_blocking(self, signal_id: str, asked: ExecuteSnapshot) -> None:
        """Have tables read while the stream waits."""
        self._snapshots.ask_blocking(signal_id, asked.collections(self.captured_tables()))

    def drained(self) -> bool:
        """Whether the snapshot is done and no stream follows, or the work of a split is done."""
        if self._bounded is not None:
            return self._bounded.is_done
        return self._capture is not None and (self._capture.is_finished or self._capture.has_reached)

    def remaining(self) -> Mapping[str, int]:
        """Return how much of the log is not yet passed on, or of the tables not yet read."""
        if self._capture is not None and (snapshot := self._capture.reading) is not None:
            return snapshot.remaining()
        lag = self._lag_bytes()
        left = {} if lag is None else {"bytes": lag}
        state = self._snapshots.state
        return left | ({"tables": len({each.table for each in state.collections})} if state.is_running else {})

    def total(self) -> Mapping[str, int]:
        """Return how many tables and rows a snapshot has that is being read."""
        snapshot = None if self._capture is None else self._capture.reading
        return {} if snapshot is None else snapshot.total()

    def measurements(self) -> Iterable[Measurement]:
        """Return how far the stream is behind, how far a snapshot is, and what the slot retains."""
        capture = self._capture
        if capture is None:
            yield from StreamNumbers(is_connected=False).measurements(self._labels)
            return
        yield from self._snapshot_numbers(capture).measurements(self._labels)
        if self._slot is not None and self._slot.retained_bytes is not None:
            yield Measurement("cdc_retained_log_bytes", self._slot.retained_bytes, "Log that the slot retains.")
        if (stream := capture.stream) is not None:
            yield from self._stream_numbers(capture, stream).measurements(self._labels)

    def _snapshot_numbers(self, capture: Capture) -> SnapshotNumbers:
        if (snapshot := capture.reading) is not None:
            return snapshot.numbers()
        return self._snapshots.numbers(is_completed=capture.has_read_all)

    def _stream_numbers(self, capture: Capture, stream: ChangeStream) -> StreamNumbers:
        at = stream.last_event_us
        return StreamNumbers(
            is_connected=True,
            lag_seconds=-1.0 if at is None else stream.lag_us / 1_000_000,
            lag_bytes=self._lag_bytes(),
            since_last_event_seconds=-1.0 if at is None else max(0.0, time.time() - at / 1_000_000),
            creates=stream.creates,
            updates=stream.updates,
            deletes=stream.deletes,
            others=stream.others,
            transactions=stream.transactions,
            captured_tables=len(capture.captured_tables),
        )

    def _lag_bytes(self) -> int | None:
        stream = self._capture.stream if self._capture is not None else None
        if stream is None or self._slot is None or self._slot.server_lsn is None:
            return None
        return max(0, self._slot.server_lsn - (stream.position().commit_lsn or 0))

    def stop(self) -> None:
        """Close the connections, and drop the slot if the configuration says so."""
        if (bounded := getattr(self, "_bounded", None)) is not None:
            bounded.close()
        if hasattr(self, "_signals"):
            self._signals.close()
            self._chunks.close()
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
        if (left := self._begins_at - time.monotonic()) > 0:
            self.context.poll_when_readable([], left)
            return
        if self._capture is None:
            self._capture = Capture(self._parts, self._position)
            self._slot_attempts = 0
            if self._capture.snapshot is None and not self._has_begun and self._parts.until is None:
                self._notifications.add(SnapshotNotifications(self.config.topic_prefix, INITIAL).skipped())
            self._has_begun = True
        capture = self._capture
        was_snapshot = capture.snapshot
        capture.fill(records, self.config.max_batch_size, time.monotonic() + _LONGEST_POLL_S)
        if (snapshot := was_snapshot or capture.snapshot) is not None:
            records += self._notifications.take(snapshot.offset)
        if was_snapshot is not None and capture.snapshot is None:
            self.context.pass_offset(self._partition, was_snapshot.offset)
        self._tend(capture, records)
        if capture.has_reached and capture.stream is not None:
            self.context.pass_offset(self._partition, capture.stream.offset())
        elif not records:
            self._rest(capture)
        elif capture.is_up_to_date:
            self.context.poll_when_readable([], _GATHERING_S)

    def _tend(self, capture: Capture, records: list[SourceRecord]) -> None:
        """Do what is due beside reading: heartbeats, the status for the server, and offsets without records."""
        now = time.monotonic()
        stream, watch = capture.stream, capture.watch
        if stream is None or watch is None:
            return
        if self._signals.look(now):
            self._signals_at = stream.offset()
        watch.look()
        records += self._notifications.take(stream.offset())
        if (records and stream.is_between_transactions) or watch.has_news:
            # The last record stands before the end of its transaction: the position is behind it.
            self.context.pass_offset(self._partition, stream.offset())
            watch.has_news = False
        if self._heartbeat.is_due(now):
            if self.config.heartbeat_action_query:
                capture.execute(self.config.heartbeat_action_query)
            records.append(self._heartbeat.record(time.time_ns() // 1_000_000, stream.offset()))
        if capture.is_blocked:
            # The server's wish for a sign of life is not read meanwhile.
            self._status_at = min(self._status_at, now + _BLOCKED_STATUS_S)
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
        self._statuses += 1
        if self._statuses % _STATUSES == 0 and self._parts.until is None and not capture.is_blocked:
            self._follows.run(capture.follow_tables)
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
            self.context.poll_when_readable([], _AT_REST_S if capture.is_finished else _READERS_S)
            return
        now = time.monotonic()
        seconds = self._heartbeat.seconds_left(now, max(0.0, self._status_at - now))
        seconds = self._signals.seconds_left(now, seconds)
        if self._snapshots.waits_for_position or capture.is_blocked or self._parts.until is not None:
            capture.ask_for_position()
            seconds = min(seconds, _POSITION_S)
        elif self._snapshots.is_idle_until_later:
            seconds = min(seconds, _LATER_S)
        self.context.poll_when_readable([socket], seconds)

    def _given_up(self, error: Exception) -> Exception:
        """Close the run after an error; return the error for the runtime."""
        if self._capture is not None:
            self._position = self._capture.position()
            if (snapshot := self._capture.snapshot) is not None:
                self._go_on_after(snapshot.offset)
            self._capture.close()
            self._capture = None
        if isinstance(error, ReplicationError):
            return self._of_publication(error)
        if isinstance(error, ConnectError):
            return self._of_slot(error)
        import psycopg  # noqa: PLC0415 - psycopg is loaded only where it is used

        if isinstance(error, psycopg.Error):
            return retriable_if_lost(error, "PostgreSQL has refused a statement")
        return error

    def _go_on_after(self, offset: Offset) -> None:
        """Have the next run read what is left of a snapshot, if that is known."""
        position, state = Position.from_offset(offset), IncrementalState.of(offset)
        if position.is_resumed:
            self._position = position
            self._snapshots.state = state

    def _of_publication(self, error: ReplicationError) -> ConnectError:
        """Tell what to do where the server has changes that it can no longer send."""
        name, slot = self.config.publication_name, self.config.slot_name
        if error.state != _UNDEFINED or f'publication "{name}"' not in str(error):
            return error
        return ConnectError(
            f"{error} Publication {name} was dropped, and PostgreSQL cannot send changes that were written without it, "
            f"even once it is there again: they are lost. Run SELECT pg_drop_replication_slot('{slot}'); and set "
            "snapshot.mode=when_needed, which reads all rows again."
        )

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


def _is_after(stored: Offset, noted: Offset) -> bool:
    """Return whether a stored offset is certainly one from after another was noted."""
    end, before = stored.get("lsn_commit"), noted.get("lsn_commit")
    return isinstance(end, int) and isinstance(before, int) and end > before


class PostgresConnector(SourceConnector[CheckedPostgresConfig]):
    """Captures the changes of a PostgreSQL database, as Debezium's connector does."""

    task_class = PostgresTask
    watches = False

    def start(self) -> None:
        """Divide nothing yet."""
        self._splits: Splits | None = None

    def splits(self, max_splits: int) -> Sequence[Mapping[str, str]]:
        """Return pieces of the first snapshot, or the stream to the end of the log."""
        self._splits = self._splits or Splits(self.config, self.context.offset_storage_reader)
        props = {key: value for key, value in self.config.originals.items() if value is not None}
        return [{**props, **split} for split in self._splits.next(max_splits)]

    def stop(self) -> None:
        """Close what dividing has opened."""
        if self._splits is not None:
            self._splits.close()

    @classmethod
    def exactly_once_support(cls, config: CheckedPostgresConfig) -> ExactlyOnceSupport:  # noqa: ARG003
        """Return that reading resumes exactly at its offsets."""
        return ExactlyOnceSupport.SUPPORTED

    @classmethod
    def alter_offsets(cls, config: CheckedPostgresConfig, offsets: Mapping[str, Offset | None]) -> bool:  # noqa: ARG003
        """Check offsets that a user sets."""
        for offset in offsets.values():
            if offset is not None:
                Position.from_offset(offset)
        return True
