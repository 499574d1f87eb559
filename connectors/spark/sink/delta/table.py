"""One Delta table that a connector writes to: its columns, and the loads that are planned and committed in its log.

=========================  ==============================  =====================================================
killed                     in the log                      the next start
=========================  ==============================  =====================================================
before the plan            an odd number                   takes the table over with the next odd number; loads
                                                           from the existing offsets
after the plan             an even number, with the        the same: the offsets that count are those from before
                           offsets before and after        the load
while Spark writes         the same; Parquet files that    the same; ``VACUUM`` deletes the files
                           the log does not name
after the commit           the odd number after it, the    the same: the offsets after the load count
                           rows
between the tables of a    the same in some tables         loads those records again, but only into the other
load (routed records)                                      tables
before Kafka's offsets     the log is ahead of the         loading continues from the offsets of the log
are committed              group's offsets
=========================  ==============================  =====================================================

Rows and number are one Delta commit, so a reader sees all of a load or none of it, and each record once.

**Fencing.** Each plan, each commit of rows and each take-over sets the number, based on the number that it has read. So
of two at the same time, Delta refuses one. A driver that was fenced finds a number that it has not set: its plan is
refused, and so are rows that it had planned: an append checks all numbers itself, and Delta drops a merge whose number
is below that of the log.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from pyspark.sql.types import StructType

from connect.data import Schema, TopicPartition
from connect.errors import ConnectError, RetriableError
from connect.internals.crash import crash_point
from connectors.spark.delta.columns import (
    SCHEMA_PROPERTY,
    column_types,
    has_odd_names,
    is_widened,
    remembered_text,
    schema_of_columns,
)
from connectors.spark.delta.log import DeltaLog, StaleLogError, is_conflict
from connectors.spark.errors import root_cause
from connectors.spark.sink.delta.positions import Positions, application
from connectors.spark.sink.tables.upsert import keys_property, keys_text, parse_keys
from connectors.spark.sink.target import FencedError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["DeltaTable"]

logger = logging.getLogger(__name__)

_RETENTION: Final = "delta.setTransactionRetentionDuration"
_MAPPING: Final = "delta.columnMapping.mode"
_WIDENING: Final = "delta.enableTypeWidening"


class DeltaTable:
    """A table of a connector. It belongs to the driver that last called :meth:`take_over` or planned a load."""

    def __init__(self, spark: SparkSession, name: str, path: str, connector: str) -> None:
        self.name = name
        self.path = path
        self._spark = spark
        self._connector = connector
        self._application = application(connector)
        self._log = DeltaLog(spark, path)
        self._versions: dict[str, int] | None = self._log.versions(self._application)
        self._checked: Schema | None = None
        self._keys: Sequence[str] = ()

    @property
    def exists(self) -> bool:
        """Whether the table existed when it was last read."""
        return self._versions is not None

    @property
    def positions(self) -> Positions:
        """The connector's positions, as this driver last read or wrote them."""
        return Positions.read(self._connector, self._versions or {})

    def schema(self) -> Schema | None:
        """Return the schema of the table, if it exists."""
        if not self.exists:
            return None
        return schema_of_columns(self._log.schema(), self._log.properties().get(SCHEMA_PROPERTY))

    def keys(self) -> tuple[str, ...]:
        """Return the columns by which the connector's changes have found rows, if there were any."""
        return parse_keys(self._log.properties().get(keys_property(self._connector))) if self.exists else ()

    @property
    def partition_columns(self) -> tuple[str, ...]:
        """The columns by which the table is partitioned, if it exists."""
        return self._log.partition_columns() if self.exists else ()

    @property
    def required(self) -> tuple[tuple[str, ...], ...]:
        """The paths of columns, and of fields in them, that must not be null."""
        return tuple(_required(self._log.schema(), ())) if self.exists else ()

    # -- changes of the positions ----------------------------------------------------------------------------

    def take_over(self) -> None:
        """Take over the table, if its connector has ever written to it."""
        while self._versions:
            try:
                self._set(self.positions.claim())
            except FencedError:
                logger.info("Another driver has written to %s; reading its log again.", self.path)
                self._versions = self._log.versions(self._application)
            else:
                crash_point("after-take-over")
                return

    def check_owner(self) -> None:
        """Read the positions again; raise :class:`FencedError` if another driver has set them.

        Even without another driver they may be newer than expected, if an error came after a commit.
        """
        found = self._log.versions(self._application)
        known = self._versions
        if found != known and not (known and found == {**known, **self.positions.commit()} and self._is_planned()):
            raise self._fenced()
        self._versions = found

    def finish(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Record that all tables of the load have the records up to these offsets."""
        self._set(self.positions.finish(offsets))

    def skip(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Continue from these offsets."""
        self._set(self.positions.skip(offsets, _now()))

    # -- a load ----------------------------------------------------------------------------------------------

    def prepare(self, schema: Schema, partitioned_by: tuple[str, ...], keys: Sequence[str] = ()) -> None:
        """Create the table, or check that a load with this schema can change its columns, and note by which columns
        changes find rows.
        """
        if not self.exists:
            self._create(schema, partitioned_by)
        elif self._checked is not schema:
            self._check_partitions(partitioned_by)
            self._make_room(schema)
        if keys and self._keys != keys:
            if self.keys() != keys:
                self._log.set_properties({keys_property(self._connector): keys_text(keys)})
            self._keys = keys
        self._checked = schema

    def load(
        self,
        starts: Mapping[TopicPartition, int],
        ends: Mapping[TopicPartition, int],
        *,
        routed: bool,
        ids: Mapping[str, str],
        windows: Mapping[str, int],
        write: Callable[[str, int], None],
        is_merge: bool = False,
    ) -> tuple[int, int]:
        """Plan a load, and let ``write`` commit its rows with an application id and a version.

        A merge (``is_merge``) makes no commit if it changes nothing. ``windows`` are the states that the load leaves,
        by topic. Return the number of bytes and files written.
        """
        crash_point("before-plan")
        self._set(self.positions.plan(starts, ends, routed=routed, ids=ids, windows=windows, now=_now()))
        crash_point("after-plan")
        number, before = self.positions.number + 1, self._log.newest()
        try:
            write(self._application, number)
        except Exception as error:
            if self._has_committed(number):
                logger.info("Load %d of %s is committed despite this error: %s", number, self.path, root_cause(error))
                return self._added(number, before)
            if is_conflict(error):
                changed = "rows that the load would change" if is_merge else "the columns or properties"
                raise RetriableError(
                    f"Another writer has changed {changed} of the Delta table {self.path}; repeating the load."
                ) from error
            raise
        if not self._has_committed(number):
            if not is_merge:
                raise RetriableError(
                    f"The commit of load {number} is no longer in the log of the Delta table {self.path}: another "
                    "writer has replaced it. Repeating the load."
                )
            self._set(self.positions.commit())
        crash_point("after-table-commit")
        return self._added(number, before)

    def append(self, rows: DataFrame, application: str, number: int) -> None:
        """Append the rows of a planned load; a ``write`` for :meth:`load`."""
        self._log.append(rows, application, self._versions or {}, {application: number}, _now())

    def _added(self, number: int, before: int) -> tuple[int, int]:
        try:
            return self._log.added(self._application, number, before)
        except Exception:
            # The load is committed: it does not fail because its size is unknown.
            return 0, 0

    def _has_committed(self, number: int) -> bool:
        self.check_owner()
        return self.positions.number == number

    def _is_planned(self) -> bool:
        return self.positions.number % 2 == 0

    def _set(self, changes: Mapping[str, int]) -> None:
        known = self._versions or {}
        try:
            self._log.set_versions(self._application, known, changes, _now())
        except StaleLogError:
            raise self._fenced() from None
        self._versions = {**known, **changes}

    def _fenced(self) -> FencedError:
        return FencedError(
            f"Another driver has taken over connector {self._connector} in the Delta table {self.path}. This one "
            "stops. If that was not a restart, make sure that no other worker or cluster runs a connector of the same "
            "name against the same store.url."
        )

    # -- columns ---------------------------------------------------------------------------------------------

    def _create(self, schema: Schema, partitioned_by: tuple[str, ...]) -> None:
        columns = column_types(schema)
        properties = {SCHEMA_PROPERTY: remembered_text(schema)}
        if has_odd_names(columns):
            properties[_MAPPING] = "name"
        try:
            self._log.create(columns, partitioned_by, properties)
        except Exception as error:
            if not is_conflict(error):
                raise ConnectError(f"Delta cannot create the table {self.path}: {root_cause(error)}") from error
            logger.info("Another driver has created %s.", self.path)
        self._versions = self._log.versions(self._application)
        if self._versions:
            raise self._fenced()
        crash_point("after-create")

    def _check_partitions(self, partitioned_by: tuple[str, ...]) -> None:
        there = self._log.partition_columns()
        if partitioned_by and there != partitioned_by:
            raise ConnectError(
                f"The Delta table {self.path} is partitioned by {', '.join(there) or 'nothing'}, but "
                f"partition.field.name={','.join(partitioned_by)}, and a table cannot change its partitioning. "
                "Set the key to the table's columns, or load into another topics.dir."
            )

    def _make_room(self, schema: Schema) -> None:
        """Allow the column changes that the schema needs; the load itself makes them, in the commit of its rows."""
        properties = self._log.properties()
        if _RETENTION in properties:
            raise ConnectError(
                f"The Delta table {self.path} has {_RETENTION}={properties[_RETENTION]}, after which Delta "
                "would forget the connector's offsets, and records would be loaded twice. Remove the property "
                f"(ALTER TABLE ... UNSET TBLPROPERTIES ('{_RETENTION}'))."
            )
        there, wanted = self._log.schema(), column_types(schema)
        changes = {SCHEMA_PROPERTY: remembered_text(schema)}
        if is_widened(there, wanted):
            changes[_WIDENING] = "true"
        if properties.get(_MAPPING, "none") == "none" and has_odd_names(wanted):
            changes |= {_MAPPING: "name", "delta.minReaderVersion": "2", "delta.minWriterVersion": "5"}
        if there != wanted and any(properties.get(name) != value for name, value in changes.items()):
            self._log.set_properties(changes)


def _required(struct: StructType, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    for field in struct.fields:
        name = (*path, field.name)
        if not field.nullable:
            yield name
        if isinstance(field.dataType, StructType):
            yield from _required(field.dataType, name)


def _now() -> int:
    return time.time_ns() // 1_000_000
