"""Maintains an Iceberg table: merges small files, and removes files that are no longer needed.

Each step is a commit of Iceberg's own that changes no row; readers and loads continue. The connector's offsets are
kept: a compaction's snapshot has none, so those of the previous snapshot count and, once that has expired, the copy in
the properties. A kill between two steps leaves the later ones to the next compaction.

Snapshots are kept for ``history.expire.max-snapshot-age-ms`` (a table property, 5 days by default). Files that no
snapshot refers to, such as those of killed loads, are removed once they are 3 days old: no load in progress can have
written them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from connect.sink import CompactedTable
from connectors.spark.iceberg.catalog import IcebergTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["maintain"]


def maintain(spark: SparkSession, table: IcebergTable, file_size: int | None) -> CompactedTable | None:
    """Compact a table and clean up after it; returns what was merged, if anything."""
    session: Any = spark._jsparkSession
    java: Any = spark._jvm
    java.org.apache.spark.sql.classic.SparkSession.setActiveSession(session)
    actions = java.org.apache.iceberg.spark.actions.SparkActions.get(session)
    opened = table.java_table
    before = _size(opened)
    rewriting = actions.rewriteDataFiles(opened)
    if file_size is not None:
        rewriting = rewriting.option("target-file-size-bytes", str(file_size))
    merged = int(rewriting.execute().rewrittenDataFilesCount())
    opened.refresh()
    after = _size(opened)
    if opened.currentSnapshot() is not None:
        actions.rewriteManifests(opened).execute()
        actions.expireSnapshots(opened).execute()
        actions.deleteOrphanFiles(opened).execute()
    if not merged:
        return None
    return CompactedTable(str(table.name), before[0], after[0], before[1], after[1])


def _size(table: Any) -> tuple[int, int]:
    """Return the number of files in a table, and their total size in bytes."""
    snapshot = table.currentSnapshot()
    summary = {} if snapshot is None else snapshot.summary()
    return int(summary.get("total-data-files") or 0), int(summary.get("total-files-size") or 0)
