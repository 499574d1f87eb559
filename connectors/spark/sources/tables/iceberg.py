"""Iceberg tables as sources: snapshots are versions, and the ancestors of the newest snapshot are the history."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from connect.errors import ConnectError
from connectors.spark.iceberg.catalog import CatalogConfig, IcebergCatalog, IcebergTable, TableName, java_instance
from connectors.spark.iceberg.metadata import SCHEMA_PROPERTY
from connectors.spark.sources.tables.lake_table import CHANGE, DELETED, INSERTED, TableFile
from connectors.spark.sources.tables.steps import Commit, Kind, TablePosition, check_history

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["IcebergSource", "snapshot_commits", "use_catalog"]

_CATALOG: Final = "sluice_source"
_MAIN: Final = "main"
_KINDS: Final = {"append": Kind.APPEND, "replace": Kind.NOTHING}
_BESIDE: Final = ("_change_type", "_change_ordinal", "_commit_snapshot_id")


def use_catalog(spark: SparkSession, config: CatalogConfig) -> IcebergCatalog:
    """Register the configured catalog with the session, under a name that appears nowhere else, and return it."""
    store = config.location.uri if config.has_store else None
    # The table is reloaded before each step, so nothing may be cached for it.
    settings = {**config.iceberg_catalog_properties(store), "cache-enabled": "false"}
    for key, value in settings.items():
        spark.conf.set(f"spark.sql.catalog.{_CATALOG}.{key}", value)
    for key, text in config.originals_with_prefix("iceberg.hadoop.").items():
        spark.conf.set(f"spark.sql.catalog.{_CATALOG}.hadoop.{key}", text or "")
    spark.conf.set(f"spark.sql.catalog.{_CATALOG}", "org.apache.iceberg.spark.SparkCatalog")
    return IcebergCatalog(spark, config)


class IcebergSource:
    """A table of a catalog; a :class:`~connectors.spark.sources.tables.lake_table.LakeTable`."""

    def __init__(self, spark: SparkSession, catalog: IcebergCatalog, name: TableName) -> None:
        self._spark = spark
        self._java: Any = spark._jvm
        self._catalog = catalog
        self._name = name
        self._table: IcebergTable | None = None

    @property
    def name(self) -> str:
        """The table's name with its namespace."""
        return str(self._name)

    @property
    def remembered(self) -> str | None:
        """The schema stored in the table's property."""
        return None if self._table is None else self._table.metadata.properties.get(SCHEMA_PROPERTY)

    def refresh(self) -> int | None:
        """Return the newest snapshot of the main branch."""
        self._table = self._catalog.table(self._name)
        if self._table is None:
            raise ConnectError(
                f"There is no Iceberg table {self.name}: check tables, topics.dir and the catalog's keys."
            )
        return self._table.metadata.head(_MAIN)

    def commits(self, reached: TablePosition) -> Sequence[Commit]:
        """Return the snapshots after the one reached."""
        return snapshot_commits(self._known.metadata.document, self._known.metadata.head(_MAIN), reached, self.name)

    def time_of(self, version: int) -> int:
        """Return when the snapshot was committed."""
        found = (each["timestamp-ms"] for each in self._known.metadata.document["snapshots"])
        times = dict(
            zip((each["snapshot-id"] for each in self._known.metadata.document["snapshots"]), found, strict=True)
        )
        return int(times.get(version, 0))

    def files(self, after: int | None, upto: int) -> Sequence[TableFile]:
        """Return the data files of a snapshot, or those appended since another snapshot."""
        table = self._known.java_table
        if after is None:
            scan = table.newScan().useSnapshot(upto)
        else:
            scan = table.newIncrementalAppendScan().fromSnapshotExclusive(after).toSnapshot(upto)
        planned = scan.planFiles()
        lists = self._java.org.apache.iceberg.relocated.com.google.common.collect.Lists
        try:
            tasks = list(lists.newArrayList(planned))
        finally:
            planned.close()
        files = [TableFile(str(task.file().location()), int(task.length()), task) for task in tasks]
        return sorted(files, key=lambda file: file.path)

    @contextmanager
    def rows(self, version: int, files: Sequence[TableFile]) -> Iterator[DataFrame]:  # noqa: ARG002
        """The rows of the files, in the table's current columns."""
        table, group = self._known.java_table, f"sluice-{uuid.uuid4().hex}"
        cache = java_instance(self._spark, "org.apache.iceberg.spark.SparkTableCache")
        manager = self._java.org.apache.iceberg.spark.ScanTaskSetManager.get()
        tasks = self._java.java.util.ArrayList()
        for file in files:
            tasks.add(file.java)
        # Iceberg uses the session of the current thread.
        self._java.org.apache.spark.sql.classic.SparkSession.setActiveSession(self._spark._jsparkSession)
        cache.add(group, table)
        manager.stageTasks(table, group, tasks)
        try:
            yield self._spark.read.format("iceberg").load(group)
        finally:
            manager.removeTasks(table, group)
            cache.remove(group)

    def changes(self, after: int, version: int) -> DataFrame:
        """Return the rows of the files that the snapshot has removed and added."""
        from pyspark.sql import functions as f  # noqa: PLC0415 - pyspark takes half a second to import

        parts = (_CATALOG, *self._name.namespace, self._name.name, "changes")
        reader = self._spark.read.format("iceberg")
        reader = reader.option("start-snapshot-id", str(after)).option("end-snapshot-id", str(version))
        frame = reader.load(".".join(f"`{part}`" for part in parts))
        # Iceberg would take a condition simple enough to be pushed down for one on a column of the table.
        kind = f.when(f.substring("_change_type", 1, 1) == "D", DELETED).otherwise(INSERTED)
        return frame.withColumn(CHANGE, kind).drop(*_BESIDE)

    @property
    def _known(self) -> IcebergTable:
        assert self._table is not None, "a table is refreshed before it is read"
        return self._table


def snapshot_commits(
    document: Mapping[str, Any], head: int | None, reached: TablePosition, table: str
) -> Sequence[Commit]:
    """Return the snapshots of a branch after the one reached, according to the table's metadata."""
    snapshots = {item["snapshot-id"]: item for item in document.get("snapshots", ())}
    found: list[Commit] = []
    number = head
    while number is not None and number != reached.version and number in snapshots:
        snapshot = snapshots[number]
        kind = _KINDS.get(snapshot.get("summary", {}).get("operation"), Kind.CHANGE)
        found.append(Commit(number, _as_seen(kind, snapshot), snapshot["timestamp-ms"]))
        number = snapshot.get("parent-snapshot-id")
    check_history(table, reached, number)
    return found[::-1]


def _as_seen(kind: Kind, snapshot: Mapping[str, Any]) -> Kind:
    """Return an append without rows, such as the Spark sink's offset-only commits, changes nothing."""
    summary = snapshot.get("summary", {})
    if kind is Kind.APPEND and summary.get("added-data-files", "0") == "0":
        return Kind.NOTHING
    files = ("added-data-files", "deleted-data-files", "added-delete-files", "removed-delete-files")
    if kind is Kind.CHANGE and all(summary.get(name, "0") == "0" for name in files):
        return Kind.NOTHING
    return kind
