"""One connected run of the connector: it opens the connections, decides where to go on, reads rows, and streams.

A run ends with the first error. The next one goes on at the position of this one, or begins the snapshot again.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
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
from connectors.cdc.postgresql.catalog import CapturedTable, Catalog, captured_tables
from connectors.cdc.postgresql.checks import without_identity
from connectors.cdc.postgresql.config import PostgresConfig, replica_identities
from connectors.cdc.postgresql.connection import conninfo, open_session
from connectors.cdc.postgresql.dialect import PostgresDialect
from connectors.cdc.postgresql.incremental import StreamWatch
from connectors.cdc.postgresql.offsets import Position, format_lsn
from connectors.cdc.postgresql.pgoutput import Relation, begin, split_of
from connectors.cdc.postgresql.publications import named, publication_steps, read_publication
from connectors.cdc.postgresql.replication import PAYLOAD, CreatedSlot, ReplicationConnection, quoted
from connectors.cdc.postgresql.slots import Plan, SlotState, check_slot, gap, plan, read_slot
from connectors.cdc.postgresql.snapshot import (
    InitialRecorder,
    RowReader,
    begin_snapshot,
    ordered,
    planned_snapshot,
    snapshot_tables,
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
_TEMPORARY_SUFFIX: Final = "_snapshot"
_LONGEST_NAME: Final = 63
_FIRST_PATIENCE_S: Final = 10.0
"""How long the stream waits for the view of a blocking snapshot; each time twice as long, up to the longest."""
_LONGEST_PATIENCE_S: Final = 600.0
_AGAIN_S: Final = 10.0


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


class Capture:
    """A run. Used by the task's thread alone; call :meth:`close` in any case."""

    def __init__(self, parts: CaptureParts, position: Position | None) -> None:
        self._parts = parts
        self._config = parts.config
        self._start_position = position
        self._session = open_session(parts.config)
        self._replication: ReplicationConnection | None = None
        self._stream: ChangeStream | None = None
        self._snapshot: SnapshotRun | None = None
        self._after_snapshot: Position | None = None
        self._streams_at: float | None = None
        self._watch: StreamWatch | None = None
        self._blocking: BlockingSnapshot | None = None
        self._blocking_at = 0.0
        self._patience_s = _FIRST_PATIENCE_S
        self._held: bytes | None = None
        self._catalog = Catalog(self._session, parts.config.database_dbname)
        self._confirmed_lsn = 0
        try:
            self._open()
        except BaseException:
            self.close()
            raise

    # -- opening -----------------------------------------------------------------------------------------------

    def _open(self) -> None:
        config, position = self._config, self._start_position
        if self._parts.dialect.database_money_digits is None:
            self._parts.dialect.database_money_digits = self._money_digits()
        self._replication = replication = ReplicationConnection(conninfo(config, replication=True))
        self._identity = replication.identify()
        everything = self._catalog.tables()
        self._captured = self._chosen(everything)
        slot = read_slot(self._session, config.slot_name)
        missing = None
        if position is not None and position.is_resumed and not self._can_resume(position, slot):
            position = self._start_position = replace(position, is_snapshot=True, is_resumed=False)
            self._parts.snapshots.clear()
        if position is not None and not position.is_snapshot:
            missing = gap(position, slot, self._identity, config.slot_name, replication.timeline_history)
        decided = plan(config, position, missing)
        if slot is not None and decided.streams:
            check_slot(slot, config.database_dbname)
        if decided.missing is not None:
            logger.warning("Changes since the stored offset are missing: %s. Going on without them.", decided.missing)
        if decided.streams:
            self._set_replica_identities()
            self._prepare_publication(everything)
            self._warn_of_identities()
        self._parts.snapshots.break_off()
        self._streams = decided.streams
        if decided.reads_rows:
            self._begin_snapshot(decided, slot)
        elif decided.streams:
            self._begin_stream(slot, None if missing is not None else position)

    def _can_resume(self, position: Position, slot: SlotState | None) -> bool:
        """Return whether the stream reaches back to a snapshot that was interrupted; otherwise it begins anew."""
        history = self._need_replication().timeline_history
        missing = gap(position, slot, self._identity, self._config.slot_name, history)
        if missing is not None:
            logger.warning("The snapshot begins anew: %s.", missing.reason)
        return missing is None

    def _chosen(self, everything: Sequence[CapturedTable]) -> list[CapturedTable]:
        config = self._config
        captured = captured_tables(
            everything, config.table_filter(), config.schema_filter(), via_root=config.publish_via_partition_root
        )
        most = config.guardrail_collections_max
        if most and len(captured) > most:
            told = (
                f"{len(captured)} tables are captured, and guardrail.collections.max allows {most}: name fewer in "
                "table.include.list, or raise the limit."
            )
            if config.guardrail_collections_limit_action == "fail":
                raise ConnectError(told)
            logger.warning("%s", told)
        return captured

    def _money_digits(self) -> int:
        """Return the digits after the point of the database's currency, which its own locale shows."""
        with open_session(self._config, keeps_locale=True) as session:
            row = session.execute("SELECT '1'::money::text").fetchone()
        digits = re.search(r"1[.,](\d+)", row[0] if row else "")
        return len(digits[1]) if digits else 0

    def _set_replica_identities(self) -> None:
        for pattern, identity in replica_identities(self._config.replica_identity_autoset_values):
            for table in self._captured:
                is_index = identity.lower().startswith("index")
                if pattern.fullmatch(str(table.id)) and (is_index or table.identity != identity[0].lower()):
                    self._run(f"ALTER TABLE {named(table.id)} REPLICA IDENTITY {_identity_clause(identity)};")

    def _warn_of_identities(self) -> None:
        """Tell of tables whose updates the server now refuses: whoever writes to them will see the error."""
        named_anew = replica_identities(self._config.replica_identity_autoset_values)
        for table in without_identity(self._captured):
            if not any(pattern.fullmatch(str(table.id)) for pattern, _ in named_anew):
                logger.warning(
                    "Table %s has no primary key and no replica identity: PostgreSQL refuses to update and delete its "
                    "rows while it is published. Run ALTER TABLE %s REPLICA IDENTITY FULL; or set "
                    "replica.identity.autoset.values.",
                    table.id,
                    named(table.id),
                )

    def _prepare_publication(self, everything: Sequence[CapturedTable]) -> None:
        config = self._config
        state = read_publication(self._session, config.publication_name)
        signals = [table for table in everything if str(table.id) == config.signal_table]
        steps = publication_steps(
            config.publication_name,
            config.publication_autocreate_mode,
            state,
            [*self._captured, *(table for table in signals if table not in self._captured)],
            everything,
            via_root=config.publish_via_partition_root,
            skipped=config.skipped(),
        )
        for statement in steps:
            self._run(statement)

    def _run(self, statement: str) -> None:
        """Run a statement that changes the database; a missing right is an error that shows it."""
        import psycopg  # noqa: PLC0415 - psycopg is loaded only where it is used

        logger.info("Running %s", statement)
        try:
            self._session.execute(statement.encode())
        except psycopg.errors.InsufficientPrivilege as error:
            raise ConnectError(
                f"{self._config.database_user} may not run {statement} ({str(error).splitlines()[0]}). Have it run by "
                "a superuser or the owner of the tables. A publication for all tables needs a superuser: with "
                "publication.autocreate.mode=filtered it is made for the captured tables alone."
            ) from error

    # -- the snapshot ------------------------------------------------------------------------------------------

    def _begin_snapshot(self, decided: Plan, slot: SlotState | None) -> None:
        config = self._config
        self._parts.snapshots.clear()
        created = self._export(slot) if decided.streams else None
        include = config.snapshot_filter()
        chosen = ordered(
            [table for table in self._captured if include(str(table.id))], config.snapshot_tables_order_by_row_count
        )
        point = begin_snapshot(
            self._session,
            created.snapshot if created else None,
            created.consistent_lsn if created else None,
            locks_ms=config.snapshot_lock_timeout_ms if config.snapshot_locking_mode == "shared" else None,
            tables=[named(table.id) for table in chosen],
        )
        # The session has the snapshot now: whoever exported it, and a temporary slot, may go.
        self._close_replication()
        reader = RowReader(self._parts.names, self._parts.events, point, self._identity)
        tables = snapshot_tables(self._catalog, chosen, self._schema, config.select_overrides())
        wanted = [(table, Collection(str(table.captured.id))) for table in tables]
        planned = planned_snapshot(config, self._session, wanted, unordered_first=True)
        recorder = InitialRecorder(reader, {str(table.captured.id): table for table in tables}, resumes=decided.streams)
        told = Telling(self._parts.notify, SnapshotNotifications(config.topic_prefix, INITIAL))
        begun = reader.offset(is_complete=False)
        self._snapshot = SnapshotRun(planned, recorder, told, begun, self._parts.wake)
        self._after_snapshot = Position.from_offset(reader.offset(is_complete=True))

    def _export(self, slot: SlotState | None) -> CreatedSlot:
        """Return a slot with an exported snapshot: the connector's own if it is new, otherwise a temporary one."""
        replication, config = self._need_replication(), self._config
        if slot is None:
            return self._created(config.slot_name, exports=True)
        name = config.slot_name[: _LONGEST_NAME - len(_TEMPORARY_SUFFIX)] + _TEMPORARY_SUFFIX
        return replication.create_slot(name, exports=True, is_temporary=True)

    def _created(self, name: str, *, exports: bool) -> CreatedSlot:
        replication, config = self._need_replication(), self._config
        logger.info("Creating the replication slot %s.", name)
        return replication.create_slot(name, exports=exports, is_failover=config.slot_failover)

    # -- the stream --------------------------------------------------------------------------------------------

    def _begin_stream(self, slot: SlotState | None, position: Position | None) -> None:
        config, replication = self._config, self._need_replication()
        if slot is None:
            created = self._created(config.slot_name, exports=False)
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
        return StreamedTable(name, schema, split, relation.schema, relation.table, has_old_key=keys <= sent)

    def _schema(self, table: Table) -> TableSchema:
        return self._parts.schemas.of(table)

    # -- running -----------------------------------------------------------------------------------------------

    def fill(self, records: list[SourceRecord], limit: int, until: float) -> None:
        """Add the next records, up to about a number of them, and until a monotonic time."""
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
            self._receive(records, limit, until)
        else:
            self._block(self._blocking, records, limit, until)

    def _receive(self, records: list[SourceRecord], limit: int, until: float, end: int | None = None) -> bool:
        """Add the changes that have arrived; return whether all before an end in the log were added, if one is given.

        The transaction after the end is held.
        """
        stream, replication = self._need_stream(), self._need_replication()
        stream.out = records
        receive, handle = replication.receive, stream.handle
        count = size = 0
        while len(records) < limit and size < _BATCH_BYTES:
            message, self._held = self._held or receive(), None
            if message is None:
                self._add_due(records, replication.received_lsn)
                return end is not None and stream.is_between_transactions and replication.received_lsn >= end
            kind = message[PAYLOAD]
            if end is not None and kind == _BEGIN and begin(message, PAYLOAD + 1).final_lsn >= end:
                self._held = message
                return True
            handle(message)
            if kind == _COMMIT:
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
        return (
            self._parts.snapshots.blocking is not None
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
        self._snapshot = None
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
        return [str(table.id) for table in self._captured]

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


def _identity_clause(identity: str) -> str:
    word, _, index = identity.partition(" ")
    return f"USING INDEX {quoted(index.strip())}" if word.upper() == "INDEX" else word.upper()
