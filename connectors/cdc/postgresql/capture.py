"""One connected run of the connector: it opens the connections, decides where to go on, reads rows, and streams.

A run ends with the first error. The next one goes on at the position of this one, or begins the snapshot again.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from connect.data import Offset, SourceRecord
from connect.errors import ConnectError, RetriableError
from connect.kits.cdc.envelope import ChangeEvents
from connect.kits.cdc.incremental import IncrementalSnapshots
from connect.kits.cdc.incremental_state import Collection
from connect.kits.cdc.notifications import INITIAL, Notification, SnapshotNotifications
from connect.kits.cdc.snapshots.run import SnapshotRun, Telling
from connect.kits.cdc.table_schemas import TableSchema, TableSchemas
from connect.kits.cdc.tables import Table
from connect.kits.cdc.transactions import TransactionMetadata
from connectors.cdc.postgresql.blocking import BlockingRecorder, BlockingSnapshot, wanted_tables
from connectors.cdc.postgresql.catalog import Catalog, captured_tables
from connectors.cdc.postgresql.config import PostgresConfig
from connectors.cdc.postgresql.connection import conninfo, money_digits, open_session
from connectors.cdc.postgresql.dialect import PostgresDialect
from connectors.cdc.postgresql.incremental import StreamWatch
from connectors.cdc.postgresql.offsets import Position, format_lsn
from connectors.cdc.postgresql.opening import Opening, create_slot
from connectors.cdc.postgresql.orders import initial_rest
from connectors.cdc.postgresql.pgoutput import BEGIN, Relation, split_of, whole_row_of
from connectors.cdc.postgresql.replication import PAYLOAD, ReplicationConnection, quoted
from connectors.cdc.postgresql.slots import SlotState, read_slot
from connectors.cdc.postgresql.snapshot import (
    InitialRecorder,
    RowReader,
    planned_snapshot,
)
from connectors.cdc.postgresql.stream import ChangeStream, StreamedTable, StreamNames

__all__ = ["Capture", "CaptureParts"]

logger = logging.getLogger(__name__)

_BEGIN: Final = ord("B")
_COMMIT: Final = ord("C")
_MESSAGES_FROM: Final = 140_000
_BATCH_BYTES: Final = 16 << 20
"""Bytes of the log after which a batch ends, however few its records are (invariant I9)."""
_FAILOVER_FROM: Final = 170_000
_FIRST_PATIENCE_S: Final = 10.0
"""How long the stream waits for the view of a blocking snapshot; each time twice as long, up to the longest."""
_LONGEST_PATIENCE_S: Final = 600.0
_AGAIN_S: Final = 10.0
_QUIET_S: Final = 10.0


@dataclass(frozen=True, slots=True)
class CaptureParts:
    """What the runs of a task share."""

    config: PostgresConfig
    names: StreamNames
    dialect: PostgresDialect
    schemas: TableSchemas
    events: ChangeEvents
    partition: Offset
    metadata: TransactionMetadata | None
    snapshots: IncrementalSnapshots
    on_signal: Callable[[Sequence[str | None]], None]
    wake: Callable[[], None]
    notify: Callable[[Notification], None]
    until: int | None = None
    """Where in the log a run ends; ``None`` if it has no end."""


class Capture:
    """A run. Used by the task's thread alone; call :meth:`close` in any case."""

    def __init__(self, parts: CaptureParts, position: Position | None) -> None:
        self._parts = parts
        self._config = parts.config
        self._start_position = position
        self._stream: ChangeStream | None = None
        self._snapshot: SnapshotRun | None = None
        self._after_snapshot: Position | None = None
        self._streams_at: float | None = None
        self._watch: StreamWatch | None = None
        self._blocking: BlockingSnapshot | None = None
        self._blocking_at = 0.0
        self._patience_s = _FIRST_PATIENCE_S
        self._held: bytes | None = None
        self.has_reached = False
        """Whether everything before the end of a run was added."""

        self._quiet_since = (-1, 0.0)
        self.is_up_to_date = False
        """Whether the last :meth:`fill` has read all changes that had arrived."""

        self._confirmed_lsn = 0
        if parts.dialect.database_money_digits is None:
            parts.dialect.database_money_digits = money_digits(parts.config)
        self._opening = opening = Opening(parts.config, position)
        self._session, self._replication, self._catalog = opening.session, opening.replication, opening.catalog
        try:
            self._open(opening)
        except BaseException:
            self.close()
            raise

    # -- opening -----------------------------------------------------------------------------------------------

    def _open(self, opening: Opening) -> None:
        decided, snapshots = opening.decided, self._parts.snapshots
        self._start_position, self._identity, self._streams = opening.position, opening.identity, decided.streams
        if opening.begins_anew:
            snapshots.clear()
        if decided.streams:
            opening.prepare()
        snapshots.break_off()
        if decided.reads_rows:
            self._begin_snapshot(opening)
        elif decided.streams:
            self._begin_stream(opening.slot, None if opening.missing is not None else opening.position)

    # -- the snapshot ------------------------------------------------------------------------------------------

    def _begin_snapshot(self, opening: Opening) -> None:
        parts, config = self._parts, self._config
        parts.snapshots.clear()
        point, tables = opening.begin_snapshot(self._schema)
        self._replication = None
        reader = RowReader(parts.names, parts.events, point, self._identity)
        wanted = [(table, Collection(str(table.captured.id))) for table in tables]
        planned = planned_snapshot(config, self._session, wanted, unordered_first=True)
        recorder = InitialRecorder(reader, {str(table.captured.id): table for table in tables}, resumes=self._streams)
        told = Telling(parts.notify, SnapshotNotifications(config.topic_prefix, INITIAL))
        begun = reader.offset(is_complete=False)
        self._snapshot = SnapshotRun(planned, recorder, told, begun, parts.wake)
        self._after_snapshot = Position.from_offset(reader.offset(is_complete=True))

    # -- the stream --------------------------------------------------------------------------------------------

    def _begin_stream(self, slot: SlotState | None, position: Position | None) -> None:
        config, replication = self._config, self._need_replication()
        if slot is None:
            created = create_slot(replication, config, exports=False)
            position = position or Position(created.consistent_lsn, is_after_snapshot=True)
        elif position is None:
            position = Position(slot.confirmed_lsn, is_after_snapshot=True)
        if slot is not None and config.slot_failover and not slot.is_failover and replication.version >= _FAILOVER_FROM:
            replication.execute(f"ALTER_REPLICATION_SLOT {quoted(config.slot_name)} (FAILOVER true)")
        parts = self._parts
        self._stream = ChangeStream(
            parts.names,
            parts.events,
            self._looked_up,
            parts.schemas.with_nulls,
            position,
            parts.partition,
            identity=self._identity,
            metadata=parts.metadata,
            prefixes=config.prefix_filter(),
        )
        self._stream.signal_table = config.signal_table
        self._watch = StreamWatch(parts.snapshots, self._stream, parts.names, parts.events, parts.on_signal)
        options = {"proto_version": "1", "publication_names": quoted(config.publication_name)}
        if replication.version >= _MESSAGES_FROM:
            options["messages"] = "true"
        replication.start(config.slot_name, position.commit_lsn or 0, options | config.stream_options())
        self._confirmed_lsn = (slot.confirmed_lsn if slot else None) or 0
        logger.info("Streaming changes from %s.", format_lsn(position.commit_lsn or 0))

    def _looked_up(self, relation: Relation) -> StreamedTable:
        """Return a table of the stream as the configuration wants it."""
        config = self._config
        name = f"{relation.schema}.{relation.table}"
        split = split_of(len(relation.columns))
        is_captured = config.schema_filter()(relation.schema) and config.table_filter()(name)
        if not is_captured:
            return StreamedTable(name, None, split, relation.schema, relation.table, has_old_key=False)
        self._catalog.forget_types()
        schema = self._schema(self._catalog.streamed(relation))
        sent = {column.name for column in relation.columns if column.is_key}
        keys = {schema.table.columns[column.place].name for column in schema.key_columns}
        return StreamedTable(
            name,
            schema,
            split,
            relation.schema,
            relation.table,
            has_old_key=keys <= sent,
            whole_row=whole_row_of(len(relation.columns), schema),
        )

    def _schema(self, table: Table) -> TableSchema:
        return self._parts.schemas.of(table)

    # -- running -----------------------------------------------------------------------------------------------

    def fill(self, records: list[SourceRecord], limit: int, until: float) -> None:
        """Add the next records, up to about a number of them, and until a monotonic time."""
        self.is_up_to_date = False
        if self._snapshot is not None:
            records += self._snapshot.poll(limit)
            if not self._snapshot.is_done:
                return
            self._finish_snapshot()
            return
        if self._streams_at is not None and time.monotonic() >= self._streams_at:
            self._streams_at = None
            self._replication = ReplicationConnection(conninfo(self._config, replication=True))
            self._begin_stream(read_slot(self._session, self._config.slot_name), self._after_snapshot)
        if self._stream is None or self._replication is None:
            return
        if self._blocking is None and self._has_to_block():
            self._blocking = BlockingSnapshot(self._config, self._patience_s, self._parts.wake)
        if self._blocking is None:
            self._receive_to_end(records, limit, until)
        else:
            self._block(self._blocking, records, limit, until)

    def _receive_to_end(self, records: list[SourceRecord], limit: int, until: float) -> None:
        """Add the changes that have arrived, no further than to the end of the run if it has one."""
        is_reading = self._parts.snapshots.is_reading
        end = None if is_reading else self._parts.until
        is_at_end = self._receive(records, limit, until, end)
        self.has_reached = not is_reading and end is not None and (is_at_end or self._is_quiet(records))
        if is_at_end and end is not None:
            self._need_stream().pass_to(end)

    def _is_quiet(self, records: Sequence[SourceRecord]) -> bool:
        """Return whether the server has not moved on for long: the end may stand within what it has not flushed."""
        now, received = time.monotonic(), self._need_replication().received_lsn
        if records or received != self._quiet_since[0] or not self._need_stream().is_between_transactions:
            self._quiet_since = received, now
        return now - self._quiet_since[1] >= _QUIET_S

    def _receive(self, records: list[SourceRecord], limit: int, until: float, end: int | None = None) -> bool:
        """Add the changes that have arrived; return whether all before an end in the log were added, if one is given.

        The transaction after the end is held.
        """
        stream, replication, snapshots = self._need_stream(), self._need_replication(), self._parts.snapshots
        stream.out = records
        receive, handle = replication.receive, stream.handle
        count = size = 0
        while len(records) < limit and size < _BATCH_BYTES:
            message, self._held = self._held or receive(), None
            if message is None:
                self.is_up_to_date = True
                self._add_due(records, replication.received_lsn)
                return end is not None and stream.is_between_transactions and replication.received_lsn >= end
            kind = message[PAYLOAD]
            if end is not None and kind == _BEGIN and BEGIN.unpack_from(message, PAYLOAD + 1)[0] >= end:
                self._held = message
                return True
            handle(message)
            if kind == _COMMIT and snapshots.state.is_asked:
                self._add_due(records, 0)
                if self._blocking is None and self._has_to_block():
                    return False
            count += 1
            size += len(message)
            if not count & 255 and time.monotonic() >= until:
                return False
        return False

    # -- blocking snapshots ------------------------------------------------------------------------------------

    def _has_to_block(self) -> bool:
        """Return whether a signal wants the stream to wait, which it may do now."""
        snapshots = self._parts.snapshots
        if self._parts.until is not None and initial_rest(snapshots.state) is not None:
            # Other splits read it.
            return False
        return (
            snapshots.blocking is not None
            and self._need_stream().is_between_transactions
            and time.monotonic() >= self._blocking_at
        )

    def _block(self, blocking: BlockingSnapshot, records: list[SourceRecord], limit: int, until: float) -> None:
        """Go on with a blocking snapshot."""
        if blocking.run is None:
            self._open_view(blocking)
            if blocking.view is None or not self._receive(records, limit, until, blocking.view.point.lsn):
                return
        try:
            if blocking.run is None:
                self._begin_reading(blocking)
            if blocking.run is not None:
                records += blocking.run.poll(limit)
        except RetriableError:
            raise
        except ConnectError as error:
            self._give_up_blocking(error)
        if blocking.run is None or blocking.run.is_done:
            self._end_blocking()

    def _open_view(self, blocking: BlockingSnapshot) -> None:
        """Look for the view; if it cannot be opened, let the stream go on for a while."""
        try:
            blocking.look()
        except Exception as error:
            logger.warning(
                "The blocking snapshot cannot begin yet, and is tried again in %.0f s: %s. It waits for all "
                "transactions that write (see pg_stat_activity), and needs a free replication slot.",
                _AGAIN_S,
                str(error).strip().rstrip("."),
            )
            self._end_blocking()
            self._blocking_at = time.monotonic() + _AGAIN_S
            self._patience_s = min(_LONGEST_PATIENCE_S, 2 * self._patience_s)

    def _begin_reading(self, blocking: BlockingSnapshot) -> None:
        parts, stream, watch, view = self._parts, self._need_stream(), self._watch, blocking.view
        request = parts.snapshots.blocking
        if view is None or watch is None or request is None:
            return
        stream.pass_to(view.point.lsn)
        self._patience_s = _FIRST_PATIENCE_S
        config, catalog = self._config, Catalog(view.session, self._config.database_dbname)
        captured = captured_tables(
            catalog.tables(), config.table_filter(), config.schema_filter(), via_root=config.publish_via_partition_root
        )
        tables = wanted_tables(catalog, captured, request, self._schema)
        reader = RowReader(parts.names, parts.events, view.point, self._identity)
        recorder = BlockingRecorder(reader, tables, parts.snapshots, stream, watch)
        told = Telling(parts.notify, SnapshotNotifications(config.topic_prefix, INITIAL), request.signal_id)
        planned = planned_snapshot(config, view.session, tables)
        logger.info("The stream waits at %s for blocking snapshot %s.", format_lsn(view.point.lsn), request.signal_id)
        blocking.run = SnapshotRun(planned, recorder, told, stream.offset(), parts.wake)

    def _give_up_blocking(self, error: ConnectError) -> None:
        """Leave out what can never be read: a task that fails of it would do so again and again."""
        snapshots = self._parts.snapshots
        request = snapshots.blocking
        if request is None:
            return
        logger.error("Blocking snapshot %s is given up, and the stream goes on: %s", request.signal_id, error)
        self._parts.notify(SnapshotNotifications(self._config.topic_prefix, INITIAL).aborted(request.signal_id))
        snapshots.leave_of_blocking(())
        if self._blocking is not None and self._blocking.run is not None:
            self._blocking.run.close()
            self._blocking.run = None

    def _end_blocking(self) -> None:
        if self._blocking is not None:
            self._blocking.close()
            self._blocking = None
        if self._watch is not None:
            self._watch.look()

    def _add_due(self, records: list[SourceRecord], received_lsn: int) -> None:
        """Add the rows of an incremental snapshot that are due between two transactions."""
        stream, watch = self._stream, self._watch
        if stream is not None and watch is not None and stream.is_between_transactions and watch.is_active:
            records += watch.due(max(received_lsn, stream.position().commit_lsn or 0))

    def _finish_snapshot(self) -> None:
        """End the view: it would keep the server from vacuuming, and show the catalog as it was then."""
        self._snapshot = None
        self._session.execute("COMMIT")
        if self._streams:
            self._streams_at = time.monotonic() + self._config.streaming_delay_ms / 1000

    def position(self) -> Position | None:
        """Return where the next run goes on: None while the first snapshot is not complete."""
        if self._stream is not None:
            return self._stream.position()
        return self._after_snapshot if self._snapshot is None else self._start_position

    def idle_offset(self) -> Offset | None:
        """Return the offset of what the server has sent, if all of it is passed on and it is ahead; otherwise None."""
        if self._stream is None or self._replication is None or self._blocking is not None:
            return None
        return self._stream.pass_to(self._replication.received_lsn)

    def confirm(self, position: Position | None) -> None:
        """Tell the server how far changes are stored, or only that the connector is alive."""
        if self._replication is None or not self._replication.is_streaming:
            return
        if position is not None and not position.is_snapshot and position.commit_lsn is not None:
            self._confirmed_lsn = max(self._confirmed_lsn, position.commit_lsn)
        self._replication.confirm(self._confirmed_lsn)

    def ask_for_position(self) -> None:
        """Have the server tell how far it has sent, since rows wait for that."""
        if self._replication is not None and self._replication.is_streaming:
            self._replication.confirm(self._confirmed_lsn, asks=True)

    @property
    def socket(self) -> int | None:
        """The descriptor that is readable when there may be changes; ``None`` while none are read."""
        if self._replication is None or self._stream is None:
            return None
        return self._replication.socket if self._blocking is None or self._blocking.is_reaching else None

    @property
    def is_blocked(self) -> bool:
        """Whether a blocking snapshot has begun."""
        return self._blocking is not None

    @property
    def wants_reply(self) -> bool:
        """Whether the server waits for a sign of life."""
        return self._replication is not None and self._replication.wants_reply

    @property
    def watch(self) -> StreamWatch | None:
        """What connects incremental snapshots with the stream, once it has begun."""
        return self._watch

    @property
    def streams(self) -> bool:
        """Whether changes are streamed, now or after the snapshot."""
        return self._streams

    @property
    def has_read_all(self) -> bool:
        """Whether this run has read a snapshot to its end."""
        return self._snapshot is None and self._after_snapshot is not None

    @property
    def captured_tables(self) -> list[str]:
        """The names of the captured tables."""
        return [str(table.id) for table in self._opening.captured]

    @property
    def stream(self) -> ChangeStream | None:
        """The stream, once it has begun."""
        return self._stream

    @property
    def snapshot(self) -> SnapshotRun | None:
        """The snapshot, while it runs."""
        return self._snapshot

    @property
    def reading(self) -> SnapshotRun | None:
        """The snapshot that is being read now, the first one or a blocking one."""
        return self._snapshot or (self._blocking.run if self._blocking is not None else None)

    @property
    def is_finished(self) -> bool:
        """Whether there is nothing more to read: the snapshot is done, and no stream follows."""
        return self._snapshot is None and self._stream is None and self._streams_at is None

    def follow_tables(self) -> None:
        """Have the database publish captured tables that were created since."""
        self._opening.follow_tables()

    def slot_state(self) -> SlotState | None:
        """Return the state of the slot now."""
        return read_slot(self._session, self._config.slot_name)

    def execute(self, statement: str) -> None:
        """Run a statement of the user's."""
        self._session.execute(statement.encode())

    def close(self) -> None:
        """Close the connections."""
        if self._snapshot is not None:
            self._snapshot.close()
        if self._blocking is not None:
            self._blocking.close()
        self._close_replication()
        self._session.close()

    def drop_slot(self) -> None:
        """Drop the slot, as ``slot.drop.on.stop`` asks."""
        self._close_replication()
        with open_session(self._config) as session:
            session.execute(
                "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = %s",
                (self._config.slot_name,),
            )

    def _need_stream(self) -> ChangeStream:
        if self._stream is None:
            raise RetriableError("The stream has not begun.")
        return self._stream

    def _need_replication(self) -> ReplicationConnection:
        if self._replication is None:
            raise RetriableError("The replication connection is closed.")
        return self._replication

    def _close_replication(self) -> None:
        if self._replication is not None:
            self._replication.close()
            self._replication = None
