"""The JDBC sink: each record becomes a row of a table."""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from connect.data import SinkBatch, TopicPartition
from connect.errors import ConnectError, DataError, RetriableError
from connect.internals.crash import crash_point
from connect.kits.sql.connection import Database
from connect.kits.sql.registry import writer_of
from connect.kits.sql.values import TypeOptions, parse_zone
from connect.kits.sql.writer import Action, Step
from connect.sink import SinkConnector, SinkTask
from connectors.jdbc.checks import CheckedSinkConfig
from connectors.jdbc.sink.config import JdbcSinkConfig
from connectors.jdbc.sink.offsets import OffsetsTable, OvertakenError
from connectors.jdbc.sink.routing import Routing
from connectors.jdbc.sink.rows import ErrantRecord, Group, RowMaker
from connectors.jdbc.sink.tables import Tables
from connectors.jdbc.sink.write_plan import isolate, plan_exactly, plan_steps

if TYPE_CHECKING:
    from sqlalchemy import Connection

__all__ = ["JdbcSinkConnector", "JdbcSinkTask"]

_log = logging.getLogger(__name__)
_LINGER_SECONDS: Final = 0.1
"""How long records wait for more of them, to be written in one transaction."""


class _ChangedTableError(Exception):
    """A table that others changed after it was looked up."""


class JdbcSinkTask(SinkTask[JdbcSinkConfig]):
    """Writes records to tables, up to ``batch.size`` of them in a transaction.

    Records are held until there are enough, until a tenth of a second has passed since the first of them, or until
    ``flush``. If the database refuses a row, the transaction is rolled back, the tables are looked up again, since
    others may have changed them, and it is repeated: first as it was, then with savepoints, which find the bad rows by
    bisection, and if it may be for the order of the rows, exactly in the order of the records. What is refused then is
    reported, and the others are written.

    ==========================================  ====================================================================
    kill -9 here                                then
    ==========================================  ====================================================================
    while records are held                      they are consumed again
    in a transaction                            the database rolls it back; they are consumed again
    after it, before the offsets are committed  at-least-once: they are written again, which duplicates inserts but
                                                not upserts and deletes. exactly-once: the offsets are in the
                                                transaction, and consumption continues from them
    after bad records were reported             they are reported again if the transaction was not committed
    ==========================================  ====================================================================

    With ``exactly-once`` no transaction is committed before its reports are flushed (I4), and none by a task that
    another one has overtaken (I6).
    """

    def start(self) -> None:
        options = TypeOptions(zone=parse_zone(self.config.db_timezone))
        self._database = self.config.database(self.context.wait, options)
        dialect = self._database.dialect
        self._writer = writer_of(dialect)
        self._tables = Tables(self._database, self._writer, self.config)
        routing = Routing(self.config, dialect)
        self._rows = RowMaker(
            self.config, routing, self._tables.prepare, self._tables.reached, arrays=self._writer.has_arrays
        )
        self._offsets = _offsets_table(self.config, self._database)
        self._known: dict[TopicPartition, int] = {}
        self._ids: dict[str, str] = {}
        self._held: list[SinkBatch] = []
        self._count = 0
        self._held_since = 0.0
        self._failures = 0

    def open(self, partitions: Collection[TopicPartition]) -> None:
        if self._offsets is not None:
            self._ids |= self.context.topic_ids({partition.topic for partition in partitions})
            with self._database.errors("read the offsets"):
                connection = self._tables.connection()
                self._offsets.create(connection)
                stored = self._stored(self._offsets, connection, partitions)
            self._known |= stored
            self.context.offset(stored)

    def put(self, records: SinkBatch) -> None:
        records = self._new(records)
        if not len(records):
            self._write_held()
            return
        now = time.monotonic()
        if not self._held:
            self._held_since = now
        self._held.append(records)
        self._count += len(records)
        left = _LINGER_SECONDS - (now - self._held_since)
        if self._count < self.config.batch_size and left > 0:
            self.context.timeout(left)
            return
        try:
            self._write_held()
        except Exception:
            # The records of this put come again; earlier ones are still held.
            self._held.pop()
            self._count -= len(records)
            raise

    def flush(self, offsets: Mapping[TopicPartition, int]) -> None:  # noqa: ARG002
        try:
            self._write_held()
        except Exception:
            # Uncommitted records are consumed again.
            self._drop_held()
            raise

    def close(self, partitions: Collection[TopicPartition]) -> None:
        gone = set(partitions)
        kept = [(batch, [at for at, origin in enumerate(batch.origins) if origin not in gone]) for batch in self._held]
        self._held = [batch.take(places) for batch, places in kept if places]
        self._count = sum(map(len, self._held))
        for partition in gone:
            self._known.pop(partition, None)

    def stop(self) -> None:
        if hasattr(self, "_database"):
            self._database.dispose()

    # -- one transaction -----------------------------------------------------------------------------------------

    def _write_held(self) -> None:
        """Write the held records in one transaction."""
        if not self._held:
            return
        try:
            with self._database.errors("write records"):
                self._write()
        except OvertakenError as error:
            self._start_over(error)
        except RetriableError as error:
            raise self._retried(error) from error
        self._failures = 0
        self._drop_held()

    def _write(self) -> None:
        groups = self._rows.groups(self._held)
        errant = list(self._rows.errant)
        connection = self._tables.connection()
        if self._rows.has_unfit:
            errant = self._write_anew(connection, groups, None)
        else:
            try:
                self._do(connection, self._planned(groups))
            except Exception as error:
                if not self._may_be_outdated(error):
                    raise
                errant = self._write_anew(connection, groups, error)
        ends = self._ends()
        if self._offsets is not None:
            self._offsets.advance(connection, self._known, ends, self._ids)
        self._report(errant)
        crash_point("jdbc-sink-before-commit")
        connection.commit()
        crash_point("jdbc-sink-after-commit")
        if self._offsets is not None:
            self._known |= ends

    def _write_anew(
        self, connection: Connection, groups: Iterable[Group], failure: Exception | None
    ) -> list[ErrantRecord]:
        """Look the tables up again and write as many rows as possible; return the records that cannot be written.

        ``failure`` is what became of writing ``groups``; ``None`` if that was not tried.
        """
        if self._tables.look_again(is_sure=isinstance(failure, _ChangedTableError)):
            groups, failure = self._rows.groups(self._held), None
        errant = list(self._rows.errant)
        steps = self._planned(groups)
        if failure is None:
            try:
                self._do(connection, steps)
            except Exception as error:
                failure = error
            else:
                return errant
        if not self._blames_row(failure):
            raise failure
        refused = self._do_by_halves(connection, steps)
        if any(self._writer.may_be_for_order(_cause(error)) for _, error in refused):
            exact = self._planned(self._rows.groups(self._held, exact=True), exact=True)
            if _content(exact) != _content(steps):
                refused = self._do_by_halves(connection, exact)
        return errant + [each for each, _ in refused]

    def _planned(self, groups: Iterable[Group], *, exact: bool = False) -> list[tuple[Group, Step]]:
        return [(group, step) for group in groups for step in self._steps(group, exact=exact)]

    def _steps(self, group: Group, *, exact: bool) -> Iterable[Step]:
        prepared = group.written or group.deleted
        assert prepared is not None
        plan = plan_exactly if exact else plan_steps
        steps = plan(self.config.insert_mode, group.rows, prepared.target.key_size, group.deletes)
        # An update without columns besides the key changes nothing.
        return [step for step in steps if step.action is not Action.UPDATE or prepared.target.other_names]

    def _do(self, connection: Connection, steps: Sequence[tuple[Group, Step]]) -> None:
        # Looking up tables has begun a transaction that changed nothing.
        connection.rollback()
        connection.begin()
        for group, step in steps:
            self._do_step(connection, group, step)
        used = list({id(each): each for group, _ in steps for each in group.prepared}.values())
        # The transaction has locked the tables: they cannot change any more.
        shapes = self._writer.shapes(connection, [prepared.target for prepared in used])
        for prepared, shape in zip(used, shapes, strict=True):
            if shape != prepared.shape:
                raise _ChangedTableError(f"Table {prepared.target.table} has been changed meanwhile")

    def _do_step(self, connection: Connection, group: Group, step: Step) -> None:
        prepared = group.deleted if step.action is Action.DELETE else group.written
        assert prepared is not None
        self._writer.write(connection, prepared.target, step)

    def _do_by_halves(
        self, connection: Connection, steps: Sequence[tuple[Group, Step]]
    ) -> list[tuple[ErrantRecord, Exception]]:
        """Write as many rows as possible by bisection; return the others' records with the database's errors."""
        connection.rollback()
        connection.begin()
        errant: list[tuple[ErrantRecord, Exception]] = []
        for group, step in steps:

            def attempt(start: int, stop: int, group: Group = group, step: Step = step) -> None:
                with connection.begin_nested():
                    self._do_step(connection, group, step.slice(start, stop))

            for at, error in isolate(len(step.rows), attempt, self._blames_row):
                failure = self._database.failure(error, f"write the record to table {group.table}") or error
                errant.append((ErrantRecord(group.record(step.places[at]), DataError(str(failure))), error))
        return errant

    def _blames_row(self, error: Exception) -> bool:
        return self._writer.blames_row(_cause(error))

    def _may_be_outdated(self, error: Exception) -> bool:
        """Return whether an error may be due to tables that are not what they were when they were looked up."""
        if isinstance(error, _ChangedTableError) or self._blames_row(error):
            return True
        failure = self._database.failure(error, "write records")
        return failure is not None and not isinstance(failure, RetriableError)

    def _report(self, errant: Sequence[ErrantRecord]) -> None:
        reporter = self.context.errant_record_reporter
        for each in errant:
            if reporter is None:
                raise ConnectError(f"{each.error} ({_place(each)})") from each.error
            reporter.report(each.record, each.error)
        if reporter is not None and self._offsets is not None:
            # Also those of records that did not get as far as the task.
            reporter.flush()

    # -- held records --------------------------------------------------------------------------------------------

    def _drop_held(self) -> None:
        self._held, self._count = [], 0

    def _new(self, records: SinkBatch) -> SinkBatch:
        """Return the records that are not in the database yet, according to its offsets."""
        if not self._known:
            return records
        known = self._known
        pairs = zip(records.origins, records.original_offsets, strict=True)
        new = [place for place, (origin, offset) in enumerate(pairs) if offset >= known.get(origin, 0)]
        return records if len(new) == len(records) else records.take(new)

    def _ends(self) -> dict[TopicPartition, int]:
        """Return the next offset of each partition after the held records."""
        last: dict[TopicPartition, int] = {}
        for batch in self._held:
            last.update(zip(batch.origins, batch.original_offsets, strict=True))
        return {origin: offset + 1 for origin, offset in last.items()}

    def _start_over(self, error: OvertakenError) -> None:
        """Continue after the records that another task has written."""
        assert self._offsets is not None
        _log.warning("%s; continuing after those records", error)
        with self._database.errors("read the offsets"):
            stored = self._stored(self._offsets, self._tables.connection(), self.context.assignment)
        firsts: dict[TopicPartition, int] = {}
        for batch in self._held:
            for origin, offset in zip(batch.origins, batch.original_offsets, strict=True):
                firsts.setdefault(origin, offset)
        self._known = stored
        self.context.offset({**firsts, **{origin: at for origin, at in stored.items() if origin in firsts}})

    def _stored(
        self, table: OffsetsTable, connection: Connection, partitions: Collection[TopicPartition]
    ) -> dict[TopicPartition, int]:
        """Return the offsets of partitions in the database, and delete those that are of former topics."""
        stored = table.read(connection, partitions)
        former = {
            partition: each.offset
            for partition, each in stored.items()
            if each.topic_id is not None and self._ids.get(partition.topic, each.topic_id) != each.topic_id
        }
        for topic in sorted({partition.topic for partition in former}):
            reached = {partition.partition: at for partition, at in former.items() if partition.topic == topic}
            _log.warning(
                "Topic %s was deleted and created again: the offsets in table %s (by partition: %s) are those of the "
                "former topic and are deleted. The sink begins the new topic at the offsets of its group, or as "
                "auto.offset.reset says.",
                *(topic, self.config.offsets_table, reached),
            )
        table.alter(connection, dict.fromkeys(former))
        return {partition: each.offset for partition, each in stored.items() if partition not in former}

    def _retried(self, error: RetriableError) -> ConnectError:
        self._failures += 1
        if self._failures > self.config.max_retries:
            return ConnectError(
                f"{error} (tried {self._failures} times, as max.retries={self.config.max_retries} allows)"
            )
        _log.warning(
            "%s (%d of %d retries left)",
            error,
            self.config.max_retries - self._failures + 1,
            self.config.max_retries,
        )
        return RetriableError(str(error), retry_after=self.config.retry_backoff_ms / 1000)


class JdbcSinkConnector(SinkConnector[CheckedSinkConfig]):
    """Writes topics to tables of SQL databases."""

    task_class = JdbcSinkTask
    watches = False

    @classmethod
    def alter_offsets(cls, config: CheckedSinkConfig, offsets: Mapping[TopicPartition, int | None]) -> bool:
        """Alter the offsets in the database as well: with ``exactly-once`` those are the ones that count."""
        database = config.database(lambda _: True)
        try:
            table = _offsets_table(config, database)
            if table is not None:
                with database.errors("alter the offsets"):
                    connection = database.connection()
                    table.create(connection)
                    table.alter(connection, offsets)
        finally:
            database.dispose()
        return True


def _offsets_table(config: JdbcSinkConfig, database: Database) -> OffsetsTable | None:
    if not config.exactly_once:
        return None
    table = database.dialect.table_id(config.offsets_table)
    return OffsetsTable(table, config.originals.get("name") or "", writer_of(database.dialect))


def _cause(error: Exception) -> Exception:
    """Return the driver's error."""
    return getattr(error, "orig", None) or error


def _content(steps: Iterable[tuple[Group, Step]]) -> list[object]:
    return [(group.table, step.action, list(step.rows)) for group, step in steps]


def _place(errant: ErrantRecord) -> str:
    record = errant.record
    return f"record {record.original_topic}:{record.original_partition}:{record.original_offset}"
