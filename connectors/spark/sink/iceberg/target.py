"""Tables of Apache Iceberg: the offsets are committed with the rows, in one version of the table (I3).

A load writes its files first, against an unpublished version of the table. Then one commit makes the new version:
columns, files, the snapshot with the offsets in its summary, and their copy in the properties. Readers see nothing
before that, and a commit replaces exactly the version of the table that was checked before it.

======================  ======================================  ============================================
killed                  in the table                            the next start
======================  ======================================  ============================================
while files are         nothing; files that nothing refers to   loads the records again; the files are
written                                                         removed by the table's maintenance
before the commit       the same                                the same
in the commit           the old version or the new one          reads the offsets: they say which
after it, before the    the new version; a reader that trusts   goes on from its offsets, and brings the
version hint (local)    the hint still sees the old one         hint up to date
between two tables of   the load in the first table, which      loads what the others lack, and writes it
a load                  names the others                        only there
before Kafka's offsets  the table is ahead of the offsets of    goes on from the table's offsets
are committed           the group
======================  ======================================  ============================================

**Fencing.** A starting driver writes its claim into the properties of each table that has offsets of the connector.
Before every commit, a driver checks the very version it is going to replace. If the claim is not its own, it has lost
the table (:class:`FencedError`); if the offsets are not those it knows, it reads them again before it goes on. A
catalog that replaces claims without comparing them (REST does) still compares the head of the branch: of two drivers
with the same records, only one commits.

**Other writers.** Compaction, deletes, appends and expiry by others are commits like any other. If one comes first, the
load is committed on top of it with the files that are written already; if it has changed columns or partitions, the
load is repeated.
"""

from __future__ import annotations

import contextlib
import logging
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Final

from connect.bulk import OffsetRange
from connect.data import Schema, TopicPartition
from connect.errors import ConnectError, RetriableError
from connect.internals.crash import crash_point
from connect.kits.objects.location import LONGEST_FOLDER
from connect.sink import CompactedTable
from connectors.spark.decoding.changes import key_columns
from connectors.spark.decoding.plugins import has_transformations
from connectors.spark.decoding.row_limits import RowLimits
from connectors.spark.errors import root_cause
from connectors.spark.folder_fields import FolderField
from connectors.spark.iceberg.catalog import Change, IcebergCatalog, IcebergTable, TableName
from connectors.spark.iceberg.commit import ConflictError
from connectors.spark.iceberg.metadata import TableMetadata, claim_property, offsets_property
from connectors.spark.iceberg.partitions import PartitionBy, partitions_in
from connectors.spark.iceberg.positions import Positions, Step, next_offsets, next_step
from connectors.spark.sink.config import SparkSinkConfig
from connectors.spark.sink.iceberg.data_files import data_writing
from connectors.spark.sink.iceberg.layout import partitions_of, write_options
from connectors.spark.sink.iceberg.maintenance import maintain
from connectors.spark.sink.iceberg.staging import Staged, Staging
from connectors.spark.sink.iceberg.table_names import TableNames
from connectors.spark.sink.iceberg.types import columns_of, required_fields, uuid_fields
from connectors.spark.sink.loading.request import LoadRequest
from connectors.spark.sink.sql.windows import lost_query
from connectors.spark.sink.tables.held_rows import NO_STATE, HeldRows, TopicWindows
from connectors.spark.sink.tables.upsert import keys_property, keys_text, parse_keys, with_change, without_change
from connectors.spark.sink.target import CLIENTS, FencedError, TargetContents
from connectors.spark.stores.factory import open_store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from connectors.spark.sink.loading.loader import Loader

__all__ = ["IcebergTarget"]

logger = logging.getLogger(__name__)

_ATTEMPTS: Final = 10
_AT_ONCE: Final = 8
_FILE_SYSTEMS: Final = ("file", "hdfs", "viewfs")


@dataclass(frozen=True, slots=True)
class _Known:
    """A table as this driver knows it."""

    positions: Positions
    columns: Schema
    folders: tuple[FolderField, ...]
    longest_folder: int | None
    required: tuple[tuple[str, ...], ...]
    uuids: tuple[tuple[str, ...], ...]
    keys: tuple[str, ...]
    """The columns by which the connector's changes have found rows, if there were any."""

    @property
    def limits(self) -> RowLimits:
        """What its rows may not have, so that there can be folders for them, and it allows them."""
        longest = self.longest_folder
        return RowLimits(self.folders, hive=False, longest=longest, required=self.required, uuids=self.uuids)


class IcebergTarget:
    """Iceberg tables in one catalog; a :class:`~connectors.spark.sink.target.Target`."""

    def __init__(self, config: SparkSinkConfig, connector: str, spark: Callable[[], SparkSession]) -> None:
        self._config = config
        self._connector = connector
        self._spark = spark
        self._naming = TableNames.of(config)
        self._writing = data_writing(config)
        self._store = config.location.uri if config.has_store else ""
        self._routed = has_transformations({key: value for key, value in config.originals.items() if value is not None})
        self._catalog: IcebergCatalog | None = None
        self._epoch = 0
        self._claim = ""
        self._tables: dict[TableName, _Known] = {}
        self._in_no_table: dict[TopicPartition, int] = {}
        self._changes: dict[str, Schema] = {}
        self._held: HeldRows | None = None
        self._doubtful = False

    # -- the target ------------------------------------------------------------------------------------------

    @property
    def packages(self) -> Sequence[str]:
        """The client of S3, if executors write files there themselves."""
        return CLIENTS["s3"] if self._writing is not None and self._writing.bucket is not None else ()

    @property
    def offsets(self) -> Mapping[TopicPartition, int]:
        """The next offsets according to all tables; for partitions in none of them, this driver's own position."""
        return self._in_no_table | next_offsets(self._positions())

    @property
    def topics(self) -> Mapping[str, str]:
        """The topic ids that any table records."""
        topics = [item for known in self._tables.values() for item in known.positions.topics.items()]
        return {name: topic.topic_id for name, topic in topics if topic.topic_id is not None}

    @property
    def catalog(self) -> IcebergCatalog:
        """The catalog; available once the target is open."""
        assert self._catalog is not None
        return self._catalog

    def peek(self) -> TargetContents:
        """Return the tables as they are in their catalog, whoever has claimed them."""
        self._catalog = IcebergCatalog(self._spark(), self._config)
        for name in self._names():
            table = self.catalog.table(name)
            if table is not None:
                self._note(name, table.metadata)
        found = self._known(self._noted, Staging(self._begin, self._naming.table, ()))
        return TargetContents(
            found, offsets=self.offsets, place=lambda table: str(self._naming.table(table)), limits=self._limits
        )

    def open(self) -> None:
        """Claim the tables that have offsets of the connector."""
        self._catalog = IcebergCatalog(self._spark(), self._config)
        try:
            with ThreadPoolExecutor(_AT_ONCE) as threads:
                found = [table for table in threads.map(self._catalog.table, self._names()) if table is not None]
                claims = [table.metadata.properties.get(claim_property(self._connector)) for table in found]
                self._epoch = 1 + max(map(_epoch, claims), default=0)
                self._claim = f"{self._epoch}-{uuid.uuid4().hex}"
                ours = [table for table in found if self._positions_of(table.metadata).topics]
                list(threads.map(self._take_over, ours))
        except ConnectError:
            raise
        except Exception as error:
            raise ConnectError(f"The Iceberg tables cannot be opened: {root_cause(error)}") from error
        crash_point("after-claim")
        if numbers := self._states():
            self._rows.clear(numbers, self._check_claims)

    def recover(self) -> None:
        """Read the tables again, if the last load ended in an error."""
        if self._doubtful:
            known, self._tables = self._tables, {}
            for name in {*known, *self._names()}:
                table = self.catalog.table(name)
                if table is not None:
                    self._check_claim(table.metadata, is_known=name in known)
                    self._note(name, table.metadata)
            self._doubtful = False

    def load(self, ranges: Sequence[OffsetRange], loader: Loader) -> None:
        """Write the records step by step, starting with those that an interrupted load has not written to all
        tables."""
        self._doubtful = True
        for part in self._parts(ranges):
            rest = tuple(part)
            while rest:
                step = next_step(rest, self._positions())
                self._load(step, loader)
                rest = tuple(sorted(step.rest))
        self._doubtful = False

    def skip(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Commit a snapshot without files to each table of these topics.

        For a topic without a table, nothing needs to be stored here: Kafka's own offsets count.
        """
        self._doubtful = True
        for name, known in list(self._tables.items()):
            topics = known.positions.topics
            ranges = [OffsetRange(*tp, offset, offset) for tp, offset in offsets.items() if tp.topic in topics]
            if ranges:
                self._commit(name, known.positions.advanced(ranges))
        self._in_no_table |= offsets
        self._doubtful = False

    def compact(self, tables: Collection[str] | None, stopping: Callable[[], bool]) -> Iterator[CompactedTable]:
        """Merge the files of each table on its main branch, and remove what no snapshot needs any more."""
        wanted = None if tables is None else {self._naming.table(table) for table in tables}
        for name in sorted(self._tables):
            if stopping():
                return
            table = self.catalog.table(name) if wanted is None or name in wanted else None
            if table is None:
                continue
            self._check_claim(table.metadata, is_known=True)
            try:
                done = maintain(self._spark(), table, self._config.target_file_size_bytes)
            except Exception as error:
                raise RetriableError(f"Table {name} was not compacted: {root_cause(error)}") from error
            if done is not None:
                yield done

    # -- a load ----------------------------------------------------------------------------------------------

    def _parts(self, ranges: Sequence[OffsetRange]) -> Iterator[Sequence[OffsetRange]]:
        """Yield groups of ranges that may be committed together: changes of one topic must see the rows of
        another's.
        """
        if self._config.changes is None:
            yield ranges
            return
        for _, group in groupby(ranges, key=lambda item: item.topic):
            yield list(group)

    def _load(self, step: Step, loader: Loader) -> None:
        staging = Staging(self._begin, self._naming.table, step.done)
        windows = {topic: self._windows_of(topic, step) for topic in {item.topic for item in step.ranges}}
        try:
            routes = self._stage(step, loader, staging, windows)
        except Exception:
            # Whatever is left of it does no harm, and is removed by table maintenance.
            with contextlib.suppress(Exception):
                staging.discard()
            raise
        crash_point("after-staging-write")
        try:
            self._publish(step, routes, staging, windows)
        except ConnectError:
            raise
        except Exception as error:
            raise RetriableError(f"An Iceberg table could not be committed: {root_cause(error)}") from error
        if any(each is not None for each in windows.values()):
            self._rows.tidy(self._states())

    def _stage(
        self, step: Step, loader: Loader, staging: Staging, windows: Mapping[str, TopicWindows | None]
    ) -> dict[str, set[TableName]]:
        """Write the files of a step; return the tables to which each topic's rows go."""
        crash_point("before-staging-write")
        routes: dict[str, set[TableName]] = {}
        groups = [list(group) for _, group in groupby(step.ranges, key=lambda item: item.topic)]
        for together in [groups] if self._are_apart(groups) else [[group] for group in groups]:
            parts = [staging.part() for _ in together]
            requests = [
                self._request(group, self._known(self._columns_of, part), part, windows[group[0].topic])
                for group, part in zip(together, parts, strict=True)
            ]
            for request, part, loaded in zip(requests, parts, loader.load_topics(requests), strict=True):
                self._changes |= {table: schema for table, schema in loaded.tables.items() if key_columns(schema)}
                routes[request.topic] = part.keep(loaded) | set(map(self._naming.table, loaded.held))
        size, files = staging.written
        loader.progress.wrote(size=size, files=files)
        return routes

    def _request(
        self, ranges: Sequence[OffsetRange], known: _Columns, part: Staging, windows: TopicWindows | None
    ) -> LoadRequest:
        if windows is None:
            return LoadRequest(ranges, known, part, files=part.files, check=self._check, limits=self._limits)
        state = windows.state(self._config.windows)
        return LoadRequest(ranges, known, part, records=windows.records, windows=state)

    def _known(self, found: Callable[[TableName], Schema | None], staging: Staging) -> _Columns:
        return _Columns(found, staging, self._seen)

    def _seen(self, table: str, columns: Schema) -> Schema:
        """Return the schema of a table's records, which are changes or rows."""
        plan = self._config.changes
        if plan is None:
            return columns
        known = self._tables.get(self._naming.table(table))
        return with_change(columns, self._changes.get(table), plan.keys or (known.keys if known else ()))

    def _check(self, table: str, schema: Schema) -> None:
        """Raise :class:`~connect.errors.SchemaError` if there can be no table for these rows."""
        columns = without_change(schema)
        for item in self._partitions(self._naming.table(table)):
            item.check(columns)

    def _limits(self, table: str, schema: Schema) -> RowLimits:
        """Return what the rows of a table may not have, be it new or known."""
        name = self._naming.table(table)
        known = self._tables.get(name)
        if known is not None:
            return known.limits
        columns = without_change(schema)
        fields = [each.folder_field(columns) for each in self._partitions(name) if each.tells_values]
        return RowLimits(fields, hive=False, longest=_longest(self._config.iceberg_catalog_warehouse or self._store))

    def _are_apart(self, groups: Sequence[Sequence[OffsetRange]]) -> bool:
        """Return whether each topic has its own table, so that all of them can be loaded at the same time."""
        if self._routed or self._config.changes is not None:
            return False
        tables = {self._naming.table(group[0].topic) for group in groups}
        return len(tables) == len(groups)

    def _publish(
        self,
        step: Step,
        routes: Mapping[str, Collection[TableName]],
        staging: Staging,
        windows: Mapping[str, TopicWindows | None],
    ) -> None:
        complete = next_offsets(self._positions())
        loads: dict[TableName, list[tuple[list[OffsetRange], list[str]]]] = {}
        for topic, with_rows in routes.items():
            ranges = [item for item in step.ranges if item.topic == topic]
            tables = self._tables_of(ranges, with_rows, step.done)
            if not tables:
                self._in_no_table |= {item.topic_partition: item.end for item in ranges}
            for name in tables:
                if str(name) not in step.done:
                    loads.setdefault(name, []).append((ranges, [str(each) for each in tables]))
        for number, (name, parts) in enumerate(sorted(loads.items())):
            if number:
                crash_point("between-tables")
            known = self._tables.get(name)
            positions = Positions() if known is None else known.positions.without_pending(complete)
            for ranges, tables_of_load in parts:
                positions = positions.advanced(ranges, tables_of_load)
            for topic, held in windows.items():
                if held is not None and str(name) in held.numbers:
                    positions = positions.holding(topic, held.numbers[str(name)])
            self._commit(name, positions, staging.of(name))

    def _tables_of(
        self, ranges: Sequence[OffsetRange], with_rows: Iterable[TableName], done: Collection[str]
    ) -> list[TableName]:
        """Return the tables that get a commit of a load of one topic, including those that have it already."""
        names = {str(name): name for name in self._tables}
        tables = set(with_rows)
        for item in ranges:
            for known in self._tables.values():
                load = known.positions.pending(item.topic_partition)
                if done and load is not None:
                    tables |= {names.get(name) or self._naming.parsed(name) for name in load.tables}
        if not tables:
            # No row was written: any table that has the topic can record the new offsets.
            topic = ranges[0].topic
            tables = set(sorted(name for name, known in self._tables.items() if topic in known.positions.topics)[:1])
        return sorted(tables)

    # -- windows ---------------------------------------------------------------------------------------------

    @property
    def _rows(self) -> HeldRows:
        """The rows held by windows, stored beside the tables."""
        if self._held is None:
            self._held = HeldRows(open_store(self._config, self._spark), self._connector)
        return self._held

    def _states(self) -> list[int]:
        """Return the numbers of the window states that tables refer to."""
        topics = [topic for positions in self._positions().values() for topic in positions.topics.values()]
        return [topic.windows for topic in topics if topic.windows != NO_STATE]

    def _windows_of(self, topic: str, step: Step) -> TopicWindows | None:
        """Return the windows of a topic, if the query has windows, or left some open earlier."""
        numbers = {
            name: positions.topics[topic].windows
            for name, positions in self._positions().items()
            if topic in positions.topics
        }
        before = {name: self._rows.read(number, name) for name, number in numbers.items() if number != NO_STATE}
        if before and not self._config.has_query:
            raise lost_query(topic)
        if self._config.windows is None and not before:
            return None

        def table_of(name: str) -> str:
            return str(self._naming.table(name))

        return TopicWindows(self._rows, before, table_of, lambda name: table_of(name) in step.done)

    def _check_claims(self) -> None:
        for name in self._tables:
            table = self.catalog.table(name)
            if table is not None:
                self._check_claim(table.metadata, is_known=True)

    # -- one table -------------------------------------------------------------------------------------------

    def _begin(self, name: TableName, schema: Schema) -> Staged:
        """Begin the table change that the files of a load are written for."""
        known = self._tables.get(name)
        if known is None:
            return self._begin_new(name, schema)
        table = self.catalog.table(name)
        if table is None:
            raise RetriableError(f"Table {name} no longer exists; reading the tables again.")
        if _columns(table.metadata) != known.columns:
            raise RetriableError(f"Table {name} was altered; reading it again.")
        return Staged(table.change(), self._branch(name), known.columns, write_options(self._config), self._writing)

    def _begin_new(self, name: TableName, schema: Schema) -> Staged:
        config = self._config
        if not config.iceberg_tables_auto_create_enabled:
            raise ConnectError(
                f"Table {name} does not exist, and iceberg.tables.auto-create-enabled is false: create the "
                "table, or set the key to true."
            )
        change = self.catalog.new_table(name, schema, self._partitions(name), config.iceberg_table_properties())
        return Staged(change, self._branch(name), schema, write_options(self._config), self._writing)

    def _partitions(self, name: TableName) -> tuple[PartitionBy, ...]:
        return self._config.iceberg_partitions(str(name), partitions_of(self._config))

    def _commit(self, name: TableName, positions: Positions, staged: Staged | None = None) -> None:
        """Commit the files of a table together with its new positions."""
        for _ in range(_ATTEMPTS):
            change = self._prepared(name, staged)
            offsets = {offsets_property(self._connector): positions.to_text()}
            files, replaced = ([], []) if staged is None else (staged.files, staged.replaced)
            change.add_snapshot(files, replaced, self._branch(name), offsets)
            claim = {claim_property(self._connector): self._claim}
            claimed = change.base_properties.get(claim_property(self._connector)) == self._claim
            change.set_properties((offsets if claimed else offsets | claim) | self._keys_to_note(change, staged))
            crash_point("before-commit")
            try:
                change.commit()
            except ConflictError as error:
                if change.is_new:
                    raise RetriableError(f"Table {name} was not created ({error}); reading it again.") from error
                logger.info("Another writer has just committed to table %s; committing on top of it.", name)
                continue
            crash_point("after-commit")
            self._note(name, change.metadata)
            return
        raise RetriableError(f"Other writers kept committing to table {name}; repeating the load.")

    def _keys_to_note(self, change: Change, staged: Staged | None) -> dict[str, str]:
        """Return the property that names the columns by which changes find rows, if it is to change."""
        name, text = keys_property(self._connector), keys_text(() if staged is None else staged.keys)
        is_noted = staged is None or not staged.keys or change.base_properties.get(name) == text
        return {} if is_noted else {name: text}

    def _prepared(self, name: TableName, staged: Staged | None) -> Change:
        """Begin a change to the newest version of a table, after checking that version."""
        if staged is not None and staged.change.is_new:
            return staged.change
        table = self.catalog.table(name)
        if table is None:
            raise RetriableError(f"Table {name} no longer exists; reading the tables again.")
        change = table.change()
        self._check_claim(change.base, is_known=True)
        if self._positions_of(change.base) != self._tables[name].positions:
            raise RetriableError(f"The offsets of table {name} have changed; reading them again.")
        if staged is not None:
            staged.repeat_on(change)
        return change

    def _take_over(self, table: IcebergTable) -> None:
        """Claim a table, whoever holds it."""
        for _ in range(_ATTEMPTS):
            change = table.change()
            change.set_properties({claim_property(self._connector): self._claim})
            try:
                change.commit()
            except ConflictError:
                continue
            self._note(table.name, change.metadata)
            return
        raise RetriableError(f"Other writers kept committing to table {table.name}, so it could not be claimed.")

    def _check_claim(self, metadata: TableMetadata, *, is_known: bool) -> None:
        claim = metadata.properties.get(claim_property(self._connector))
        if claim not in (None, self._claim) and (is_known or _epoch(claim) >= self._epoch):
            raise FencedError(
                f"Another driver of connector {self._connector} has taken over table {metadata.name}. This one "
                "stops, and has committed nothing since. If both should run, give one of them another name."
            )

    def _note(self, name: TableName, metadata: TableMetadata) -> None:
        columns = _columns(metadata)
        folders = tuple(each.folder_field(columns) for each in partitions_in(metadata.document))
        required, uuids = required_fields(metadata.schema), uuid_fields(metadata.schema)
        longest = _longest(metadata.data_place)
        keys = parse_keys(metadata.properties.get(keys_property(self._connector)))
        self._tables[name] = _Known(self._positions_of(metadata), columns, folders, longest, required, uuids, keys)

    def _columns_of(self, name: TableName) -> Schema | None:
        """Return the columns of a table, even if this driver has not written to it."""
        if name not in self._tables:
            table = self.catalog.table(name)
            if table is None:
                return None
            self._check_claim(table.metadata, is_known=False)
            self._note(name, table.metadata)
        return self._tables[name].columns

    def _noted(self, name: TableName) -> Schema | None:
        known = self._tables.get(name)
        return None if known is None else known.columns

    def _positions(self) -> dict[str, Positions]:
        return {str(name): known.positions for name, known in self._tables.items()}

    def _positions_of(self, metadata: TableMetadata) -> Positions:
        return metadata.positions(self._connector, self._branch(metadata.name))

    def _branch(self, name: object) -> str:
        return self._config.iceberg_branch(str(name))

    def _names(self) -> list[TableName]:
        """Return the tables that may have the connector's offsets."""
        if self._naming.known is not None:
            return list(self._naming.known)
        return [TableName(self._naming.namespace, name) for name in self.catalog.names(self._naming.namespace)]


class _Columns(Mapping[str, Schema]):
    """The columns of tables by the loader's names, including those of the current load."""

    def __init__(
        self,
        found: Callable[[TableName], Schema | None],
        staging: Staging,
        seen: Callable[[str, Schema], Schema],
    ) -> None:
        self._found = found
        self._staging = staging
        self._seen = seen

    def __getitem__(self, table: str) -> Schema:
        name = self._staging.naming(table)
        staged = self._staging.of(name)
        columns = self._found(name) if staged is None else staged.columns
        if columns is None:
            raise KeyError(table)
        return self._seen(table, columns)

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


def _longest(place: str) -> int | None:
    """Return the most bytes in the name of a folder at a place, if limited."""
    return LONGEST_FOLDER if place.partition(":")[0] in _FILE_SYSTEMS or place.startswith("/") else None


def _columns(metadata: TableMetadata) -> Schema:
    return columns_of(metadata.schema, metadata.declared)


def _epoch(claim: str | None) -> int:
    number = "" if claim is None else claim.partition("-")[0]
    return int(number) if number.isdecimal() else 0
