"""Delta tables as sources: the versions of the log, its files, and the change data feed where it is enabled."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from connect.errors import ConnectError
from connect.internals.chain.stack_trace import error_text
from connectors.spark.delta.columns import SCHEMA_PROPERTY
from connectors.spark.delta.log import DeltaLog
from connectors.spark.sources.tables.lake_table import CHANGE, DELETED, INSERTED, TableFile
from connectors.spark.sources.tables.steps import Commit, Kind, TablePosition, check_history

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["DeltaSource", "commit_of"]

_BEFORE: Final = ("delete", "update_preimage")
_BESIDE: Final = ("_change_type", "_commit_version", "_commit_timestamp")
_NO_FEED: Final = "DELTA_MISSING_CHANGE_DATA"


class DeltaSource:
    """A Delta table in a folder; a :class:`~connectors.spark.sources.tables.lake_table.LakeTable`."""

    def __init__(self, spark: SparkSession, name: str, path: str) -> None:
        self._spark = spark
        java: Any = spark._jvm
        self._java = java
        self._name = name
        self._path = path
        self._log = DeltaLog(spark, path)
        self._java_log: Any = java.org.apache.spark.sql.delta.DeltaLog.forTable(spark._jsparkSession, path)

    @property
    def name(self) -> str:
        """The folder of the table."""
        return self._name

    @property
    def remembered(self) -> str | None:
        """The schema stored in the table's property."""
        return self._log.properties().get(SCHEMA_PROPERTY)

    def refresh(self) -> int | None:
        """Return the newest version in the log."""
        newest = self._log.newest()
        if newest < 0:
            raise ConnectError(f"There is no Delta table in {self._path}: check tables, store.url and topics.dir.")
        return newest

    def commits(self, reached: TablePosition) -> Sequence[Commit]:
        """Return the commits after the version reached, according to the files of the log."""
        if reached.version is None:
            return ()
        found = [commit_of(version, actions) for version, actions in self._actions(reached.version + 1)]
        if not found and self._log.newest() == reached.version:
            return ()
        check_history(self._path, reached, found[0].version - 1 if found else None)
        return found

    def time_of(self, version: int) -> int:
        """Return when the version was committed, according to the table."""
        for _, actions in self._actions(version, version):
            return commit_of(version, actions).time
        return 0

    def files(self, after: int | None, upto: int) -> Sequence[TableFile]:
        """Return the files of a version, or those that later commits have added."""
        if after is None:
            added = list(self._snapshot(upto).allFiles().collect())
        else:
            added = [file for version in range(after + 1, upto + 1) for file in self._added(version)]
        files = [TableFile(str(file.path()), int(file.size()), file) for file in added]
        return sorted(files, key=lambda file: file.path)

    @contextmanager
    def rows(self, version: int, files: Sequence[TableFile]) -> Iterator[DataFrame]:
        """The rows of the files, in the columns of the version."""
        from pyspark.sql import DataFrame  # noqa: PLC0415 - pyspark takes half a second to import

        chosen = self._java.org.apache.spark.api.python.PythonUtils.toSeq([file.java for file in files])
        none = self._java.scala.Option.empty()
        yield DataFrame(self._java_log.createDataFrame(self._snapshot(version), chosen, False, none), self._spark)

    def changes(self, after: int, version: int) -> DataFrame:  # noqa: ARG002
        """Return the change data feed of the version."""
        from pyspark.sql import functions as f  # noqa: PLC0415 - as above

        reader = self._spark.read.format("delta").option("readChangeFeed", "true")
        reader = reader.option("startingVersion", str(version)).option("endingVersion", str(version))
        try:
            frame = reader.load(self._path)
            # The query plan already reads the feed.
            cast_any: Any = frame
            cast_any._jdf.queryExecution().executedPlan()
        except Exception as error:
            if _NO_FEED in error_text(error):
                raise ConnectError(
                    f"Version {version} of the Delta table {self._path} replaces or deletes rows, but the "
                    "table had no change data feed at that time. Set its property "
                    "delta.enableChangeDataFeed=true for later changes, and remove the table's offset to send "
                    "it again from its present rows."
                ) from error
            raise
        kind = f.when(f.col("_change_type").isin(*_BEFORE), DELETED).otherwise(INSERTED)
        return frame.withColumn(CHANGE, kind).drop(*_BESIDE)

    def _snapshot(self, version: int) -> Any:
        none = self._java.scala.Option.empty()
        return self._java_log.getSnapshotAt(version, none, none, False)

    def _added(self, version: int) -> Iterator[Any]:
        """Yield the files a commit has added whose rows did not exist before."""
        none = self._java.scala.Option.empty()
        changes = self._java_log.getChanges(version, version, none, False)
        lists = self._java.scala.jdk.javaapi.CollectionConverters
        while changes.hasNext():
            for action in lists.asJava(changes.next()._2()):
                if str(action.getClass().getSimpleName()) == "AddFile" and action.dataChange():
                    yield action

    def _actions(self, first: int, last: int | None = None) -> Iterator[tuple[int, list[Mapping[str, Any]]]]:
        """Yield the actions of the commits from a version on, as far back as the log goes."""
        store, configuration = self._java_log.store(), self._java_log.newDeltaHadoopConf()
        commits = self._java_log.getChangeLogFiles(first, self._java.scala.Option.empty(), False)
        while commits.hasNext():
            commit = commits.next()
            version = int(commit._1())
            if last is not None and version > last:
                return
            lines = str(store.read(commit._2(), configuration).mkString("\n")).splitlines()
            yield version, [json.loads(line) for line in lines]


def commit_of(version: int, actions: Sequence[Mapping[str, Any]]) -> Commit:
    """Return what the actions of a commit do to the rows of the table."""
    info: Mapping[str, Any] = next((action["commitInfo"] for action in actions if "commitInfo" in action), {})
    time = info.get("inCommitTimestamp") or info.get("timestamp") or 0
    removes = any(action["remove"].get("dataChange") for action in actions if "remove" in action)
    if removes or any("cdc" in action for action in actions):
        return Commit(version, Kind.CHANGE, time)
    adds = any(action["add"].get("dataChange") for action in actions if "add" in action)
    return Commit(version, Kind.APPEND if adds else Kind.NOTHING, time)
