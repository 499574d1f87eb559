"""The MySQL and MariaDB sources: a snapshot of the tables, and then their changes, from the binary log."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Generic, TypeVar

from connect.data import NO_HEADERS, Offset, SourceRecord
from connect.errors import ConnectError, RetriableError
from connect.kits.cdc.envelope import ChangeEvents, context_headers
from connect.kits.cdc.heartbeats import Heartbeat
from connect.kits.cdc.incremental import IncrementalSnapshots
from connect.kits.cdc.incremental_state import IncrementalState
from connect.kits.cdc.measurements import CaptureLabels, SnapshotNumbers
from connect.kits.cdc.notifications import INITIAL, Notifications, SnapshotNotifications
from connect.kits.cdc.signals.actions import ExecuteSnapshot
from connect.kits.cdc.signals.signals import Signals
from connect.kits.cdc.snapshots.run import SnapshotRun, Telling
from connect.kits.cdc.table_schemas import TableSchemas
from connect.kits.cdc.tables import Table, TableId
from connect.measurement import Measurement
from connect.source import ExactlyOnceSupport, Signal, SourceConnector, SourceTask
from connectors.cdc.mysql.binlog.dump import LogPurgedError
from connectors.cdc.mysql.captures import Captures
from connectors.cdc.mysql.catalog import Catalog
from connectors.cdc.mysql.changes import Changes, SourceBlock, mysql_source_schema
from connectors.cdc.mysql.checks import lost_log, setting_errors, setting_warnings, versioned_errors
from connectors.cdc.mysql.chunks import ChunkReader
from connectors.cdc.mysql.config import BinlogConfig
from connectors.cdc.mysql.incremental import StreamWatch
from connectors.cdc.mysql.position import Position, is_after
from connectors.cdc.mysql.proof import SchemaProof
from connectors.cdc.mysql.schema_changes import SchemaChangeRecords
from connectors.cdc.mysql.session import Server, Session, connected
from connectors.cdc.mysql.snapshots.blocking import BlockingRecorder, BlockingSnapshot, wanted_tables
from connectors.cdc.mysql.snapshots.pieces import planned_snapshot
from connectors.cdc.mysql.snapshots.records import RowRecords, SnapshotRecords
from connectors.cdc.mysql.snapshots.views import ViewOpening
from connectors.cdc.mysql.starts import Start, start_of
from connectors.cdc.mysql.streaming import Stream, StreamEnd
from connectors.cdc.mysql.validation import MariaDbConfig, MySqlConfig

__all__ = ["MariaDbConnector", "MariaDbTask", "MySqlConnector", "MySqlTask"]

C = TypeVar("C", bound=BinlogConfig)

logger = logging.getLogger(__name__)

_LONGEST_WAIT: Final = 0.5
"""Seconds after which a poll gives way to commits."""
_RETRY_SECONDS: Final = 1.0
_LATER_SECONDS: Final = 0.1
_GATHERING_SECONDS: Final = 0.005
"""How long changes are gathered that follow others at once: a poll of one costs as much as twenty changes."""
_AGAIN_SECONDS: Final = 10.0
"""How long the stream goes on if a blocking snapshot cannot begin."""
_VERSION: Final = "3.7.0.Final"
"""The version of Debezium whose records these are."""


class BinlogTask(SourceTask[C], Generic[C]):
    """Reads a snapshot, and then the log.

    Crash points: the stored offset is all that is kept. Killed in a snapshot, the task reads the rest of it beside the
    stream, or, while tables without a key are read, all of it anew. Killed in the stream, it goes on after the last
    record whose offset was stored: with exactly-once support each change is in its topic once, without it those after
    that record come again. Nothing is kept on the server.
    """

    def start(self) -> None:
        config = self.config
        self._session: Session | None = None
        self._stream: Stream | None = None
        self._opening: ViewOpening | None = None
        self._snapshot: SnapshotRecords | None = None
        self._is_reading = False
        self._blocking: BlockingSnapshot | None = None
        self._blocking_at = 0.0
        self._waiting: Changes | None = None
        self._is_idle = False
        self._failure: Exception | None = None
        self._checked_at = time.monotonic()
        self._passed: Mapping[str, Any] | None = None
        self._partition: Offset = {"server": config.topic_prefix}
        self._notifications = Notifications(config, self._partition)
        self._headers = (
            context_headers(config.topic_prefix, self._kind, "0") if config.extended_headers_enabled else NO_HEADERS
        )
        self._source_schema = mysql_source_schema(self._kind)
        self._block_of_source = SourceBlock(_VERSION, self._kind, config.topic_prefix)
        self._events = ChangeEvents(
            self._partition,
            self._headers,
            skipped=config.skipped(),
            makes_tombstones=config.tombstones_on_delete,
            skips_unchanged=config.skip_messages_without_change,
        )
        naming = config.naming()
        self._heartbeat = Heartbeat(
            naming.heartbeat_topic(), config.topic_prefix, self._partition, config.heartbeat_interval_ms
        )
        self._schemas = TableSchemas(
            config.dialect(),
            naming,
            self._source_schema,
            columns=config.column_rules(),
            keys=config.key_rules(),
            placeholder=config.unavailable_value_placeholder,
            on_failure=config.event_converting_failure_handling_mode,
        )
        self._metadata = config.transaction_metadata(self._partition)
        self._history = config.schema_history()
        self._schema_changes = SchemaChangeRecords(
            config.topic_prefix,
            self._partition,
            self._headers,
            self._source_schema,
            self._kind,
            is_wanted=config.include_schema_changes,
            history=self._history,
            catalog=lambda: Catalog(self._asked()),
        )
        offset = self._stored()
        self._chunks = ChunkReader(config, self._schemas.of, self.context.wake)
        self._incremental = IncrementalSnapshots(
            IncrementalState.of(offset or {}),
            self._chunks,
            config.incremental_snapshot_chunk_size,
            self._notifications.add,
            SnapshotNotifications(config.topic_prefix),
        )
        self._signals = Signals(config, config.topic_prefix, self._incremental, self)
        self._signals_at: Offset | None = None
        self._position = Position.from_offset(offset) if offset else None
        self._is_begun = False

    @property
    def _kind(self) -> str:
        return "mariadb" if self.config.is_mariadb else "mysql"

    def _stored(self) -> Offset | None:
        return self.context.offset_storage_reader.offset(self._partition)

    def _asked(self) -> Session:
        """Return the connection for questions, made anew if it was lost."""
        if self._session is None:
            self._session = connected(self.config)
        return self._session

    def poll(self) -> Iterable[SourceRecord] | None:
        """Return the next records of the snapshot or the stream."""
        if self._failure is not None:
            failure, self._failure = self._failure, None
            self._give_up(failure)
            return None
        records: list[SourceRecord] = []
        try:
            if not self._is_begun:
                self._begin()
            self._move(records)
        except Exception as error:
            if not records:
                self._give_up(error)
                return None
            # What was read before it has moved the position on, so it comes first.
            self._failure = error
            self._passed = records[-1].source_offset
        return records

    def _give_up(self, error: Exception) -> None:
        """Raise an error, having closed what may be broken; a lost log may be answered by a new snapshot."""
        if isinstance(error, RetriableError):
            self._drop_connections()
        if isinstance(error, LogPurgedError) and self.config.snapshot_mode.lower() == "when_needed":
            logger.warning("%s A new snapshot is taken, since snapshot.mode=when_needed.", error)
            self._drop_connections()
            self._take_snapshot()
            return
        raise error

    def _move(self, records: list[SourceRecord]) -> None:
        if self._is_reading:
            self._read_snapshot(records)
            if records:
                self._passed = records[-1].source_offset
        elif self._is_idle:
            self.context.wait(_LONGEST_WAIT)
        elif self._waiting is not None:
            self._read_blocking(self._waiting, records)
        else:
            self._read_stream(records)

    def _read_stream(self, records: list[SourceRecord]) -> None:
        if self._stream is None:
            self._open_stream()
        stream = self._stream
        assert stream is not None
        self._block(stream)
        end = self._end_of_stream()
        waits = self._blocking is not None and end is None
        if not waits:
            stream.poll(records, self.config.max_batch_size, end)
        self._tell(stream.changes)
        self._tend_signals(stream.changes, records)
        self._beat(stream.changes, records)
        if records:
            self._passed = records[-1].source_offset
            if stream.is_at_end and not waits:
                self.context.poll_when_readable([], _GATHERING_SECONDS)
        elif waits:
            self.context.poll_when_readable([], _LONGEST_WAIT)
        elif stream.is_at_end and not stream.has_reached:
            self._while_nothing_arrives(stream)
        self._pass_on(stream.changes)
        if stream.has_reached:
            self._begin_blocking(stream)

    # -- the beginning -------------------------------------------------------------------------------------

    def _begin(self) -> None:
        config, session = self.config, self._asked()
        server = session.server
        for error in (*setting_errors(server), *versioned_errors(config.wanted(), session)):
            raise error
        for warning in setting_warnings(config, server):
            logger.warning("%s", warning)
        if server.is_mariadb != config.is_mariadb:
            found = "MariaDB" if server.is_mariadb else "MySQL"
            raise ConnectError(f"The server is {found} {server.version}: use the connector for {found}.")
        lost = lost_log(self._position, session) if self._position and not self._position.snapshot else None
        start = start_of(config.snapshot_mode, self._position, lost)
        if start is Start.NOTHING:
            self._is_idle = True
        elif start is Start.SNAPSHOT:
            if lost:
                logger.warning("%s A new snapshot is taken, since snapshot.mode=%s.", lost, config.snapshot_mode)
            self._take_snapshot()
        elif self._position is None:
            self._notifications.add(SnapshotNotifications(config.topic_prefix, INITIAL).skipped())
            place = session.end_of_log()
            self._position = Position(place.file, place.position, place.gtids, int(time.time()))
        self._is_begun = True

    def _take_snapshot(self) -> None:
        self._opening = ViewOpening(self.config, self.config.wanted(), self.context.wake)
        self._snapshot = None
        self._is_reading = True

    def _telling(self, identity: str | None = None) -> Telling:
        return Telling(self._notifications.add, SnapshotNotifications(self.config.topic_prefix, INITIAL), identity)

    def _captures(self, server: Server) -> Captures:
        return Captures(
            self._schemas, self.config.wanted(), server, self._declared, self._proven, self.config.signal_table
        )

    def _declared(self, table: TableId) -> Table | None:
        return Catalog(self._asked()).table(table)

    def _proven(self, table: TableId) -> None:
        """Fail unless the catalog's version of a table is that of the log's place."""
        if self._stream is not None:
            file, position = self._stream.place
            SchemaProof(self.config, self._asked(), self.context.wait).check(table, file, position)

    # -- the snapshot --------------------------------------------------------------------------------------

    def _read_snapshot(self, records: list[SourceRecord]) -> None:
        snapshot = self._opened_snapshot()
        if snapshot is None:
            self.context.poll_when_readable([], _LONGEST_WAIT)
            return
        records += snapshot.poll(self.config.max_batch_size)
        records += self._notifications.take(snapshot.offset)
        if not snapshot.is_done:
            if not records:
                self.context.poll_when_readable([], _LONGEST_WAIT)
            return
        self._position = snapshot.position
        self._is_reading = False
        self.context.pass_offset(self._partition, self._position.to_offset())
        snapshot.close()
        self._is_idle = self.config.snapshot_mode.lower() == "initial_only"
        if self.config.streaming_delay_ms:
            self.context.wait(self.config.streaming_delay_ms / 1000)

    def _opened_snapshot(self) -> SnapshotRecords | None:
        """Return the snapshot, once its view is open."""
        view = self._opening.take() if self._opening is not None else None
        if view is not None:
            self._snapshot = SnapshotRecords(
                self.config,
                self._captures(view.session.server),
                self._events,
                self._block_of_source,
                self._schema_changes,
                self._telling(),
                view,
                self.context.wake,
            )
            self._opening = None
        return self._snapshot

    # -- blocking snapshots --------------------------------------------------------------------------------

    def _block(self, stream: Stream) -> None:
        """Have the stream wait if a signal wants it to, and it may do so now."""
        request = self._incremental.blocking
        if self._blocking is None:
            if request is None or not stream.changes.is_settled or time.monotonic() < self._blocking_at:
                return
            self._blocking = BlockingSnapshot(self.config, self.config.wanted(), request, self.context.wake)
        try:
            self._blocking.look()
        except ConnectError as error:
            logger.warning(
                "The blocking snapshot cannot begin yet, and is tried again in %.0f s: %s", _AGAIN_SECONDS, error
            )
            self._blocking = None
            self._blocking_at = time.monotonic() + _AGAIN_SECONDS

    def _end_of_stream(self) -> StreamEnd | None:
        """Return the place up to which the stream is read before the rows of a blocking snapshot, if it is known."""
        view = self._blocking.view if self._blocking is not None else None
        if view is None:
            return None
        server = view.session.server
        return StreamEnd(view.place, server.gtid_set(view.place.gtids) if server.has_gtids else None)

    def _begin_blocking(self, stream: Stream) -> None:
        """Close the stream, which goes on from where it is once the rows are read."""
        changes, blocking = stream.changes, self._blocking
        assert blocking is not None
        assert blocking.view is not None
        stream.close()
        self._stream, self._waiting = None, changes
        self._position = Position.from_offset(changes.offset)
        view, request = blocking.view, blocking.request
        logger.info("The stream waits at %s:%d for blocking snapshot %s.", *stream.place, request.signal_id)
        try:
            wanted = wanted_tables(view.tables, request)
            made = RowRecords(
                self._captures(view.session.server),
                self._events,
                self._block_of_source,
                view.place,
                [each.table for each in wanted],
            )
            recorder = BlockingRecorder(made, self._incremental, changes, self._watch)
            planned = planned_snapshot(self.config, view.sessions, wanted)
            telling = self._telling(request.signal_id)
            blocking.run = SnapshotRun(planned, recorder, telling, changes.offset, self.context.wake)
        except RetriableError:
            raise
        except ConnectError as error:
            self._give_up_blocking(error)

    def _read_blocking(self, changes: Changes, records: list[SourceRecord]) -> None:
        """Read rows while the stream waits."""
        run = self._blocking.run if self._blocking is not None else None
        try:
            if run is not None:
                records += run.poll(self.config.max_batch_size)
        except RetriableError:
            raise
        except ConnectError as error:
            self._give_up_blocking(error)
        self._tend_signals(changes, records)
        self._beat(changes, records)
        if records:
            self._passed = records[-1].source_offset
        self._pass_on(changes)
        if run is None or run.is_done or self._waiting is None:
            self._end_blocking()
        elif not records:
            self.context.poll_when_readable([], _LONGEST_WAIT)

    def _give_up_blocking(self, error: ConnectError) -> None:
        """Leave out what can never be read: a task that fails of it would do so again and again."""
        if self._blocking is None:
            return
        identity = self._blocking.request.signal_id
        logger.error("Blocking snapshot %s is given up, and the stream goes on: %s", identity, error)
        self._notifications.add(SnapshotNotifications(self.config.topic_prefix, INITIAL).aborted(identity))
        self._incremental.leave_of_blocking(())
        self._watch.look()
        self._end_blocking()

    def _end_blocking(self) -> None:
        if self._blocking is not None:
            self._blocking.close()
        self._blocking = self._waiting = None

    # -- the stream ----------------------------------------------------------------------------------------

    def _open_stream(self) -> None:
        position = self._position
        assert position is not None
        server = self._asked().server
        known = position.gtids if server.has_gtids else None
        # An offset without GTIDs is gone on with by file; an empty log has none yet, and they are counted from there.
        counted = None if known is None else server.gtid_set(known)
        sources = self.config.source_filter() if self.config.gtid_source_filter_dml_events else None
        has_sources = bool(self.config.gtid_source_includes or self.config.gtid_source_excludes)
        changes = Changes(
            self._captures(server),
            self._events,
            self._block_of_source,
            self._schema_changes,
            position,
            counted,
            is_mariadb=server.is_mariadb,
            metadata=self._metadata,
            with_query=self.config.include_query,
            sources=sources if has_sources else None,
        )
        self._incremental.break_off()
        changes.signal_table = self.config.signal_table
        self._watch = StreamWatch(self._incremental, changes, self._events, self._signals.take_row)
        self._stream = Stream(self.config, changes, position, counted or None, self._watch.due)
        logger.info("Reading the log after %s.", position.gtids or f"{position.file}:{position.position}")

    # -- signals -------------------------------------------------------------------------------------------

    def take_signal(self, signal: Signal) -> None:
        """Take a signal that was sent by REST."""
        self._signals.take(signal)

    def captured_tables(self) -> Sequence[str]:
        """Return the names of the captured tables, for signals."""
        if self._is_idle:
            raise ConnectError(
                f"With snapshot.mode={self.config.snapshot_mode} no changes are streamed, and a snapshot cannot be "
                "read beside them."
            )
        wanted = self.config.wanted()
        return [str(table) for table, _ in Catalog(self._asked()).tables() if wanted(table)]

    def shown_offset(self) -> str:
        """Return the offset, for the log."""
        changes = self._waiting if self._stream is None else self._stream.changes
        return str({} if changes is None else changes.offset)

    def read_blocking(self, signal_id: str, asked: ExecuteSnapshot) -> None:
        """Have tables read while the stream waits."""
        self._incremental.ask_blocking(signal_id, asked.collections(self.captured_tables()))

    def commit(self) -> None:
        """Note that offsets were committed: signals that they include need not be kept."""
        if self._signals_at is not None and is_after(self._stored() or {}, self._signals_at):
            self._signals_at = None
            self._signals.stored()

    def _tend_signals(self, changes: Changes, out: list[SourceRecord]) -> None:
        if not changes.is_settled:
            return
        if self._signals.look(time.monotonic()):
            self._signals_at = changes.offset
        self._watch.look()
        out += self._notifications.take(changes.offset)

    def _tell(self, changes: Changes) -> None:
        if changes.warning:
            logger.warning("%s", changes.warning)
            changes.warning = None

    def _beat(self, changes: Changes, out: list[SourceRecord]) -> None:
        if not changes.is_between_transactions or not self._heartbeat.is_due(time.monotonic()):
            return
        out.append(self._heartbeat.record(time.time_ns() // 1_000_000, changes.offset))
        if self.config.heartbeat_action_query:
            self._asked().execute(self.config.heartbeat_action_query)

    def _pass_on(self, changes: Changes) -> None:
        """Store how far the log was read where no record tells it, so that it may be purged up to there."""
        if changes.is_between_transactions and changes.offset != self._passed:
            self._passed = changes.offset
            self.context.pass_offset(self._partition, changes.offset)

    def _while_nothing_arrives(self, stream: Stream) -> None:
        now = time.monotonic()
        interval = self.config.log_check_interval_ms / 1000
        if interval and now - self._checked_at > interval:
            self._checked_at = now
            lost = lost_log(Position.from_offset(stream.changes.offset), self._asked())
            if lost:
                raise ConnectError(lost)
        seconds = self._signals.seconds_left(now, self._heartbeat.seconds_left(now, _LONGEST_WAIT))
        if self._incremental.is_idle_until_later or self._incremental.waits_for_position:
            seconds = min(seconds, _LATER_SECONDS)
        self.context.poll_when_readable([stream.fileno()], seconds)

    # -- the end -------------------------------------------------------------------------------------------

    def _drop_connections(self) -> None:
        """Close what may be broken; the next poll goes on from the last whole transaction, or row of it."""
        if self._stream is not None:
            if self._passed is not None:
                self._position = Position.from_offset(self._passed)
            self._stream.close()
            self._stream = None
        self._end_blocking()
        if self._opening is not None:
            self._opening.close()
            self._opening = None
        if self._is_reading:
            self._is_reading = self._is_begun = False
            if self._snapshot is not None:
                self._snapshot.close()
                if self._passed is not None:
                    # What is left is read beside the stream, if the offset tells it.
                    self._position = Position.from_offset(self._passed)
                    self._incremental.state = IncrementalState.of(self._passed)
        if self._session is not None:
            self._session.close()
            self._session = None

    def stop(self) -> None:
        """Close the connections, without waiting for the server."""
        if hasattr(self, "_signals"):
            self._signals.close()
            self._chunks.close()
            if self._history is not None:
                self._history.close()
            self._drop_connections()

    def measurements(self) -> Iterable[Measurement]:
        """Return how the stream and the snapshot are doing, under the names of Debezium's metrics."""
        labels = CaptureLabels(self._kind, self.config.topic_prefix)
        if self._stream is not None:
            yield from self._stream.changes.numbers().measurements(labels)
            yield Measurement(
                "cdc_log_bytes_total", self._stream.bytes_read, "Log that was read.", labels.of("streaming")
            )
        yield from self._snapshot_numbers().measurements(labels)

    def _snapshot_numbers(self) -> SnapshotNumbers:
        found = self._run or (None if self._incremental.state.is_running else self._snapshot)
        return self._incremental.numbers(is_completed=self._snapshot is not None) if found is None else found.numbers()

    def remaining(self) -> Mapping[str, int]:
        """Return how many tables and rows of a snapshot are not read yet."""
        if self._run is not None:
            return self._run.remaining()
        state = self._incremental.state
        return {"tables": len({each.table for each in state.collections})} if state.is_running else {}

    def total(self) -> Mapping[str, int]:
        """Return how many tables and rows a snapshot has that is being read."""
        return {} if self._run is None else self._run.total()

    @property
    def _run(self) -> SnapshotRecords | SnapshotRun | None:
        """The snapshot that is being read: the first one, or a blocking one."""
        blocking = None if self._blocking is None else self._blocking.run
        return self._snapshot if self._is_reading and self._snapshot is not None else blocking


class MySqlTask(BinlogTask[MySqlConfig]):
    """Reads MySQL."""


class MariaDbTask(BinlogTask[MariaDbConfig]):
    """Reads MariaDB."""


class BinlogConnector(SourceConnector[C], Generic[C]):
    """What both connectors have in common."""

    watches = False

    @classmethod
    def exactly_once_support(cls, config: C) -> ExactlyOnceSupport:  # noqa: ARG003
        """Each record's offset names exactly what precedes it."""
        return ExactlyOnceSupport.SUPPORTED

    @classmethod
    def alter_offsets(cls, config: C, offsets: Mapping[str, Offset | None]) -> bool:  # noqa: ARG003
        """Refuse what is no position in a log."""
        for offset in offsets.values():
            if offset is not None:
                Position.from_offset(offset)
        return True


class MySqlConnector(BinlogConnector[MySqlConfig]):
    """Sends the rows of MySQL's tables and each of their changes, under Debezium's keys."""

    task_class = MySqlTask


class MariaDbConnector(BinlogConnector[MariaDbConfig]):
    """Sends the rows of MariaDB's tables and each of their changes, under Debezium's keys."""

    task_class = MariaDbTask
